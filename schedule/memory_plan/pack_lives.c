/* When a live range is in nobody's way any more. */
#include "schedule/memory_plan/pack.h"

#include <stdlib.h>

enum { WORD = 64 };

/* Ops with first uses of a class, as bits, and the last one before each word. */
struct first_use_bits {
    uint64_t *bit;    /* (classes, words) */
    uint32_t *before; /* (classes, words): how many ops of the list end with it; 0: there is none */
    uint32_t words;
};

static struct first_use_bits first_uses_as_bits(const struct live_ranges *t)
{
    struct first_use_bits b = {.words = t->ops / WORD + 1};
    b.bit = heap_zalloc((size_t)b.words * t->classes, sizeof *b.bit);
    b.before = heap_alloc((size_t)b.words * t->classes, sizeof *b.before);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t op = t->first_use[i] - t->begin;
        b.bit[(size_t)t->class_of[i] * b.words + op / WORD] |= UINT64_C(1) << op % WORD;
    }
    for (uint32_t c = 0; c < t->classes; c++) {
        uint32_t last = 0;
        for (uint32_t w = 0; w < b.words; w++) {
            uint64_t bits = b.bit[(size_t)c * b.words + w];
            b.before[(size_t)c * b.words + w] = last;
            if (bits != 0)
                last = w * WORD + WORD - (uint32_t)__builtin_clzll(bits);
        }
    }
    return b;
}

/* How many ops of the list end with the last first use of a class before op `end`. */
static uint32_t last_first_use(const struct first_use_bits *b, uint32_t c, uint32_t end)
{
    size_t word = (size_t)c * b->words + end / WORD;
    uint64_t bits = b->bit[word] & ((UINT64_C(1) << end % WORD) - 1);
    return bits != 0 ? end / WORD * WORD + WORD - (uint32_t)__builtin_clzll(bits) : b->before[word];
}

/* A life ends behind the last conflict with a later first use, which is sooner than the last end where first uses
 * of a class are far between. */
static struct life life_of(const struct live_ranges *t, const struct first_use_bits *bits,
                           uint32_t i)
{
    const uint32_t *end = live_ranges_ends(t, i);
    uint32_t last = t->first_use[i] + 1;
    for (uint32_t c = 0; c < t->classes; c++) {
        if (end[c] <= last)
            continue;
        uint32_t behind = end[c] - t->begin < t->ops ? end[c] - t->begin : t->ops;
        uint32_t op = t->begin + last_first_use(bits, c, behind);
        last = op > last ? op : last;
    }
    return (struct life){t->first_use[i], last};
}

struct life *pack_lives_of(const struct live_ranges *t)
{
    struct life *life = heap_alloc(t->count, sizeof *life);
    struct first_use_bits bits = first_uses_as_bits(t);
    for (uint32_t i = 0; i < t->count; i++)
        life[i] = life_of(t, &bits, i);
    free(bits.bit);
    free(bits.before);
    return life;
}
