/* The embedding, which looks up rows of a table, and the cross-entropy loss. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fast_exp.h"
#include "exec/cpu/lanes.h"

#include <math.h>
#include <string.h>

const char *cpu_embedding(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t cols = work->embedding.cols;
    const int32_t *token = call->read[0].data;
    const float *table = call->read[1].data; /* (vocab, cols): rows first .. first + vocab - 1 */
    const int64_t first =
        work->embedding.first + call->index_in_sharding_group * work->embedding.vocab;
    for (int64_t i = 0; i < work->embedding.rows; i++) {
        float *y = (float *)call->write[0].data + i * cols;
        int64_t row = token[i] - first;
        if (row >= 0 && row < work->embedding.vocab)
            memmove(y, table + row * cols, (size_t)cols * sizeof *y);
        else
            memset(y, 0, (size_t)cols * sizeof *y);
    }
    return NULL;
}

const char *cpu_embedding_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t cols = work->embedding.cols;
    const int32_t *token = call->read[1].data;
    const int64_t first =
        work->embedding.first + call->index_in_sharding_group * work->embedding.vocab;
    float *table = call->write[0].data;
    size_t bytes = (size_t)(work->embedding.vocab * cols) * sizeof *table;
    if (call->read_count < 3)
        memset(table, 0, bytes);
    else if (call->read[2].data != table)
        memmove(table, call->read[2].data, bytes);
    for (int64_t i = 0; i < work->embedding.rows; i++) {
        const float *dy = (const float *)call->read[0].data + i * cols;
        int64_t row = token[i] - first;
        for (int64_t j = 0; row >= 0 && row < work->embedding.vocab && j < cols; j++)
            table[row * cols + j] += dy[j];
    }
    if (call->write_count > 1)
        memset(call->write[1].data, 0, call->write[1].element_count * sizeof *table);
    return NULL;
}

enum { IGNORED = -1 }; /* the label of a row that does not count */

static const char BAD_LABEL[] = "meets a label that is neither -1 nor in the vocabulary";

static double sum_exp(const float *x, int64_t count, float top)
{
    enum { BLOCK = 1024 };
    float e[BLOCK];
    double sum = 0;
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        int64_t n = begin + BLOCK < count ? BLOCK : count - begin;
        for (int64_t j = 0; j < n; j++)
            e[j] = fast_exp(x[begin + j] - top);
        sum += sum_of_lanes(e, n);
    }
    return sum;
}

const char *cpu_cross_entropy(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->cross_entropy.rows, vocab = work->cross_entropy.vocab;
    const int32_t *label = call->read[1].data;
    float *loss = call->write[0].data, *lse = call->write[1].data;
    float *softmax =
        call->write_count > 2 && call->write[2].dtype != DTYPE_U8 ? call->write[2].data : NULL;
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * vocab;
        float top = largest_of_lanes(x, vocab);
        double total = sum_exp(x, vocab, top);
        double l = top + log(total);
        if (label[i] < IGNORED || label[i] >= vocab)
            return BAD_LABEL;
        if (label[i] != IGNORED)
            sum += l - x[label[i]];
        lse[i] = (float)l;
        float scale = (float)(1 / total);
        for (int64_t j = 0; softmax != NULL && j < vocab; j++)
            softmax[i * vocab + j] = fast_exp(x[j] - top) * scale;
    }
    double before = work->cross_entropy.accumulate ? *(const float *)call->read[2].data : 0;
    *loss = (float)(before + sum / (double)work->cross_entropy.count);
    return NULL;
}

const char *cpu_cross_entropy_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->cross_entropy.rows, vocab = work->cross_entropy.vocab;
    const int32_t *label = call->read[1].data;
    const float scale = (float)(1 / (double)work->cross_entropy.count);
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * vocab;
        float *dx = (float *)call->write[0].data + i * vocab; /* may be x */
        if (label[i] < IGNORED || label[i] >= vocab)
            return BAD_LABEL;
        if (label[i] == IGNORED) {
            memset(dx, 0, (size_t)vocab * sizeof *dx);
            continue;
        }
        if (call->reads_softmax) {
            for (int64_t j = 0; j < vocab; j++)
                dx[j] = x[j] * scale;
        } else {
            float top = largest_of_lanes(x, vocab);
            float each = scale * (float)(1 / sum_exp(x, vocab, top));
            for (int64_t j = 0; j < vocab; j++)
                dx[j] = fast_exp(x[j] - top) * each;
        }
        dx[label[i]] -= scale;
    }
    return NULL;
}

/* Returns how many columns of a rank's part, of `vocab` columns from token `first` on, belong to tokens of the
 * vocabulary; the rest is padding. total: the size of the vocabulary; 0: no column is padding. */
static int64_t vocabulary_columns(int64_t vocab, int64_t first, int64_t total)
{
    int64_t left = total > 0 ? total - first : vocab;
    return left < 0 ? 0 : left < vocab ? left : vocab;
}

/* Computes the statistics of this part of the vocabulary, (rows, 3): the largest logit, the sum of exponentials
 * relative to it, and the label's logit (0 if the label is in another part, or does not count). */
const char *cpu_cross_entropy_partial(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->loss_partial.rows, vocab = work->loss_partial.vocab;
    const int64_t first = work->loss_partial.first + call->index_in_sharding_group * vocab;
    const int64_t columns = vocabulary_columns(vocab, first, work->loss_partial.total);
    const int32_t *label = call->read[1].data;
    float *stats = call->write[0].data;
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * vocab;
        float top = columns > 0 ? largest_of_lanes(x, columns) : -INFINITY;
        int64_t mine = label[i] - first;
        stats[3 * i] = top;
        stats[3 * i + 1] = columns > 0 ? (float)sum_exp(x, columns, top) : 0;
        stats[3 * i + 2] = label[i] != IGNORED && mine >= 0 && mine < columns ? x[mine] : 0;
    }
    return NULL;
}

/* Merges the statistics of all parts of the vocabulary, which an all-gather has put together as (parts, rows, 3).
 * Writes the log-sum-exp of each row. Adds the losses of the rows that count, divided by the number of rows that count
 * in the whole batch (a parameter), to the loss so far, if there is one. */
const char *cpu_cross_entropy_finish(const struct call *call, float *scratch)
{
    (void)scratch;
    const int64_t rows = call->work->p[0];
    const int64_t parts = (int64_t)call->read[2].element_count / (3 * rows);
    const int32_t *label = call->read[1].data;
    const float *stats = call->read[2].data;
    float *loss = call->write[0].data, *lse = call->write[1].data;
    double sum = 0;
    if (parts < 1 || (int64_t)call->read[2].element_count != parts * 3 * rows)
        return "reads statistics that are not 3 of every row and part";
    for (int64_t i = 0; i < rows; i++) {
        double top = -INFINITY, total = 0, target = 0;
        for (int64_t p = 0; p < parts; p++)
            top = fmax(top, stats[3 * (p * rows + i)]);
        for (int64_t p = 0; p < parts; p++) {
            const float *part = stats + 3 * (p * rows + i);
            /* the sum of a part without columns is 0 */
            total += part[1] > 0 ? part[1] * exp(part[0] - top) : 0;
            target += part[2];
        }
        lse[i] = (float)(top + log(total));
        if (label[i] != IGNORED)
            sum += top + log(total) - target;
    }
    double before = call->work->p[4] ? *(const float *)call->read[3].data : 0;
    *loss = (float)(before + sum / (double)call->work->p[2]);
    return NULL;
}

/* Computes the gradient of the logits of one part of the vocabulary, from the log-sum-exp over all parts. */
const char *cpu_cross_entropy_partial_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->loss_backward.rows, vocab = work->loss_backward.vocab;
    const int64_t first = work->loss_backward.first + call->index_in_sharding_group * vocab;
    const int64_t columns = vocabulary_columns(vocab, first, work->loss_backward.total);
    const int32_t *label = call->read[1].data;
    const float *lse = call->read[2].data;
    const float scale = (float)(1 / (double)work->loss_backward.count);
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * vocab;
        float *dx = (float *)call->write[0].data + i * vocab; /* may be x */
        int64_t mine = label[i] - first, some = label[i] == IGNORED ? 0 : columns;
        for (int64_t j = 0; j < some; j++)
            dx[j] = fast_exp(x[j] - lse[i]) * scale;
        memset(dx + some, 0, (size_t)(vocab - some) * sizeof *dx);
        if (mine >= 0 && mine < some)
            dx[mine] -= scale;
    }
    return NULL;
}
