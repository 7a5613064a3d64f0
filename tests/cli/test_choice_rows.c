/* tests/cli/test_choice_rows.c: every row of predict/setup/choices.def is named wherever choices are listed, and every
 * member of struct request and struct choices that a user chooses is in a row. Printed options read back as the same
 * request, and choices are part of a configuration's identity and of a request's digest. */
#include "base/json_write.h"
#include "cli/common/options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/plan/outcome.h"
#include "predict/setup/choice_rows.h"
#include "schedule/choices/profile.h"
#include "schedule/ir/deal.h"
#include "tests/check.h"

#include <ctype.h>
#include <string.h>

/* ---- the schema ---- */

static void write_schema_of_choice_value(struct json_out *json, const struct choice_value *value)
{
    static const char *const types[] = {[CHOICE_COUNTED] = "integer",
                                        [CHOICE_NAMED] = "string",
                                        [CHOICE_TRUTH] = "boolean",
                                        [CHOICE_NUMBER] = "number"};
    json_begin_inline_object(json, value->key);
    json_put_text(json, "type", types[value->form]);
    if (value->form == CHOICE_COUNTED)
        json_put_count(json, "minimum", 0);
    json_put_text(json, "description", value->description);
    json_end_inline_object(json);
}

/* Appends {"PREFIXdp": {"$ref": ...}, ...}: an object with the choices as members. */
static void write_choices_as_schema_members(struct json_out *json, const char *name,
                                            const char *prefix)
{
    json_begin_object(json, name);
    json_begin_object(json, "properties");
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        struct choice_value value[CHOICE_VALUES_MAX];
        const size_t count = choice_row_fill_values(&choice_rows[i], value, NULL);
        for (size_t k = 0; k < count; k++) {
            struct text key = {0}, ref = {0};
            text_printf(&key, "%s%s", prefix, value[k].key);
            text_printf(&ref, "choices.json#/$defs/%s", value[k].key);
            json_begin_inline_object(json, key.data);
            json_put_text(json, "$ref", ref.data);
            json_end_inline_object(json);
            text_release(&key);
            text_release(&ref);
        }
    }
    json_end_object(json);
    json_end_object(json);
}

static void the_schema_describes_every_value(void)
{
    struct text out = {0};
    struct json_out json = {.out = &out};
    json_begin_object(&json, NULL);
    json_put_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_put_text(
        &json, "title",
        "The choices of a training step. The test cli/choice_rows makes this file from "
        "predict/setup/choices.def: UPDATE_GOLDEN=1 ctest --preset release -R cli/choice_rows");
    json_begin_object(&json, "$defs");
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        struct choice_value value[CHOICE_VALUES_MAX];
        const size_t count = choice_row_fill_values(&choice_rows[i], value, NULL);
        CHECK(choice_rows[i].key, count > 0 || choice_rows[i].is_alias);
        for (size_t k = 0; k < count; k++) {
            CHECK(value[k].key, !value[k].has_value && value[k].description != NULL);
            write_schema_of_choice_value(&json, &value[k]);
        }
    }
    write_choices_as_schema_members(&json, "configuration", "");
    write_choices_as_schema_members(&json, "chosen", "chosen_");
    json_end_object(&json);
    json_end_object(&json);
    text_putc(&out, '\n');
    CHECK_GOLDEN("../docs/schema/choices.json", out.data);
    text_release(&out);
}

/* ---- structs ---- */

/* Members that are no choices of a user. */
static const char *const others[] = {
    /* members of both structs */
    "model", "sm", "gpus_per_node", "documents", "routing", "expert_capacity", "subsequence_tokens",
    "offload_hidden_bytes", "offload_hidden_bytes_by_subsequence",
    /* only of struct request: they describe the machine, are filled in from costs, or say which
     * implementation the profile `published` is */
    "ranks", "sole_costed_attention_impl_plus_one", "impl", "must_compute_shared_units",
    "must_compute_offload_hidden_bytes",
    /* only of struct choices: they are parts of a strategy, are read by a function of their row, or
     * follow from choices */
    "attention", "strategy", "profile", "must_compute_subsequence_tokens", "shared_units",
    "ring_ranks_per_node", "chunk_count", "offload_ratio", "sequence_parallel_ranks", "core_plan",
    "core_gets_causal_mask_tensor", "lists_copies_of_even_routing", "recompute_modules"};

static bool is_other_found[ARRAY_LEN(others)]; /* a struct has the member */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* True if a macro of a row names the member: "(dp," or "(dp)". */
static bool choice_table_has_member(const struct text *table, const char *macros[],
                                    const char *member)
{
    for (size_t i = 0; macros[i] != NULL; i++) {
        char call[64];
        const size_t size = (size_t)snprintf(call, sizeof call, "%s(%s", macros[i], member);
        for (const char *at = table->data; (at = strstr(at, call)) != NULL; at++)
            if (!is_word(at[size]))
                return true;
    }
    return false;
}

/* Checks that each member of a struct of choices.h is in a row or in others[]. begin, last: the
 * texts before and after the members, which are those of a struct or of the list COPIED_CHOICES.
 * macros: the macros by which rows name members of the struct. */
static void check_choice_members_are_in_rows(const struct text *header, const struct text *table,
                                             const char *begin, const char *last,
                                             const char *macros[])
{
    const char *at = strstr(header->data, begin);
    const char *end = at != NULL ? strstr(at, last) : NULL;
    size_t members = 0;
    CHECK(begin, end != NULL);
    for (at = at != NULL ? at + strlen(begin) : end; at < end; at++) {
        if (strncmp(at, "/*", 2) == 0) {
            at = strstr(at, "*/") + 1;
            continue;
        }
        if (*at == '#') {
            at = strchr(at, '\n');
            continue;
        }
        if ((*at != ';' && *at != ',' && *at != ')') || !is_word(at[-1]))
            continue;
        char name[48];
        const char *first = at;
        while (is_word(first[-1]))
            first--;
        if (strncmp(first, "COPIED)", 7) == 0) /* the list itself, checked by its own call */
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(at - first), first);
        bool known = choice_table_has_member(table, macros, name);
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
            if (strcmp(others[i], name) == 0)
                known = is_other_found[i] = true;
        CHECK(name, known);
        members++;
    }
    CHECK("members were found", members > 15);
}

static void every_choice_member_is_in_a_row(void)
{
    const char *of_request[] = {"INTO", "INTO_SHOWN", "BY_OWN", NULL};
    const char *of_choices[] = {"NAMED", "COUNTED", "TRUTH", NULL};
    struct text header = {0}, table = {0};
    struct diag diag = {0};
    CHECK_INT("header", text_read(&header, check_path("../schedule/choices/choices.h"), &diag),
              STATUS_OK);
    CHECK_INT("table", text_read(&table, check_path("../predict/setup/choices.def"), &diag),
              STATUS_OK);
    check_choice_members_are_in_rows(&header, &table, "struct request {", "\n};", of_request);
    check_choice_members_are_in_rows(&header, &table, "struct choices {", "\n};", of_choices);
    check_choice_members_are_in_rows(&header, &table, "#define COPIED_CHOICES(COPIED)", "\n\n",
                                     of_request);
    check_choice_members_are_in_rows(&header, &table, "#define COPIED_CHOICES(COPIED)", "\n\n",
                                     of_choices);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CHECK(others[i], is_other_found[i]);
    text_release(&header);
    text_release(&table);
    diag_release(&diag);
}

/* ---- printed options, identities and digests ---- */

/* A value for each option of free text, which prints as it is read. put_option() gives other options a value by their
 * kind. */
static const struct {
    const char *option, *value;
} texts[] = {{"strategy", "fpdt"},
             {"profile", "megatron"},
             {"share-units", "3,1"},
             {"offload-ratio", "0.25"},
             {"sparsity", "0.25"},
             {"adapter", "16:q,v"},
             {"activations", "keep"},
             {"core-plan", "chunks:512"},
             {"routing", "dirichlet:2,3"},
             {"expert-capacity", "1.5,pad,position"},
             {"recompute-modules", "layernorm,moe"}};

/* Further options without which an option is not printed, or not read. */
static const struct {
    const char *option, *with;
} needs[] = {{"share-units", "--pipeline msp"},
             {"helper-weights", "--pipeline msp"},
             {"partition", "--subsequences 8"},
             {"sparsity", "--chunk 64K"}};

/* Appends the options without which an option is not printed or read. */
static void write_required_options(struct text *out, const struct option *option)
{
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (strcmp(needs[i].option, option->name) == 0)
            text_printf(out, " %s", needs[i].with);
}

/* Appends "--NAME VALUE" with a value that is not the default, after the options that it needs. */
static void put_option(struct text *out, const struct option *option)
{
    write_required_options(out, option);
    text_printf(out, " --%s", option->name);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].option, option->name) == 0) {
            text_printf(out, " %s", texts[i].value);
            return;
        }
    if (option->kind == OPTION_CHOICE)
        text_printf(out, " %s", option->names[option->name_count - 1]);
    else if (option->kind == OPTION_TOKENS)
        text_puts(out, " 8K");
    else if (option->kind != OPTION_FLAG)
        text_puts(out, " 2");
}

/* Reads a line of options into *setup, which borrows their texts from *options and *arena. */
static enum status read_line(struct setup *setup, struct options *options, struct arena *arena,
                             const char *line, struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_choice_options, NULL};
    setup->model = (struct transformer){.layers = 2, .experts = 4, .experts_per_token = 2};
    char **word;
    int count;
    enum status status =
        options_split_words(&word, &count, arena, line, (struct loc){.name = "line"}, diag);
    if (status == STATUS_OK)
        status = options_parse(options, sets, count, word, diag);
    return status == STATUS_OK ? setup_read_choices(setup, options, diag) : status;
}

/* The printed form of a request, read again, makes the same request: for every option that is
 * printed. */
static void options_are_printed_as_they_are_read(void)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        if (row->option == NULL ||
            row->printed_if_value_above == INT64_MAX) /* aliases; the length, the batch */
            continue;
        struct setup first = {0}, second = {0};
        struct options options = {0}, again = {0};
        struct arena arena = {0};
        struct text line = {0}, printed = {0}, reprinted = {0};
        struct diag diag = {0};
        char name[48];
        put_option(&line, row->option);
        CHECK_INT(line.data, read_line(&first, &options, &arena, line.data, &diag), STATUS_OK);
        request_put_options(&printed, &first.request);
        snprintf(name, sizeof name, "--%s", row->option->name);
        CHECK(name, strstr(printed.data, name) != NULL);
        CHECK_INT(printed.data, read_line(&second, &again, &arena, printed.data, &diag), STATUS_OK);
        request_put_options(&reprinted, &second.request);
        CHECK_TEXT("read again", reprinted.data, printed.data);
        CHECK_TEXT("messages", diag.text, "");
        options_release(&options);
        options_release(&again);
        setup_release(&first);
        setup_release(&second);
        arena_release(&arena);
        text_release(&line);
        text_release(&printed);
        text_release(&reprinted);
        diag_release(&diag);
    }
}

/* Returns what to do if the two configurations below do not decide whether the row's choice matters. */
static const char *hint_for_undecided_choice(const struct choice_row *row, bool matters)
{
    static char hint[160];
    snprintf(
        hint, sizeof hint,
        "%s: a line in this test makes it %s: a model, profile or degree of its configurations",
        row->key, matters ? "matter (`small`)" : "idle (`small` after `dense`)");
    return hint;
}

/* A choice that matters is a part of a configuration's identity, and a choice that does not matter
 * is not. */
static void identity_has_choices_that_matter(void)
{
    const struct transformer model = {
        .attention_chunk = 4, .experts = 4, .shared_ffn = 4, .kv_latent = 4, .adapter_rank = 4};
    const struct transformer dense = {.attention_chunk = 4};
    struct profile profile = {.chains = 1};
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        struct choices small = {.model = &model, .profile = &profile}, large;
        int64_t one[CHOICE_NAME_COUNT], other[CHOICE_NAME_COUNT];
        if (row->chosen_member.size == 0)
            continue;
        small.cp = small.hp = small.tp = small.pp = small.dp = small.ring_window = 2;
        small.chunk_count = small.subsequences = 2;
        small.pipeline = CHOICE_PIPELINE_MSP;
        small.weights = CHOICE_WEIGHTS_ZERO3;
        small.accumulation = 2;
        small.ep = 2;
        small.ranks = 64;
        small.products = 1;
        large = small;
        ((char *)&large)[row->chosen_member.offset] ^= 1;
        choices_fill_identity(one, &small);
        choices_fill_identity(other, &large);
        CHECK(hint_for_undecided_choice(row, true), one[i] != other[i]);
        if (row->matters == NULL || row->matters == choice_rows[CHOICE_NAME_compile].matters ||
            row == &choice_rows[CHOICE_NAME_products] ||
            row ==
                &choice_rows[CHOICE_NAME_host_layers]) /* the value of these says if they matter */
            continue;
        small.products = 0;
        small.cp = small.hp = small.tp = small.pp = small.dp = small.ring_window = 1;
        small.chunk_count = small.subsequences = 1;
        small.pipeline = CHOICE_PIPELINE_NONE;
        small.model = &dense;
        small.ranks = 1;
        large = small;
        ((char *)&large)[row->chosen_member.offset] ^= 1;
        choices_fill_identity(one, &small);
        choices_fill_identity(other, &large);
        CHECK(hint_for_undecided_choice(row, false), one[i] == other[i]);
    }
}

/* Changes what the values of a row without a member depend on. Returns false if no change is known for the row. */
static bool change_inputs_of_choice_values(enum choice_name_id name, struct choices *c,
                                           struct transformer *model)
{
    static const struct profile other = {.name = "other"};
    static const struct routing routing = {.name = "shares.csv"};
    switch (name) {
    case CHOICE_NAME_strategy:
        c->strategy = 1;
        return true;
    case CHOICE_NAME_profile:
        c->profile = &other;
        return true;
    case CHOICE_NAME_routing:
        c->routing = &routing;
        return true;
    case CHOICE_NAME_expert_capacity:
        c->expert_capacity.capacity_factor_millionths = 1500000;
        return true;
    case CHOICE_NAME_share_units:
        c->shared_units.last = 1;
        return true;
    case CHOICE_NAME_windows:
        c->ring_ranks_per_node = 2;
        return true;
    case CHOICE_NAME_compile:
        c->kernels = KERNELS_COMPILED;
        return true;
    case CHOICE_NAME_core_plan:
        c->core_plan = "striped";
        return true;
    case CHOICE_NAME_recompute_modules:
        c->recompute_modules = 3;
        return true;
    case CHOICE_NAME_offload_ratio:
        c->offload_ratio = 0.25;
        return true;
    case CHOICE_NAME_sparsity:
        model->attention_kept = 3;
        return true;
    case CHOICE_NAME_adapter:
        model->adapter_rank = 8;
        return true;
    default:
        return false;
    }
}

/* A choice without a member is part of a configuration's identity by its values, unless they only name other
 * choices. */
static void identity_has_values_without_member(void)
{
    const struct profile profile = {.name = "one", .chains = 1};
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        struct transformer model = {
            .attention_chunk = 4, .attention_kept = 2, .experts = 4, .adapter_rank = 4};
        struct transformer other_model = model;
        struct choices one = {.model = &model,
                              .profile = &profile,
                              .cp = 2,
                              .ring_window = 2,
                              .chunk_count = 2,
                              .pipeline = CHOICE_PIPELINE_MSP,
                              .activations = CHOICE_ACTIVATIONS_RATIO,
                              .offload_ratio = 0.5,
                              .recompute_modules = 1,
                              .core_plan = "zigzag"};
        struct choices other = one;
        int64_t of_one[CHOICE_NAME_COUNT], of_other[CHOICE_NAME_COUNT];
        if (row->values == NULL)
            continue;
        other.model = &other_model;
        CHECK(row->key,
              change_inputs_of_choice_values((enum choice_name_id)i, &other, &other_model));
        choices_fill_identity(of_one, &one);
        choices_fill_identity(of_other, &other);
        CHECK(row->key, (of_one[i] != of_other[i]) == !row->only_names_other_choices);
    }
}

static uint64_t request_key_of_setup(const struct setup *setup)
{
    return outcome_request_digest(setup, &setup->request, 8);
}

/* Every option changes the digest by which a plan recognises a request. */
static void requests_with_other_choices_have_other_keys(void)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        struct setup with = {0}, without = {0};
        struct options options = {0}, fewer = {0};
        struct arena arena = {0};
        struct text line = {0}, usual = {0};
        struct diag diag = {0};
        if (row->option == NULL)
            continue;
        put_option(&line, row->option);
        write_required_options(&usual, row->option);
        CHECK_INT(line.data, read_line(&with, &options, &arena, line.data, &diag), STATUS_OK);
        CHECK_INT(row->key,
                  read_line(&without, &fewer, &arena, usual.size > 0 ? usual.data : "", &diag),
                  STATUS_OK);
        CHECK(row->key, request_key_of_setup(&with) != request_key_of_setup(&without));
        options_release(&options);
        options_release(&fewer);
        setup_release(&with);
        setup_release(&without);
        arena_release(&arena);
        text_release(&line);
        text_release(&usual);
        diag_release(&diag);
    }
}

/* The digest of a request also depends on the values that are filled in from costs and on the
 * contents of its lists. It does not depend on the addresses of lists or on the padding between
 * members. */
static void requests_with_other_lists_have_other_keys(void)
{
    const int64_t lengths[] = {3, 5}, same_lengths[] = {3, 5}, other_lengths[] = {5, 3};
    const double hidden[] = {1, 2}, other_hidden[] = {2, 1};
    const struct shared_units shared = {1, 1}, other_shared = {1, 0};
    uint32_t list_of[] = {0};
    const int64_t end[] = {4, 8}, other_end[] = {3, 8};
    struct arena arena = {0};
    const struct token_share shares[] = {{4, 0}, {4, 1}}, other_shares[] = {{5, 0}, {3, 1}};
    struct document_list list = {2, end, deal_make_from_shares(&arena, 2, shares, 2), NULL};
    struct document_list other_list = {2, other_end, list.deal, NULL},
                         undealt = {2, end, NULL, NULL};
    struct document_list dealt = {2, end, deal_make_from_shares(&arena, 2, other_shares, 2), NULL};
    const int64_t share[] = {1, 2}, other_share[] = {2, 1};
    const int64_t *expert_shares[] = {share}, *other_expert_shares[] = {other_share};
    const struct routing routing = {.expert_count = 2,
                                    .copies_per_token = 1,
                                    .layer_count = 1,
                                    .list_count = 1,
                                    .expert_shares_by_list = expert_shares,
                                    .share_list_by_layer = list_of};
    struct routing other_routing = routing;
    other_routing.expert_shares_by_list = other_expert_shares;
    const struct documents documents = {1, 1, &list, 1, list_of};
    const struct documents other_documents = {1, 1, &other_list, 1, list_of};
    const struct documents undealt_documents = {1, 1, &undealt, 1, list_of};
    const struct documents dealt_documents = {1, 1, &dealt, 1, list_of};
    const struct transformer model = {.attention_chunk = 4}, same_model = model;
    const struct transformer sparse = {.attention_chunk = 8};
    const struct request base = {.model = &model,
                                 .subsequences = 2,
                                 .subsequence_tokens = lengths,
                                 .offload_hidden_bytes_by_subsequence = hidden,
                                 .shared_units = &shared,
                                 .documents = &documents,
                                 .routing = &routing};
    struct request changed[20];
    uint64_t key[ARRAY_LEN(changed)];
    const struct setup setup = {0};
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        changed[i] = base;
    changed[1].subsequence_tokens = other_lengths;
    changed[2].subsequence_tokens = NULL;
    changed[3].offload_hidden_bytes_by_subsequence = other_hidden;
    changed[4].offload_hidden_bytes_by_subsequence = NULL;
    changed[5].shared_units = &other_shared;
    changed[6].shared_units = NULL;
    changed[7].documents = &other_documents;
    changed[8].documents = NULL;
    changed[9].offload_hidden_bytes = 1;
    changed[10].must_compute_shared_units = true;
    changed[11].impl = "x";
    changed[12].ranks = 2;
    changed[13].sole_costed_attention_impl_plus_one = 1;
    changed[14].model = &sparse;
    changed[15].documents = &undealt_documents;
    changed[16].documents = &dealt_documents;
    changed[17].routing = &other_routing;
    changed[18].routing = NULL;
    changed[19].expert_capacity.capacity_factor_millionths = 1;
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        key[i] = outcome_request_digest(&setup, &changed[i], 8);
        for (size_t k = 0; k < i; k++)
            CHECK("keys differ", key[i] != key[k]);
    }
    CHECK("gpus are part of it", outcome_request_digest(&setup, &base, 4) != key[0]);
    struct request same = base;
    same.subsequence_tokens = same_lengths;
    same.model = &same_model;
    memset((char *)&same + offsetof(struct request, must_compute_shared_units) +
               sizeof same.must_compute_shared_units,
           0xa5,
           offsetof(struct request, seq) - offsetof(struct request, must_compute_shared_units) -
               sizeof same.must_compute_shared_units);
    CHECK("the same key", outcome_request_digest(&setup, &same, 8) == key[0]);
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"requests with other choices have other keys", requests_with_other_choices_have_other_keys},
    {"requests with other lists have other keys", requests_with_other_lists_have_other_keys},
    {"the schema describes every value", the_schema_describes_every_value},
    {"every member is in a row", every_choice_member_is_in_a_row},
    {"options are printed as they are read", options_are_printed_as_they_are_read},
    {"identities differ where choices matter", identity_has_choices_that_matter},
    {"identities differ where values differ", identity_has_values_without_member},
};
CHECK_MAIN("choice_rows", cases)
