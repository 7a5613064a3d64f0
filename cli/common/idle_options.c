#include "cli/common/idle_options.h"

#include "base/arena.h"
#include "schedule/choices/profile.h"

#include <stdio.h>

static bool has_ring(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->cp > 1;
}

/* True if a layout that cuts each document has documents to cut; without a ring another note says enough. */
static bool cuts_documents(const struct request *r, const struct choices *c)
{
    return r->ring_layout != RING_ZIGZAG_DOCUMENTS || c->cp == 1 ||
           c->ring_layout == RING_ZIGZAG_DOCUMENTS;
}

static bool has_merges_or_chains(const struct request *r, const struct choices *c)
{
    return has_ring(r, c) || c->profile->chains != CHAINS_FUSED;
}

/* True if the order of ranks matters: with cp or hp 1 both orders are the same. */
static bool has_places(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->cp > 1 && c->hp > 1;
}

static bool has_stage_places(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->pp > 1 && c->dp > 1;
}

static bool has_windows(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->window > 1;
}

static bool has_chunks(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->chunks > 1;
}

static bool has_subsequences(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->subsequences > 1;
}

/* True if the pipeline is msp, or was requested as msp: one that shares no subsequence becomes seq1f1b. */
static bool has_shared(const struct request *r, const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_MSP || r->pipeline == CHOICE_PIPELINE_MSP;
}

static bool is_at_most(uint32_t asked, uint32_t shared)
{
    return asked == SHARED_ALL || asked <= shared;
}

static bool shares_as_asked(const struct request *r, const struct choices *c)
{
    return c->pipeline != CHOICE_PIPELINE_MSP || r->shared == NULL ||
           (is_at_most(r->shared->first, c->shared.first) &&
            is_at_most(r->shared->last, c->shared.last));
}

static const char no_ring[] = "changes nothing: it is about rings, and cp is 1",
                  no_chunks[] =
                      "changes nothing: it is about chunks of a sequence, and there is one",
                  no_shared[] = "changes nothing: --pipeline msp alone shares subsequences";

static const struct idle_option {
    const char *name;
    bool (*is_used)(const struct request *r, const struct choices *c);
    const char *note;
} table[] = {
    {"rotate", has_ring, no_ring},
    {"layout", has_ring, no_ring},
    {"layout", cuts_documents,
     "changes nothing: each sequence is one document, which zigzag cuts in the same way; "
     "--documents packs several into a sequence"},
    {"compile", has_merges_or_chains,
     "changes nothing: cp is 1, and all work of the profile is fused already"},
    {"placement", has_places,
     "changes nothing: it is about the ranks of 2d, with cp and hp above 1"},
    {"stage-placement", has_stage_places,
     "changes nothing: it is about stages beside other sequences, with pp and dp above 1"},
    {"windows", has_windows, "changes nothing: it is about windows of a ring, and --window is 1"},
    {"kv-offload", has_chunks, no_chunks},
    {"fetch", has_chunks, no_chunks},
    {"chunk-order", has_chunks, no_chunks},
    {"partition", has_subsequences, "changes nothing: there are no --subsequences"},
    {"helper-weights", has_shared, no_shared},
    {"share-units", has_shared, no_shared},
    {"share-units", shares_as_asked,
     "is more than there is to share: while a pipeline fills and while it drains, one less than "
     "its stages"},
};

_Static_assert(ARRAY_LEN(table) <= 32, "a bit of struct idle_options for each");

bool idle_options_given(const struct options *options)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (options_given(options, table[i].name))
            return true;
    return false;
}

void idle_options_add(struct idle_options *idle, const struct options *options,
                      const struct request *r, const struct choices *c)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (!options_given(options, table[i].name))
            continue;
        idle->given |= 1u << i;
        if (table[i].is_used(r, c))
            idle->used |= 1u << i;
    }
}

bool idle_options_none(const struct idle_options *idle)
{
    return idle->given == idle->used;
}

void idle_options_note(const struct idle_options *idle, struct diag *note)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char name[32];
        if ((idle->given & ~idle->used) >> i & 1u) {
            snprintf(name, sizeof name, "--%s", table[i].name);
            diag_note(note, (struct loc){.name = name}, "%s", table[i].note);
        }
    }
}

void idle_options_note_of(const struct options *options, const struct request *r,
                          const struct choices *c, struct diag *note)
{
    struct idle_options idle = {0};
    idle_options_add(&idle, options, r, c);
    idle_options_note(&idle, note);
}
