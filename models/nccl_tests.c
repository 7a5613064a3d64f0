#include "models/nccl_tests.h"

#include "base/c_locale.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 24, HOSTS_MAX = 1024, RANKS_MAX = 1 << 20 };

/* The largest message size in bytes that is read; no memory is as large. */
static const int64_t SIZE_LIMIT = (int64_t)1 << 50;

/* The programs of nccl-tests, and the collective of a schedule that each measures. */
static const struct {
    const char *program_name;
    enum work_kind kind;
    /* a rank sends the printed size divided by the number of ranks; false: a rank sends the printed size */
    bool is_size_of_all_ranks;
} tests[] = {
    {"all_reduce_perf", WORK_ALL_REDUCE, false},
    {"all_gather_perf", WORK_ALL_GATHER, true},
    {"reduce_scatter_perf", WORK_REDUCE_SCATTER, false},
    {"alltoall_perf", WORK_ALL_TO_ALL, false},
    {"broadcast_perf", WORK_BROADCAST, false},
    {"sendrecv_perf", WORK_SHIFT, false},
    {"reduce_perf", WORK_REDUCE, false},
};

/* A word of a line, in the text that is read. */
struct nccl_tests_word {
    const char *text;
    size_t size;
};

/* The state of reading a text, which may hold the outputs of several programs of nccl-tests. */
struct nccl_tests_reader {
    struct points *points;
    struct diag *diag;
    int64_t min_bytes;
    int test_index;     /* row of tests; -1: not known yet */
    int64_t rank_count; /* number of ranks that this header has listed so far */
    size_t host_count;
    struct nccl_tests_word host[HOSTS_MAX];
    /* indices of columns; -1: the line of column names has not been read yet */
    int size_column, type_column, time_column;
    size_t column_count;
    size_t row_count;
    bool has_rows_after_rank_list; /* a row was read after the last list of ranks */
    /* sizes of the first and the last row below the names of columns; -1: none yet */
    int64_t first_row_bytes, last_row_bytes;
};

static bool word_is(struct nccl_tests_word word, const char *text)
{
    return strlen(text) == word.size && memcmp(word.text, text, word.size) == 0;
}

static size_t split_words(const char *line, size_t size, struct nccl_tests_word *words)
{
    size_t count = 0, at = 0;
    while (at < size && count < WORDS_MAX) {
        while (at < size && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r'))
            at++;
        size_t begin = at;
        while (at < size && line[at] != ' ' && line[at] != '\t' && line[at] != '\r')
            at++;
        if (at > begin)
            words[count++] = (struct nccl_tests_word){line + begin, at - begin};
    }
    return count;
}

static int find_test(struct nccl_tests_word word)
{
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (word_is(word, tests[i].program_name))
            return (int)i;
    return -1;
}

/* Reports that the lines of two runs alternate, so that it is not known to which run a row belongs. why: what shows it,
 * in words. */
static enum status refuse_mixed_runs(const struct nccl_tests_reader *table, struct loc at,
                                     const char *why)
{
    return diag_error(table->diag, at, STATUS_BAD_INPUT,
                      "%s: the lines of two runs are mixed here; write the output of each run to a "
                      "file of its own",
                      why);
}

/* Reads "Rank  0 Group  0 Pid  1234 on  node1 device  0 [0x07] NVIDIA H100": the host follows "on". A run lists its
 * ranks in order, from 0. */
static enum status read_rank(struct nccl_tests_reader *table, struct loc at,
                             const struct nccl_tests_word *words, size_t count)
{
    int64_t rank;
    if (table->has_rows_after_rank_list) { /* the list of ranks of another run begins */
        table->rank_count = 0;
        table->host_count = 0;
        table->has_rows_after_rank_list = false;
        table->size_column = -1; /* the column names of that run follow later */
    }
    if (count < 2 || !parse_i64(words[1].text, words[1].size, &rank))
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "expected the number of a rank after 'Rank'");
    if (rank != table->rank_count) {
        char why[80];
        c_snprintf(why, sizeof why, "rank %lld is listed where rank %lld would follow",
                   (long long)rank, (long long)table->rank_count);
        return refuse_mixed_runs(table, at, why);
    }
    size_t on = 0;
    while (on < count && !word_is(words[on], "on"))
        on++;
    if (on + 1 >= count)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "this line names a rank and not the host on which it ran");
    if (++table->rank_count > RANKS_MAX)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "the output lists more than %d ranks, the most that are read", RANKS_MAX);
    struct nccl_tests_word host = words[on + 1];
    for (size_t i = 0; i < table->host_count; i++)
        if (table->host[i].size == host.size &&
            memcmp(table->host[i].text, host.text, host.size) == 0)
            return STATUS_OK;
    if (table->host_count == HOSTS_MAX)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "the output lists more than %d hosts, the most that are read", HOSTS_MAX);
    table->host[table->host_count++] = host;
    return STATUS_OK;
}

/* Finds the columns in "size count type redop root time algbw busbw #wrong time ...". The first column `time` counts,
 * that of the out-of-place call. */
static void read_columns(struct nccl_tests_reader *table, const struct nccl_tests_word *words,
                         size_t count)
{
    table->column_count = count;
    table->size_column = table->type_column = table->time_column = -1;
    table->first_row_bytes = table->last_row_bytes = -1;
    for (size_t i = count; i-- > 0;) {
        if (word_is(words[i], "size"))
            table->size_column = (int)i;
        else if (word_is(words[i], "type"))
            table->type_column = (int)i;
        else if (word_is(words[i], "time"))
            table->time_column = (int)i;
    }
}

static enum status read_comment(struct nccl_tests_reader *table, struct loc at,
                                const struct nccl_tests_word *words, size_t count)
{
    if (count == 0)
        return STATUS_OK;
    if (word_is(words[0], "Rank"))
        return read_rank(table, at, words, count);
    if (word_is(words[0], "size")) {
        read_columns(table, words, count);
        if (table->type_column < 0 || table->time_column < 0)
            return diag_error(table->diag, at, STATUS_BAD_INPUT,
                              "a table of nccl-tests has the columns size, type and time");
    }
    if (count >= 4 && word_is(words[0], "Collective") && word_is(words[1], "test") &&
        word_is(words[2], "starting:")) {
        table->test_index = find_test(words[3]);
        if (table->test_index < 0)
            return diag_error(table->diag, at, STATUS_BAD_INPUT,
                              "'%.*s' tests a collective that no schedule uses",
                              (int)(words[3].size < 60 ? words[3].size : 60), words[3].text);
    }
    return STATUS_OK;
}

/* Returns the dtype of a type of nccl-tests; DTYPE_U8 for types that no dtype has, since only bytes matter. */
static enum dtype dtype_of_nccl_type(struct nccl_tests_word word)
{
    static const struct {
        const char *name;
        enum dtype dtype;
    } names[] = {
        {"float", DTYPE_F32},  {"half", DTYPE_F16},  {"bfloat16", DTYPE_BF16},
        {"double", DTYPE_F64}, {"int32", DTYPE_I32},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (word_is(word, names[i].name))
            return names[i].dtype;
    return DTYPE_U8;
}

static enum status read_row(struct nccl_tests_reader *table, struct loc at,
                            const struct nccl_tests_word *words, size_t count)
{
    int64_t size;
    double time_us;
    if (table->test_index < 0)
        return diag_error(
            table->diag, at, STATUS_BAD_INPUT,
            "the output does not say which test printed it; write its name before the "
            "file: all_reduce_perf:FILE");
    if (table->size_column < 0)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "this row stands before the line that names the columns");
    if (table->rank_count < 2)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "%lld ranks are listed above; a message needs two",
                          (long long)table->rank_count);
    if (count != table->column_count)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "this row has %zu values, but the line of column names has %zu columns",
                          count, table->column_count);
    if (!parse_i64(words[table->size_column].text, words[table->size_column].size, &size) ||
        size < 0)
        return diag_error(
            table->diag, at, STATUS_BAD_INPUT, "'%.*s' is no size in bytes",
            (int)(words[table->size_column].size < 60 ? words[table->size_column].size : 60),
            words[table->size_column].text);
    if (size > SIZE_LIMIT)
        return diag_error(table->diag, at, STATUS_BAD_INPUT,
                          "the size is %lld bytes; messages of at most %lld bytes (1 PiB) are read",
                          (long long)size, (long long)SIZE_LIMIT);
    /* Sizes ascend in a run; with --run_cycles they begin again with the first one. */
    if (size <= table->last_row_bytes && size != table->first_row_bytes)
        return refuse_mixed_runs(table, at, "the sizes of the rows do not ascend");
    if (table->first_row_bytes < 0)
        table->first_row_bytes = size;
    table->last_row_bytes = size;
    struct nccl_tests_word time = words[table->time_column];
    if (!parse_double(time.text, time.size, &time_us) || !(time_us >= 0 && time_us < 1e12))
        return diag_error(table->diag, at, STATUS_BAD_INPUT, "'%.*s' is no time in us",
                          (int)(time.size < 60 ? time.size : 60), time.text);
    table->has_rows_after_rank_list = true;
    int64_t bytes = tests[table->test_index].is_size_of_all_ranks ? size / table->rank_count : size;
    if (size < table->min_bytes || bytes == 0 || time_us == 0)
        return STATUS_OK;
    struct point point = {
        .at = at,
        .role = POINT_WORK,
        .attention_impl = POINT_NO_IMPL,
        .nodes = (uint16_t)table->host_count,
        .median_s = time_us * 1e-6,
        .p10_s = time_us * 1e-6,
        .p90_s = time_us * 1e-6,
        .repeats = 1,
    };
    struct work *work = &point.work;
    work->kind = (uint8_t)tests[table->test_index].kind;
    work->in = work->out = (uint8_t)dtype_of_nccl_type(words[table->type_column]);
    work->p[0] = table->rank_count;
    if (work->kind == WORK_SHIFT) {
        work->p2p.by = 1;
        work->p2p.bytes = bytes;
    } else {
        work->p[1] = bytes;
    }
    points_add(table->points, &point);
    table->row_count++;
    return STATUS_OK;
}

/* Returns the size of the prefix that a launcher put before a line: "[1,0]<stdout>:" (mpirun --tag-output), "[0]"
 * (mpiexec -prepend-rank), "0:" (srun --label); 0: there is none. Blanks after the prefix are not counted. */
static size_t launcher_tag_size(const char *line, size_t size)
{
    static const char *const streams[] = {"<stdout>:", "<stderr>:"};
    size_t at = 0;
    bool bracket = size > 0 && line[0] == '[';
    for (at = bracket; at < size && (c_is_digit(line[at]) || (bracket && line[at] == ',')); at++)
        ;
    if (at == (size_t)bracket || at == size)
        return 0;
    if (!bracket)
        return line[at] == ':' ? at + 1 : 0;
    if (line[at++] != ']')
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        size_t length = strlen(streams[i]);
        if (size - at >= length && memcmp(line + at, streams[i], length) == 0)
            return at + length;
    }
    return at < size && line[at] == ' ' ? at : 0;
}

/* Reads one line of the output. A row of the table starts with a whole number; other lines between rows, which mpirun
 * or NCCL_DEBUG print, are skipped. */
static enum status read_line(struct nccl_tests_reader *table, struct loc at, const char *line,
                             size_t size)
{
    struct nccl_tests_word words[WORDS_MAX];
    for (int tagged = 0; tagged < 2; tagged++) {
        while (size > 0 && (*line == ' ' || *line == '\t')) {
            line++;
            size--;
        }
        size_t tag = tagged == 0 ? launcher_tag_size(line, size) : 0;
        line += tag;
        size -= tag;
    }
    if (size > 0 && *line == '#') {
        size_t count = split_words(line + 1, size - 1, words);
        return read_comment(table, at, words, count);
    }
    size_t count = split_words(line, size, words);
    bool number = count > 0;
    for (size_t i = 0; number && i < words[0].size; i++)
        number = words[0].text[i] >= '0' && words[0].text[i] <= '9';
    return number ? read_row(table, at, words, count) : STATUS_OK;
}

bool nccl_tests_recognise(const char *data, size_t size)
{
    static const char *const marks[] = {"nThread", "nccl-tests", "algbw"};
    size_t end = size < 65536 ? size : 65536;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        for (size_t at = 0, length = strlen(marks[i]); at + length <= end; at++)
            if (memcmp(data + at, marks[i], length) == 0)
                return true;
    return false;
}

enum status nccl_tests_parse(struct points *points, const char *name, const char *data, size_t size,
                             const char *test, int64_t min_bytes, struct diag *diag)
{
    struct nccl_tests_reader *table = heap_zalloc(1, sizeof *table);
    struct loc at = {.name = arena_text(&points->arena, name, strlen(name)), .line = 1};
    *table = (struct nccl_tests_reader){
        .points = points,
        .diag = diag,
        .min_bytes = min_bytes,
        .test_index = test ? find_test((struct nccl_tests_word){test, strlen(test)}) : -1,
        .size_column = -1,
        .type_column = -1,
        .time_column = -1,
        .first_row_bytes = -1,
        .last_row_bytes = -1};
    enum status status = STATUS_OK;
    if (test && table->test_index < 0)
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "'%s' tests a collective that no schedule uses; all_reduce_perf, "
                            "all_gather_perf, reduce_scatter_perf, alltoall_perf, broadcast_perf, "
                            "sendrecv_perf and reduce_perf are known",
                            test);
    for (size_t begin = 0; begin < size && status == STATUS_OK; at.line++) {
        const char *end = memchr(data + begin, '\n', size - begin);
        size_t length = end ? (size_t)(end - data) - begin : size - begin;
        status = read_line(table, at, data + begin, length);
        begin += length + 1;
    }
    if (status == STATUS_OK && table->row_count == 0)
        status =
            diag_error(diag, (struct loc){.name = at.name}, STATUS_BAD_INPUT,
                       "holds no row of nccl-tests of at least %lld bytes", (long long)min_bytes);
    free(table);
    return status;
}

enum status nccl_tests_load(struct points *points, const char *path, const char *test,
                            int64_t min_bytes, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = nccl_tests_parse(points, path, text.data ? text.data : "", text.size, test,
                                  min_bytes, diag);
    text_release(&text);
    return status;
}
