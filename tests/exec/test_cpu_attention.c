/* tests/exec/test_cpu_attention.c: attention of the CPU backend agrees with its definition, its backward with finite
 * differences, and merged pieces with the whole. */
#include "tests/exec/plain.h"

/* ---- attention in double, straight from its definition ---- */

static bool query_sees_key(const struct work *work, int64_t i, int64_t j)
{
    if (work->attention.mask == MASK_FULL)
        return true;
    bool query_sees_key = j <= i + work->attention.offset;
    if (work->attention.mask == MASK_WINDOW)
        query_sees_key = query_sees_key && j > i + work->attention.offset - work->attention.window;
    return query_sees_key;
}

/* Computes attention in double. in: Q (q, heads, dim), K, V (kv, kv_heads, dim); out: O (q, heads, dim), LSE
 * (q, heads). */
static void plain_attention(const struct work *work, const double *const *in, double *const *out)
{
    int64_t heads = work->attention.heads, kv_heads = work->attention.kv_heads;
    int64_t dim = work->attention.dim, kv = work->attention.kv;
    double *p = heap_alloc((size_t)kv, sizeof *p);
    for (int64_t i = 0; i < work->attention.q; i++)
        for (int64_t h = 0; h < heads; h++) {
            int64_t g = h / (heads / kv_heads);
            const double *q = in[0] + (i * heads + h) * dim;
            double *o = out[0] + (i * heads + h) * dim, top = -INFINITY, sum = 0;
            for (int64_t j = 0; j < kv; j++) {
                p[j] = 0;
                for (int64_t d = 0; d < dim; d++)
                    p[j] += q[d] * in[1][(j * kv_heads + g) * dim + d];
                p[j] = query_sees_key(work, i, j) ? p[j] / sqrt((double)dim) : -INFINITY;
                top = fmax(top, p[j]);
            }
            for (int64_t j = 0; j < kv; j++)
                sum += p[j] = isinf(p[j]) ? 0 : exp(p[j] - top);
            for (int64_t d = 0; d < dim; d++) {
                o[d] = 0;
                for (int64_t j = 0; j < kv; j++)
                    o[d] += p[j] > 0 ? p[j] / sum * in[2][(j * kv_heads + g) * dim + d] : 0;
            }
            out[1][i * heads + h] = sum > 0 ? top + log(sum) : -INFINITY;
        }
    free(p);
}

static struct work shape(enum work_kind kind, int64_t q, int64_t kv, int64_t heads,
                         int64_t kv_heads, int64_t dim, enum mask mask, int64_t offset,
                         int64_t window)
{
    return (struct work){.kind = (uint8_t)kind,
                         .attention = {q, kv, heads, kv_heads, dim, mask, offset, window}};
}

static const struct attention_row {
    const char *label;
    int64_t q, kv, heads, kv_heads, dim;
    enum mask mask;
    int64_t offset, window;
} rows[] = {
    /* label, q, kv, heads, kv_heads, dim, mask, offset, window */
    {"one query, one key", 1, 1, 1, 1, 1, MASK_FULL, 0, 0},
    {"full", 7, 9, 2, 2, 4, MASK_FULL, 0, 0},
    {"causal", 13, 13, 3, 1, 5, MASK_CAUSAL, 0, 0},
    {"grouped queries", 6, 6, 6, 2, 3, MASK_CAUSAL, 0, 0},
    {"later queries", 5, 12, 2, 1, 4, MASK_CAUSAL, 7, 0},
    {"first rows see nothing", 9, 6, 2, 2, 3, MASK_CAUSAL, -4, 0},
    {"nobody sees anything", 4, 4, 1, 1, 3, MASK_CAUSAL, -4, 0},
    {"offset beyond all keys", 4, 4, 1, 1, 3, MASK_CAUSAL, 99, 0},
    {"window", 20, 20, 2, 2, 4, MASK_WINDOW, 0, 5},
    {"window that ends", 12, 8, 2, 1, 4, MASK_WINDOW, 2, 3},
    {"window before the keys", 5, 5, 1, 1, 2, MASK_WINDOW, -9, 3},
    {"window past some keys", 5, 5, 1, 1, 2, MASK_WINDOW, 7, 6},
    {"window past all keys", 5, 5, 1, 1, 2, MASK_WINDOW, 70, 6},
    {"several tiles", 300, 300, 1, 1, 8, MASK_CAUSAL, 0, 0},
    {"tiles and a window", 150, 600, 2, 1, 6, MASK_WINDOW, 450, 70},
    {"tiles, none for early rows", 290, 270, 1, 1, 4, MASK_CAUSAL, -260, 0},
    {"a wide head", 40, 40, 1, 1, 80, MASK_CAUSAL, 0, 0},
};

static void forward_agrees_with_its_definition(void)
{
    struct check_random random = check_random_make();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct attention_row *r = &rows[i];
        struct kernel_call t =
            kernel_call_new(shape(WORK_ATTENTION, r->q, r->kv, r->heads, r->kv_heads, r->dim,
                                  r->mask, r->offset, r->window),
                            &random);
        int64_t q = r->q * r->heads * r->dim, kv = r->kv * r->kv_heads * r->dim;
        struct plain_loop_call p = {.run = plain_attention, .work = &t.work};
        plain_loop_add_input(&p, kernel_call_add_read(&t, q), q);
        plain_loop_add_input(&p, kernel_call_add_read(&t, kv), kv);
        plain_loop_add_input(&p, kernel_call_add_read(&t, kv), kv);
        plain_loop_add_output(&p, q, NULL);
        plain_loop_add_output(&p, r->q * r->heads, NULL);
        float *o = kernel_call_add_write(&t, q), *lse = kernel_call_add_write(&t, r->q * r->heads);
        CHECK(r->label, kernel_call_run(&t) == NULL);
        weighted_sum_of_outputs(&p);
        check_all_near(r->label, o, p.out[0], q, 1e-5);
        check_all_near(r->label, lse, p.out[1], r->q * r->heads, 1e-6);
        plain_loop_release(&p);
        kernel_call_release(&t);
    }
}

static void backward_agrees_with_differences(void)
{
    struct check_random random = check_random_make();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct attention_row *r = &rows[i];
        struct work work = shape(WORK_ATTENTION, r->q, r->kv, r->heads, r->kv_heads, r->dim,
                                 r->mask, r->offset, r->window);
        struct kernel_call f = kernel_call_new(work, &random), b = kernel_call_new(work, &random);
        int64_t q = r->q * r->heads * r->dim, kv = r->kv * r->kv_heads * r->dim;
        int64_t counts[3] = {q, kv, kv};
        struct plain_loop_call p = {.run = plain_attention, .work = &f.work};
        b.work.kind = WORK_ATTENTION_BACKWARD;
        for (int k = 0; k < 3; k++) {
            plain_loop_add_input(&p, kernel_call_add_read(&f, counts[k]), counts[k]);
            memcpy(kernel_call_add_read(&b, counts[k]), f.call.read[k].data,
                   (size_t)counts[k] * sizeof(float));
        }
        float *o = kernel_call_add_write(&f, q), *lse = kernel_call_add_write(&f, r->q * r->heads);
        kernel_call_run(&f);
        memcpy(kernel_call_add_read(&b, q), o, (size_t)q * sizeof *o);
        memcpy(kernel_call_add_read(&b, r->q * r->heads), lse,
               (size_t)(r->q * r->heads) * sizeof *lse);
        double *weight = copy_as_double(kernel_call_add_read(&b, q), q);
        plain_loop_add_output(&p, q, weight);
        plain_loop_add_output(&p, r->q * r->heads, NULL);
        float *grad[3];
        for (int k = 0; k < 3; k++)
            grad[k] = kernel_call_add_write(&b, counts[k]);
        CHECK(r->label, kernel_call_run(&b) == NULL);
        bool slow = q * r->kv > 20000; /* differences of large shapes take long */
        for (int k = 0; k < 3; k++) {
            if (slow && k == 1)
                continue;
            check_gradient_by_differences(r->label, &p, k, grad[k], NULL, 1e-4);
        }
        free(weight);
        plain_loop_release(&p);
        kernel_call_release(&f);
        kernel_call_release(&b);
    }
}

/* Attention to pieces of the keys, merged, equals attention to all keys at once, also where a query sees no key of a
 * piece, or no key at all. Pieces without keys are skipped. */
static void pieces_merge_into_the_whole(void)
{
    enum { Q = 10, KV = 12, HEADS = 2, DIM = 4, ALL = Q * HEADS * DIM };
    static const int64_t cuts[][4] = {
        {0, 12, 12, 12},
        {0, 1, 5, 12},
        {0, 4, 8, 12},
    };
    struct check_random random = check_random_make();
    for (size_t c = 0; c < ARRAY_LEN(cuts); c++) {
        struct kernel_call whole = kernel_call_new(
            shape(WORK_ATTENTION, Q, KV, HEADS, HEADS, DIM, MASK_CAUSAL, -2, 0), &random);
        float *q = kernel_call_add_read(&whole, ALL),
              *k = kernel_call_add_read(&whole, KV * HEADS * DIM);
        float *v = kernel_call_add_read(&whole, KV * HEADS * DIM);
        float *o = kernel_call_add_write(&whole, ALL),
              *lse = kernel_call_add_write(&whole, Q * HEADS);
        kernel_call_run(&whole);

        struct kernel_call merge =
            kernel_call_new((struct work){.kind = WORK_MERGE, .merge = {Q, HEADS, DIM}}, &random);
        float *out = kernel_call_add_read(&merge, ALL),
              *sum = kernel_call_add_read(&merge, Q * HEADS);
        float *block = kernel_call_add_read(&merge, ALL),
              *block_lse = kernel_call_add_read(&merge, Q * HEADS);
        kernel_call_add_in_place_write(&merge, 0);
        kernel_call_add_in_place_write(&merge, 1);
        for (int i = 0; i < ALL; i++)
            out[i] = 0;
        for (int i = 0; i < Q * HEADS; i++)
            sum[i] = -INFINITY;
        for (int piece = 0; piece < 3; piece++) {
            int64_t from = cuts[c][piece], to = cuts[c][piece + 1];
            if (from == to)
                continue;
            struct kernel_call part = kernel_call_new(
                shape(WORK_ATTENTION, Q, to - from, HEADS, HEADS, DIM, MASK_CAUSAL, -2 - from, 0),
                &random);
            memcpy(kernel_call_add_read(&part, ALL), q, ALL * sizeof *q);
            int64_t keys = (to - from) * HEADS * DIM;
            memcpy(kernel_call_add_read(&part, keys), k + from * HEADS * DIM,
                   (size_t)keys * sizeof *k);
            memcpy(kernel_call_add_read(&part, keys), v + from * HEADS * DIM,
                   (size_t)keys * sizeof *v);
            float *part_o = kernel_call_add_write(&part, ALL),
                  *part_lse = kernel_call_add_write(&part, Q * HEADS);
            kernel_call_run(&part);
            memcpy(block, part_o, ALL * sizeof *block);
            memcpy(block_lse, part_lse, Q * HEADS * sizeof *block_lse);
            kernel_call_run(&merge);
            kernel_call_release(&part);
        }
        double *want = copy_as_double(o, ALL), *want_lse = copy_as_double(lse, Q * HEADS);
        check_all_near("merged output", out, want, ALL, 1e-5);
        check_all_near("merged lse", sum, want_lse, Q * HEADS, 1e-6);
        free(want);
        free(want_lse);
        kernel_call_release(&merge);
        kernel_call_release(&whole);
    }
}

/* The backward of a piece of the keys, given the log-sum-exp over all keys, yields that piece's part of the
 * gradient. */
static void key_pieces_give_parts_of_gradient(void)
{
    enum { Q = 8, KV = 10, CUT = 4, HEADS = 4, KV_HEADS = 2, DIM = 3 };
    enum { ALL = Q * HEADS * DIM, KEYS = KV * KV_HEADS * DIM };
    struct check_random random = check_random_make();
    struct work work = shape(WORK_ATTENTION, Q, KV, HEADS, KV_HEADS, DIM, MASK_CAUSAL, 2, 0);
    struct kernel_call f = kernel_call_new(work, &random);
    float *in[6] = {kernel_call_add_read(&f, ALL), kernel_call_add_read(&f, KEYS),
                    kernel_call_add_read(&f, KEYS)};
    in[3] = kernel_call_add_write(&f, ALL);
    in[4] = kernel_call_add_write(&f, Q * HEADS);
    kernel_call_run(&f);
    struct kernel_call source = kernel_call_new(work, &random);
    in[5] = kernel_call_add_read(&source, ALL);

    double dq[ALL] = {0}, dk[KEYS] = {0}, dv[KEYS] = {0};
    float whole_dq[ALL], whole_dk[KEYS], whole_dv[KEYS];
    for (int piece = 0; piece < 3; piece++) { /* the two parts, then all keys */
        int64_t from = piece == 1 ? CUT : 0, to = piece == 0 ? CUT : KV;
        int64_t keys = (to - from) * KV_HEADS * DIM, skip = from * KV_HEADS * DIM;
        struct kernel_call b = kernel_call_new(shape(WORK_ATTENTION_BACKWARD, Q, to - from, HEADS,
                                                     KV_HEADS, DIM, MASK_CAUSAL, 2 - from, 0),
                                               &random);
        memcpy(kernel_call_add_read(&b, ALL), in[0], ALL * sizeof(float));
        memcpy(kernel_call_add_read(&b, keys), in[1] + skip, (size_t)keys * sizeof(float));
        memcpy(kernel_call_add_read(&b, keys), in[2] + skip, (size_t)keys * sizeof(float));
        memcpy(kernel_call_add_read(&b, ALL), in[3], ALL * sizeof(float));
        memcpy(kernel_call_add_read(&b, Q * HEADS), in[4], Q * HEADS * sizeof(float));
        memcpy(kernel_call_add_read(&b, ALL), in[5], ALL * sizeof(float));
        float *g[3] = {kernel_call_add_write(&b, ALL), kernel_call_add_write(&b, keys),
                       kernel_call_add_write(&b, keys)};
        kernel_call_run(&b);
        if (piece == 2) {
            memcpy(whole_dq, g[0], sizeof whole_dq);
            memcpy(whole_dk, g[1], sizeof whole_dk);
            memcpy(whole_dv, g[2], sizeof whole_dv);
        }
        for (int64_t i = 0; piece < 2 && i < ALL; i++)
            dq[i] += g[0][i];
        for (int64_t i = 0; piece < 2 && i < keys; i++) {
            dk[skip + i] += g[1][i];
            dv[skip + i] += g[2][i];
        }
        kernel_call_release(&b);
    }
    check_all_near("dq", whole_dq, dq, ALL, 1e-5);
    check_all_near("dk", whole_dk, dk, KEYS, 1e-5);
    check_all_near("dv", whole_dv, dv, KEYS, 1e-5);
    kernel_call_release(&f);
    kernel_call_release(&source);
}

static const struct check_case cases[] = {
    {"forward agrees with its definition", forward_agrees_with_its_definition},
    {"backward agrees with differences", backward_agrees_with_differences},
    {"pieces merge into the whole", pieces_merge_into_the_whole},
    {"pieces share the gradient", key_pieces_give_parts_of_gradient},
};
CHECK_MAIN("cpu attention", cases)
