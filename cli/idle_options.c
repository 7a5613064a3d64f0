#include "cli/idle_options.h"

#include "base/arena.h"

#include <stdio.h>

static bool has_ring(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->cp > 1;
}

/* With cp or hp 1 one order of ranks is the other. */
static bool has_places(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->cp > 1 && c->hp > 1;
}

static bool has_subsequences(const struct request *r, const struct choices *c)
{
    (void)r;
    return c->subsequences > 1;
}

/* Of msp that shares nothing seq1f1b is made: that is what was asked for. */
static bool has_shared(const struct request *r, const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_MSP || r->pipeline == CHOICE_PIPELINE_MSP;
}

static const struct idle_option {
    const char *name;
    bool (*is_used)(const struct request *r, const struct choices *c);
    const char *about;
} table[] = {
    {"rotate", has_ring, "it is about rings, and cp is 1"},
    {"layout", has_ring, "it is about rings, and cp is 1"},
    {"placement", has_places, "it is about the ranks of 2d, with cp and hp above 1"},
    {"partition", has_subsequences, "there are no --subsequences"},
    {"helper-weights", has_shared, "--pipeline msp alone shares subsequences"},
    {"share-units", has_shared, "--pipeline msp alone shares subsequences"},
};

void idle_options_note(const struct options *options, const struct request *r,
                       const struct choices *c, struct diag *note)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char name[32];
        if (!options_given(options, table[i].name) || table[i].is_used(r, c))
            continue;
        snprintf(name, sizeof name, "--%s", table[i].name);
        diag_note(note, (struct loc){.name = name}, "changes nothing: %s", table[i].about);
    }
}
