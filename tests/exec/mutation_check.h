/* tests/exec/mutation_check.h: counts which mutants are caught by the verifier, by the numeric check, by both
 * or by neither.
 *
 * A mutant that neither catches is equivalent when it can be shown to compute the same: on two seeds, its loss,
 * norm and errors equal the original's to the last bit, and no two ops of a role that access a common byte of
 * memory, one of them writing, may run in either order. Every other mutant that neither catches has survived.
 * Included by test files only. */
#ifndef TESTS_EXEC_MUTATION_CHECK_H
#define TESTS_EXEC_MUTATION_CHECK_H

#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/exec/mutants.h"

static const char *mutation_backend; /* NULL: the CPU */
static enum dtype mutation_dtype = DTYPE_F32;

/* Numbers of mutants. Of those made, each is counted once as caught (by the verifier only, the check only, or both), as
 * equivalent, or as survived. */
struct mutant_tally {
    uint32_t made,
        refused; /* refused: by the executor before it ran the mutant; also counted as caught by the check */
    uint32_t by_verifier, by_check, by_both, equivalent, survived;
};

/* The byte range of the arena that an operand accesses. */
struct bytes {
    uint32_t op;
    uint8_t memory;
    bool write;
    uint64_t begin, end;
};

static inline int compare_intervals_by_begin(const void *a, const void *b)
{
    const struct bytes *x = a, *y = b;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* True if two ops of a role access a common byte, one of them writing, and may run in either order. It compares
 * all pairs of byte ranges, by addresses only. */
static inline bool role_has_unordered_conflict(const struct ir *ir, uint32_t role)
{
    struct order order = {0};
    struct bytes *all = heap_alloc(ir->operand_count + 1, sizeof *all);
    size_t count = 0;
    bool open = false;
    order_compute_clocks_of_role(&order, ir, role);
    for (uint32_t op = order.first_op; op < order.first_op + order.op_count; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++) {
            struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
            uint32_t b = view.buffer.i;
            uint64_t size = dtype_bytes((enum dtype)ir->buffer.dtype[b]);
            uint64_t begin = ir->buffer.offset[b] + view.begin * size;
            all[count++] = (struct bytes){op, ir->buffer.memory[b], k >= ir->op.read_count[op],
                                          begin, begin + view.count * size};
        }
    qsort(all, count, sizeof *all, compare_intervals_by_begin);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1;
             j < count && all[j].memory == all[i].memory && all[j].begin < all[i].end && !open;
             j++) {
            uint32_t a = all[i].op < all[j].op ? all[i].op : all[j].op;
            uint32_t b = all[i].op < all[j].op ? all[j].op : all[i].op;
            open = a != b && (all[i].write || all[j].write) && !order_is_before(&order, a, b);
        }
    order_release(&order);
    free(all);
    return open;
}

static inline bool any_role_has_unordered_conflict(const struct ir *ir)
{
    bool open = false;
    for (uint32_t role = 0; role < ir->role_count && !open; role++)
        open = role_has_unordered_conflict(ir, role);
    return open;
}

/* The end of a mutant's run. OUTCOME_WRONG: it fails, stalls, or differs from the reference. */
enum mutant_outcome { OUTCOME_RIGHT, OUTCOME_WRONG, OUTCOME_REFUSED };

/* Runs a schedule beside the reference and leaves the comparison in *check. stall_s: the seconds without progress after
 * which the run fails. */
static inline enum mutant_outcome run_schedule_beside_reference(struct reference_check *check,
                                                                const struct ir *ir,
                                                                const struct transformer *model,
                                                                uint64_t seed, double stall_s)
{
    /* Ranks that share a GPU may wait for each other on the device, and the watcher takes such a wait for work, not
     * for a stall. So step_limit_s ends the run: a step of these small schedules takes well below a second. */
    const struct exec_options options = {.backend = mutation_backend,
                                         .finds_unwritten_reads = true,
                                         .stall_limit_s = stall_s,
                                         .step_limit_s = stall_s + 20};
    struct diag diag = {0};
    enum status status =
        reference_check_run_step(check, ir, "mutant", model, seed, &options, &diag);
    diag_release(&diag);
    if (status == STATUS_BAD_INPUT)
        return OUTCOME_REFUSED;
    return status == STATUS_OK && check->agrees ? OUTCOME_RIGHT : OUTCOME_WRONG;
}

/* True if both schedules pass the numeric check with the same errors, loss and norm, to the last bit, on two
 * seeds. */
static inline bool schedules_give_same_outputs(const struct ir *a, const struct ir *b,
                                               const struct transformer *model)
{
    bool same = true;
    for (uint64_t seed = 21; seed <= 22 && same; seed++) {
        struct reference_check x = {0}, y = {0};
        same = run_schedule_beside_reference(&x, a, model, seed, 60) == OUTCOME_RIGHT &&
               run_schedule_beside_reference(&y, b, model, seed, 60) == OUTCOME_RIGHT &&
               memcmp(x.loss, y.loss, sizeof x.loss) == 0 && x.gradient_norm == y.gradient_norm;
        for (uint32_t i = 0; i < x.row_count && same; i++)
            same = memcmp(x.rows[i].error, y.rows[i].error, sizeof x.rows[i].error) == 0;
        reference_check_release(&x);
        reference_check_release(&y);
    }
    return same;
}

/* Counts a mutant in *tally: whether the verifier, the numeric check, both or neither catch it. Prints a mutant that
 * neither catches if it has survived, or if `list` is set. */
static inline void count_mutant_outcome(struct mutant_tally *tally, const char *name,
                                        const struct mutant *m, const struct ir *mutant,
                                        const struct choices *choices, bool list)
{
    struct reference_check check = {0};
    bool verifier = verify(mutant, NULL, "mutant", NULL, NULL) != STATUS_OK;
    enum mutant_outcome outcome =
        run_schedule_beside_reference(&check, mutant, choices->model, 21, verifier ? 0.5 : 60);
    bool caught = outcome != OUTCOME_RIGHT;
    reference_check_release(&check);
    tally->made++;
    tally->refused += outcome == OUTCOME_REFUSED;
    tally->by_verifier += verifier && !caught;
    tally->by_check += caught && !verifier;
    tally->by_both += verifier && caught;
    if (verifier || caught)
        return;
    struct ir original = {0};
    step_build(&original, choices, NULL);
    bool equivalent = !any_role_has_unordered_conflict(mutant) &&
                      schedules_give_same_outputs(mutant, &original, choices->model);
    ir_release(&original);
    tally->equivalent += equivalent;
    tally->survived += !equivalent;
    if (list || !equivalent) {
        char label[256];
        printf("  %s: %s: %s%s; %s\n", equivalent ? "equivalent" : "SURVIVED", name, m->what,
               m->is_derived_again ? ", made anew around it" : "",
               choices_label(choices, label, sizeof label));
    }
}

/* In a sequence of two tokens only the first has a label, and it sees no key but its own: wrong keys change nothing but
 * the rounding of gradients that are zero. */
enum { TOKENS_WITHOUT_KEYS = 2 };

/* Returns random choices that are legal, of at most 4 ranks, and in mutation_dtype. */
static inline struct choices draw_legal_choices(struct check_random *random)
{
    struct factor_level_counts factors = factors_with_all_levels();
    struct choices choices;
    struct diag why = {0};
    struct matrix_row product;
    factors.levels[FACTOR_RANKS] = 4;
    factors.levels[FACTOR_SEQ] = 2;
    factors.levels[FACTOR_ACCUMULATION] = 2;
    do
        product = draw_configuration(&factors, random);
    while (!configuration_is_legal(&product, &choices, &why) || choices.seq <= TOKENS_WITHOUT_KEYS);
    diag_release(&why);
    struct request request = configuration_request(&product);
    request.global_batch = choices.global_batch;
    request.dtype = (int)mutation_dtype;
    CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, NULL), STATUS_OK);
    return choices;
}

/* Makes and judges one mutant of the kind. Returns false when none of 200 random schedules has a place for one. */
static inline bool make_and_judge_mutant(struct mutant_tally *tally, int kind,
                                         struct check_random *random, bool list)
{
    for (int draw = 0; draw < 200; draw++) {
        struct choices choices = draw_legal_choices(random);
        struct ir ir = {0}, anew = {0};
        struct mutant m = {.ir = &ir, .random = random};
        bool made = step_build(&ir, &choices, NULL) == STATUS_OK && mutations[kind].make(&m);
        if (made) {
            m.is_derived_again =
                mutations[kind].changes_meaning && check_random_i64(random, 0, 1) == 1;
            if (m.is_derived_again && m.list == NULL)
                list_all_ops(&m);
            if (m.list != NULL)
                build_schedule_of_mutant(&m, &anew);
            count_mutant_outcome(tally, mutations[kind].name, &m, m.list != NULL ? &anew : &ir,
                                 &choices, list);
        }
        free(m.list);
        ir_release(&ir);
        ir_release(&anew);
        if (made)
            return true;
    }
    return false;
}

/* Makes `count` mutants, prints the table, and checks that all were made and that at least 99 % of those that are
 * not equivalent were caught. */
static inline void check_mutants(uint32_t count, uint64_t seed, bool list)
{
    struct check_random random = {seed};
    struct mutant_tally tally[MUTATIONS] = {{0}}, all = {0};
    bool could_be_made[MUTATIONS];
    for (int k = 0; k < MUTATIONS; k++)
        could_be_made[k] = true;
    for (uint32_t made = 0, i = 0; made < count && i < 4 * count; i++) {
        int kind = (int)(i % MUTATIONS);
        if (could_be_made[kind])
            could_be_made[kind] = make_and_judge_mutant(&tally[kind], kind, &random, list);
        made += could_be_made[kind];
    }
    printf("\n  %-18s%6s%10s%10s%10s%12s%10s\n", "mutation", "made", "verifier", "check", "both",
           "equivalent", "survived");
    for (int k = 0; k < MUTATIONS; k++) {
        const struct mutant_tally *t = &tally[k];
        printf("  %-18s%6u%10u%10u%10u%12u%10u\n", mutations[k].name, t->made, t->by_verifier,
               t->by_check, t->by_both, t->equivalent, t->survived);
        all.made += t->made;
        all.refused += t->refused;
        all.by_verifier += t->by_verifier;
        all.by_check += t->by_check;
        all.by_both += t->by_both;
        all.equivalent += t->equivalent;
        all.survived += t->survived;
    }
    uint32_t wrong = all.made - all.equivalent, caught = wrong - all.survived;
    printf("  %-18s%6u%10u%10u%10u%12u%10u\n", "all", all.made, all.by_verifier, all.by_check,
           all.by_both, all.equivalent, all.survived);
    printf("  caught %u of %u that are not equivalent (%.2f %%); %u were refused before they ran\n",
           caught, wrong, 100.0 * caught / wrong, all.refused);
    CHECK_INT("mutants made", all.made, count);
    CHECK("99 % are caught", caught * 100 >= wrong * 99);
}

#endif
