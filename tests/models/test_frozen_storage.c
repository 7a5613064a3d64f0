/* tests/models/test_frozen_storage.c: how bitsandbytes stores frozen weights: sizes by hand; codes, scales and values
 * to the bit. */
#include "models/frozen_storage.h"

#include "base/arena.h"
#include "base/digest.h"
#include "base/text.h"
#include "tests/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *label;
    enum frozen_storage storage;
    int64_t rows, cols;
    uint64_t code_bytes, scale_bytes;
} sizes[] = {
    /* label, storage, rows, cols, code_bytes, scale_bytes */
    {"two blocks of 64", FROZEN_STORAGE_NF4, 2, 64, 64, 8},
    {"a third one begun", FROZEN_STORAGE_NF4, 1, 130, 65, 12},
    {"8-bit scales, padded, one fp32 scale and the offset", FROZEN_STORAGE_NF4_DOUBLE, 2, 64, 64,
     12},
    {"257 scales in two groups", FROZEN_STORAGE_NF4_DOUBLE, 257, 64, 8224, 272},
    {"a scale for a row", FROZEN_STORAGE_INT8, 3, 5, 15, 12},
    /* nf4 takes 0.5 + 4 / 64 bytes a weight; doubly quantised, 0.5 + 1 / 64 + 4 / (64 * 256), and 4
     * bytes for the offset */
    {"a product of Llama 3 8B", FROZEN_STORAGE_NF4, 14336, 4096, 29360128, 3670016},
    {"the same, doubly quantised", FROZEN_STORAGE_NF4_DOUBLE, 14336, 4096, 29360128, 931844},
};

static void frozen_sizes_match_bitsandbytes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const uint64_t count = (uint64_t)(sizes[i].rows * sizes[i].cols);
        CHECK_INT(sizes[i].label, (int64_t)frozen_storage_code_bytes(sizes[i].storage, count),
                  (int64_t)sizes[i].code_bytes);
        CHECK_INT(
            sizes[i].label,
            (int64_t)frozen_storage_scale_bytes(sizes[i].storage, sizes[i].rows, sizes[i].cols),
            (int64_t)sizes[i].scale_bytes);
    }
}

static enum frozen_storage storage_of_name(const char *name)
{
    enum frozen_storage storage = FROZEN_STORAGE_16BIT;
    while (storage < FROZEN_STORAGE_COUNT && strcmp(frozen_storage_names[storage], name) != 0)
        storage++;
    return storage;
}

/* Returns the i-th weight of the matrices that tests/scripts/stored_weights.py stores. */
static double weight(int64_t i)
{
    return ldexp((double)((7919 * i) % 2003 - 1001) / 1024, -(int)(i / 64 % 5));
}

/* Checks that data has the recorded digest; `what` names the data in a failure. */
static void check_digest_of_data(const char *label, const char *what, const char *theirs,
                                 const void *data, size_t size)
{
    char row_and_what[128], ours[24];
    snprintf(row_and_what, sizeof row_and_what, "%s: %s", label, what);
    snprintf(ours, sizeof ours, "%016" PRIx64, digest_add(DIGEST_OF_NO_BYTES, data, size));
    CHECK_TEXT(row_and_what, ours, theirs);
}

/* Codes, scales and values are bitsandbytes' to the bit. tests/scripts/stored_weights.py recorded the rows of
 * tests/data/pytorch/stored_weights.csv: three shapes in three forms. */
static void weights_are_stored_as_bitsandbytes_does(void)
{
    struct text csv = {0};
    struct diag diag = {0};
    int rows_read = 0;
    CHECK_INT("csv", text_read(&csv, check_path("data/pytorch/stored_weights.csv"), &diag),
              STATUS_OK);
    for (char *line = strchr(csv.data, '\n') + 1, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        char label[96], name[16], row_text[24], col_text[24], theirs[3][24];
        uint64_t rows = 0, cols = 0;
        snprintf(label, sizeof label, "%.*s", (int)(end - line), line);
        if (!CHECK_INT(label,
                       sscanf(label, "%15[^,],%23[^,],%23[^,],%23[^,],%23[^,],%23[^,\n]", name,
                              row_text, col_text, theirs[0], theirs[1], theirs[2]),
                       6) ||
            !CHECK(label, parse_u64(row_text, strlen(row_text), &rows) &&
                              parse_u64(col_text, strlen(col_text), &cols)))
            break;
        const enum frozen_storage storage = storage_of_name(name);
        const size_t count = (size_t)(rows * cols);
        const size_t code_bytes = frozen_storage_code_bytes(storage, count);
        const size_t scale_bytes =
            frozen_storage_scale_bytes(storage, (int64_t)rows, (int64_t)cols);
        double *w = heap_alloc(count, sizeof *w);
        float *values = heap_alloc(count, sizeof *values);
        uint8_t *codes = heap_zalloc(code_bytes, 1), *scales = heap_zalloc(scale_bytes, 1);
        for (size_t i = 0; i < count; i++)
            w[i] = weight((int64_t)i);
        frozen_storage_encode(storage, (int64_t)rows, (int64_t)cols, w, codes, scales);
        frozen_storage_decode(storage, (int64_t)rows, (int64_t)cols, codes, scales, values);
        check_digest_of_data(label, "codes", theirs[0], codes, code_bytes);
        check_digest_of_data(label, "scales", theirs[1], scales, scale_bytes);
        check_digest_of_data(label, "values", theirs[2], values, count * sizeof *values);
        free(w);
        free(values);
        free(codes);
        free(scales);
        rows_read++;
    }
    CHECK_INT("rows: 3 shapes in 3 forms", rows_read, 9);
    text_release(&csv);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"sizes are bitsandbytes'", frozen_sizes_match_bitsandbytes},
    {"weights are stored as bitsandbytes does", weights_are_stored_as_bitsandbytes_does},
};
CHECK_MAIN("frozen_storage", cases)
