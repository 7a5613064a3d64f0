/* tests/exec/comm_cases.h: tests of communication between ranks, on the backend that hand_backend names.
 *
 * A schedule with an op of each kind of communication but WORK_EXCHANGE is written for the number of ranks in `ranks`.
 * Its buffers are named after what they hold after the step: `in` and `odd` are inputs, `exchanged` the result of an
 * all-to-all, and so on (expected()). Each buffer of a rank is filled with input_of_rank() before the step and compared
 * with expected() after it. Included by test files only. */
#ifndef TESTS_EXEC_COMM_CASES_H
#define TESTS_EXEC_COMM_CASES_H

#include "tests/exec/hand.h"

#include "base/text.h"
#include "exec/number.h"

#include <inttypes.h>

/* EACH: the elements that a rank gives each rank, or gets from each. ODD: the elements of a buffer that is sent as a
 * whole; it does not divide over 3 or 4 ranks. */
enum { EACH = 3, ODD = 10 };

/* Returns the input at element i of a rank: a whole number, so that sums are exact in any dtype and order. */
static double input_of_rank(uint32_t rank, uint64_t i)
{
    return (double)((rank * 5 + i * 3) % 13) - 6;
}

static uint32_t ranks; /* of the schedule that runs */

static enum status fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)user;
    (void)diag;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        number_write_element(buffer->data, buffer->dtype, i, input_of_rank(buffer->rank, i));
    return STATUS_OK;
}

static double sum_of(uint64_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < ranks; r++)
        sum += input_of_rank(r, i);
    return sum;
}

static double largest_input_at(uint64_t i)
{
    double most = input_of_rank(0, i);
    for (uint32_t r = 1; r < ranks; r++)
        most = input_of_rank(r, i) > most ? input_of_rank(r, i) : most;
    return most;
}

/* Returns what element i of the buffer `name` must be on a rank after the step. */
static double expected(const char *name, uint32_t rank, uint64_t i)
{
    if (strcmp(name, "exchanged") == 0)
        return input_of_rank((uint32_t)(i / EACH), rank * EACH + i % EACH);
    if (strcmp(name, "gathered") == 0)
        return input_of_rank((uint32_t)(i / EACH), i % EACH);
    if (strcmp(name, "scattered") == 0)
        return sum_of(rank * EACH + i);
    if (strcmp(name, "summed") == 0)
        return sum_of(i);
    if (strcmp(name, "at_root") == 0) /* ranks other than the root keep their input */
        return rank == ranks / 2 ? sum_of(i) : input_of_rank(rank, i);
    if (strcmp(name, "most") == 0)
        return largest_input_at(i);
    if (strcmp(name, "cast") == 0)
        return input_of_rank(ranks - 1, i);
    if (strcmp(name, "dealt") == 0)
        return input_of_rank(ranks / 2, rank * EACH + i);
    if (strcmp(name, "next") == 0)
        return input_of_rank((rank + ranks - 1) % ranks, i);
    if (strcmp(name, "back") == 0)
        return input_of_rank((rank + 2) % ranks, i);
    if (strcmp(name, "sent") == 0) /* rank 0 receives nothing and keeps its input */
        return rank == 0 ? input_of_rank(0, i) : input_of_rank(rank - 1, i);
    return input_of_rank(rank, i); /* an input */
}

/* Compares a buffer with expected(), and counts it in *user. */
static enum status compare_buffer_with_expected(void *user, const struct exec_buffer *buffer,
                                                struct diag *diag)
{
    char name[32];
    uint32_t *looked = user;
    (void)diag;
    ir_buffer_name(buffer->ir, (buffer_id){buffer->buffer}, name, sizeof name);
    for (uint64_t i = 0; i < buffer->element_count; i++) {
        double got = number_read_element(buffer->data, buffer->dtype, i);
        if (got != expected(name, buffer->rank, i)) {
            char text[96];
            snprintf(text, sizeof text, "%s[%" PRIu64 "] on rank %" PRIu32 " of %" PRIu32, name, i,
                     buffer->rank, ranks);
            CHECK_CLOSE(text, got, expected(name, buffer->rank, i), 0);
            break;
        }
    }
    ++*looked;
    return STATUS_OK;
}

/* Writes a buffer, with a bundle of its own, so that it is filled before the step and read after it. */
static void write_buffer(struct text *text, const char *name, const char *dtype, int64_t count)
{
    text_printf(text, "tensor t.%s [1,%" PRId64 "]\n", name, count);
    text_printf(text, "bundle b.%s first=t.%s count=1 elements=%" PRId64 "\n", name, name, count);
    text_printf(text, "buffer %s hbm %s [%" PRId64 "] communication bind=param bundle=b.%s\n", name,
                dtype, count, name);
}

static void write_schedule(struct text *text, const char *dtype, int64_t size)
{
    int64_t p = ranks, all = EACH * p;
    text_printf(text,
                "longhaul schedule 1\nmesh g=%" PRId64
                "\ntokens layout=contiguous cp=1 hp=1 seq=1 batch=1 micro_batch=1 dtype=%s\n"
                "group g axes=g\nstream compute compute\nstream comm comm\nstream other comm\n",
                p, dtype);
    write_buffer(text, "in", dtype, all);
    write_buffer(text, "odd", dtype, ODD);
    write_buffer(text, "exchanged", dtype, all);
    write_buffer(text, "gathered", dtype, all);
    write_buffer(text, "scattered", dtype, EACH);
    write_buffer(text, "summed", dtype, ODD);
    write_buffer(text, "most", dtype, ODD);
    write_buffer(text, "cast", dtype, ODD);
    write_buffer(text, "next", dtype, ODD);
    write_buffer(text, "back", dtype, ODD);
    write_buffer(text, "sent", dtype, ODD);
    write_buffer(text, "dealt", dtype, EACH);
    write_buffer(text, "at_root", dtype, ODD);
    text_printf(text, "op 0 all_to_all comm group=g bytes=%" PRId64 " reads in writes exchanged\n",
                all * size);
    text_printf(text,
                "op 1 all_gather other group=g bytes=%" PRId64 " reads in[0:%d] writes gathered\n",
                EACH * size, EACH);
    text_printf(text,
                "op 2 reduce_scatter comm group=g bytes=%" PRId64 " reads in writes scattered\n",
                all * size);
    text_printf(text, "op 3 all_reduce comm group=g bytes=%" PRId64 " reads odd writes summed\n",
                ODD * size);
    text_printf(text,
                "op 4 all_reduce other group=g bytes=%" PRId64 " op=max reads most writes most\n",
                ODD * size);
    text_printf(text,
                "op 5 broadcast comm group=g bytes=%" PRId64 " root=%" PRId64
                " reads odd writes cast\n",
                ODD * size, p - 1);
    text_printf(text, "op 6 shift comm group=g by=+1 bytes=%" PRId64 " reads odd writes next\n",
                ODD * size);
    text_printf(text, "op 7 shift comm group=g by=-2 bytes=%" PRId64 " reads odd writes back\n",
                ODD * size);
    text_printf(text,
                "op 8 send other group=g by=+1 bytes=%" PRId64 " guard g<%" PRId64 " reads odd\n",
                ODD * size, p - 1);
    text_printf(text, "op 9 recv other group=g by=-1 bytes=%" PRId64 " guard g>=1 writes sent\n",
                ODD * size);
    text_printf(text, "op 10 barrier compute group=g\n");
    text_printf(text,
                "op 11 scatter other group=g bytes=%" PRId64 " root=%" PRId64
                " reads in writes dealt\n",
                all * size, p / 2);
    text_printf(text,
                "op 12 reduce comm group=g bytes=%" PRId64 " root=%" PRId64
                " reads odd writes at_root\n",
                ODD * size, p / 2);
}

/* Runs the schedule on `count` ranks. size: the bytes of an element of dtype. */
static void run_all_communication_kinds(uint32_t count, const char *dtype, int64_t size)
{
    struct text text = {0};
    struct hand h;
    uint32_t looked = 0;
    ranks = count;
    write_schedule(&text, dtype, size);
    if (hand_load(&h, text.data)) {
        h.options.measured_steps = 2;
        h.options.finds_unwritten_reads = true;
        h.io = (struct exec_io){&looked, fill_buffer, compare_buffer_with_expected,
                                0,       UINT32_MAX,  NULL};
        hand_run_and_check_message(dtype, &h, STATUS_OK, "");
        CHECK_INT("buffers looked at", looked, (int64_t)count * 13);
    }
    hand_release(&h);
    text_release(&text);
}

static void collectives_give_their_definition(void)
{
    for (uint32_t count = 1; count <= 4; count++) {
        run_all_communication_kinds(count, "f32", 4);
        run_all_communication_kinds(count, "bf16", 2);
    }
}

static void results_are_equal_over_many_ranks(void)
{
    for (uint32_t count = 5; count <= 8; count++)
        run_all_communication_kinds(count, "f32", 4);
}

/* ---- instances, and calls that differ ---- */

static const char two_axes[] =
    "longhaul schedule 1\n"
    "mesh a=2 b=3\n"
    "tokens layout=contiguous cp=1 hp=1 seq=1 batch=1 micro_batch=1 dtype=f32\n"
    "group a axes=a\ngroup b axes=b\nstream comm comm\n"
    "tensor t [1,2]\nbundle all first=t count=1 elements=2\n"
    "buffer x hbm f32 [2] communication bind=param bundle=all\n"
    "buffer y hbm f32 [2] communication bind=param bundle=all\n"
    "op 0 all_reduce comm group=a bytes=8 reads x writes y\n"
    "op 1 all_reduce comm group=b bytes=8 reads y writes y\n";

static enum status check_sum_over_both_axes(void *user, const struct exec_buffer *buffer,
                                            struct diag *diag)
{
    char name[32];
    (void)user;
    (void)diag;
    ir_buffer_name(buffer->ir, (buffer_id){buffer->buffer}, name, sizeof name);
    if (strcmp(name, "y") == 0)
        for (uint64_t i = 0; i < 2; i++)
            CHECK_CLOSE("sum over both axes", number_read_element(buffer->data, buffer->dtype, i),
                        sum_of(i), 0);
    return STATUS_OK;
}

static void instances_of_a_group_do_not_mix(void)
{
    struct hand h;
    ranks = 6;
    if (hand_load(&h, two_axes)) {
        h.io = (struct exec_io){NULL, fill_buffer, check_sum_over_both_axes, 0, UINT32_MAX, NULL};
        hand_run_and_check_message("two axes", &h, STATUS_OK, "");
    }
    hand_release(&h);
}

/* Calls of rank 1 that do not match rank 0's all_reduce of 2 elements: another kind, or fewer elements. */
static const struct {
    const char *label, *call, *message;
} odd_calls[] = {
    {"another kind", "op 1 broadcast comm group=g bytes=8 reads p0 writes q0\n",
     "calls broadcast with 2 of f32"},
    {"another size", "op 1 all_reduce comm group=g bytes=4 reads p0[0:1] writes q0[0:1]\n",
     "calls all_reduce with 1 of f32"},
};

static void group_members_must_make_same_calls(void)
{
    for (size_t i = 0; i < ARRAY_LEN(odd_calls); i++) {
        struct text text = {0};
        struct hand h;
        text_puts(&text, "longhaul schedule 1\nmesh g=2\ngroup g axes=g\n"
                         "role first axes=g:0\nrole second axes=g:1\nstream comm comm\n");
        for (int r = 0; r < 2; r++)
            text_printf(&text,
                        "buffer %c0 hbm f32 [2] communication role=%s persistent\n"
                        "buffer %c0 hbm f32 [2] communication role=%s persistent\n",
                        r ? 'p' : 'x', r ? "second" : "first", r ? 'q' : 'y',
                        r ? "second" : "first");
        text_printf(&text,
                    "ops first\nop 0 all_reduce comm group=g bytes=8 reads x0 writes y0\n"
                    "ops second\n%s",
                    odd_calls[i].call);
        if (hand_load(&h, text.data)) {
            CHECK_INT(odd_calls[i].label, hand_run(&h), STATUS_NO);
            /* either rank may be the first to notice that the calls differ */
            CHECK(odd_calls[i].label,
                  h.diag.text != NULL && (strstr(h.diag.text, odd_calls[i].message) != NULL ||
                                          strstr(h.diag.text, "calls all_reduce with 2 of f32")));
        }
        hand_release(&h);
        text_release(&text);
    }
}

static const struct check_case comm_cases[] = {
    {"collectives give what they say, 1 to 4 ranks", collectives_give_their_definition},
    {"the same over 5 to 8 ranks", results_are_equal_over_many_ranks},
    {"instances of a group are apart", instances_of_a_group_do_not_mix},
    {"members must agree", group_members_must_make_same_calls},
};

#endif
