/* tests/cli/test_every_option.c: gives each option of each command values that it cannot take. Every such call must end
 * as bad input (or as an error of the system, such as a missing file), with one line that begins with the option (or,
 * for an option that takes KEY=VALUES, with the option KEY) or with the file that was named, and with nothing on
 * standard output or in the folder. The options come from the tables of the commands, so a new option is tested too. An
 * option that takes free text, some of which is wrong, needs a row below. */
#include "cli/command.h"

#include "tests/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SNAPSHOT TESTS_DIR "/data/snapshots/oom.pickle"
#define POINTS TESTS_DIR "/data/calibration/cpu-example.csv"
#define NONEXISTENT_FOLDER "/no/such/folder/"

enum { WORDS_MAX = 24 };

/* A correct call of each command: its arguments, then its options as pairs of name and value. */
static const struct {
    const char *command;
    const char *arguments[3];
    const char *option[6][2];
} calls[] = {
    {"predict",
     {0},
     {{"--model", "gpt2"}, {"--cluster", "ideal"}, {"--gpus", "4"}, {"--seq", "1K"}}},
    {"sweep",
     {0},
     {{"--model", "gpt2"},
      {"--cluster", "ideal"},
      {"--gpus", "4"},
      {"--seq", "1K"},
      {"--vary", "hp=1,2"}}},
    {"plan", {0}, {{"--model", "gpt2"}, {"--cluster", "ideal"}, {"--gpus", "4"}, {"--seq", "1K"}}},
    {"schedule",
     {0},
     {{"--model", "gpt2"}, {"--cluster", "ideal"}, {"--gpus", "4"}, {"--seq", "1K"}}},
    {"check", {0}, {{"--model", "gpt2"}, {"--cluster", "ideal"}, {"--gpus", "4"}, {"--seq", "1K"}}},
    {"validate", {0}, {{"--source", "torchtitan-cp"}}},
    {"reproduce", {"loongtrain:table5"}, {{"-o", "out"}}},
    {"compare", {"a", "b"}, {{0}}},
    {"bench", {0}, {{"--kinds", "add"}}},
    {"calibrate", {POINTS}, {{0}}},
    {"run", {0}, {{"--model", "gpt2"}, {"--gpus", "1"}, {"--seq", "1K"}}},
    {"plot", {"sweep", "a"}, {{"-o", "a.svg"}}},
    {"report", {"a"}, {{0}}},
    {"why",
     {SNAPSHOT},
     {{"--model", "gpt2"}, {"--cluster", "ideal"}, {"--gpus", "4"}, {"--seq", "1K"}}},
    {"list", {0}, {{0}}},
    {"help", {0}, {{0}}},
};

/* Texts that an option cannot take; command NULL: in every command. */
static const struct {
    const char *command, *option, *value;
} texts[] = {
    {NULL, "from", NONEXISTENT_FOLDER "x.toml"},
    {NULL, "model", "no-such-model"},
    {NULL, "model", NONEXISTENT_FOLDER "m.json"},
    {NULL, "set", "vocab"},
    {NULL, "set", "vcab=1"},
    {NULL, "set", "layers=0"},
    {NULL, "cluster", "no-such-cluster"},
    {NULL, "cluster", "2x4xh101"},
    {NULL, "cluster", NONEXISTENT_FOLDER "c.json"},
    {NULL, "costs", "no-such-device"},
    {NULL, "framework", ""},
    {NULL, "framework", "deepspeed"},
    {NULL, "adapter", ""},
    {NULL, "adapter", "0"},
    {NULL, "adapter", "16:q,x"},
    {NULL, "at-most", ""},
    {NULL, "at-most", "adapter,length"},
    {NULL, "measured", NONEXISTENT_FOLDER "x.toml"},
    {NULL, "strategy", "no-such-strategy"},
    {NULL, "profile", "no-such-profile"},
    {NULL, "offload-ratio", "1.5"},
    {NULL, "offload-ratio", "much"},
    {NULL, "share-units", "some"},
    {NULL, "share-units", "1,"},
    {NULL, "share-units", "-1"},
    {NULL, "core-plan", "no-such-rule"},
    {NULL, "core-plan", "chunks:0"},
    {NULL, "core-plan", "zigzag:4"},
    {NULL, "routing", "uneven"},
    {NULL, "routing", "dirichlet"},
    {NULL, "routing", "dirichlet:0,1"},
    {NULL, "routing", NONEXISTENT_FOLDER "shares.csv"},
    {NULL, "recompute-modules", "mlp,"},
    {NULL, "recompute-modules", "moe_layer"},
    {NULL, "expert-capacity", "0"},
    {NULL, "expert-capacity", "much"},
    {NULL, "expert-capacity", "1.25,drop"},
    {NULL, "recording", NONEXISTENT_FOLDER "step.json.gz"},
    {NULL, "kernel-times", NONEXISTENT_FOLDER "trace.json"},
    {NULL, "sparsity", "2"},
    {NULL, "documents", NONEXISTENT_FOLDER "lengths.csv"},
    {NULL, "documents", "lognormal:2K"},
    {NULL, "documents", "lognormal:2K,-1"},
    {NULL, "documents", "zipf:0,1K"},
    {NULL, "documents", "zipf:1.2,1G"},
    {NULL, "vary", "hp"},
    {NULL, "vary", "no-such=1"},
    {NULL, "vary", "model=gpt2,no-such"},
    {NULL, "vary", "costs=no-such"},
    {NULL, "part", "3/2"},
    {NULL, "only", "zero"},
    {NULL, "only", "zero="},
    {NULL, "only", "=1"},
    {NULL, "y-range", "3"},
    {NULL, "y-range", "5..3"},
    {NULL, "y-range", ".."},
    {NULL, "data", NONEXISTENT_FOLDER "rows"},
    {NULL, "source", "no-such-source"},
    {NULL, "device", "no-such-device"},
    {NULL, "table", "no-such-table"},
    {NULL, "system", "no-such-system"},
    {NULL, "tolerance", "much"},
    {NULL, "late-rank", "1"},
    {NULL, "late-rank", "x:20%"},
    {NULL, "late-rank", "4:20%"},
    {NULL, "late-rank", "1:-20%"},
    {"predict", "record", NONEXISTENT_FOLDER "records"},
    {NULL, "records", NONEXISTENT_FOLDER "records"},
    {NULL, "check-rows", NONEXISTENT_FOLDER "rows"},
    {NULL, "pages", NONEXISTENT_FOLDER "docs"},
    {NULL, "catalogue", NONEXISTENT_FOLDER "catalogue.json"},
    {NULL, "backend", "no-such-backend"},
    {NULL, "attention-by", "nobody"},
    {NULL, "epilogues", "some"},
    {NULL, "nccl-buffers", "some"},
    {NULL, "kinds", "no-such-kind"},
    {NULL, "dtype", "fp8"},
    {NULL, "copy-rate", "8"},
    {NULL, "message-rate", "fast"},
    {NULL, "copy-bandwidth", "8"},
    {NULL, "copy-latency", "-1 us"},
    {NULL, "message-bandwidth", "fast"},
    {NULL, "message-latency", "8"},
    {NULL, "base", "no-such-device"},
    {NULL, "host-memory-bandwidth", "8"},
    {NULL, "cluster-out", NONEXISTENT_FOLDER "c.json"},
    {"predict", "o", NONEXISTENT_FOLDER "out"},
    {"sweep", "o", NONEXISTENT_FOLDER "a.csv"},
    {"schedule", "o", NONEXISTENT_FOLDER "a.ir"},
};

/* Options whose text can only be wrong by being empty, or whose valid values depend on the data that is read. */
static const char *const anything[] = {"ignore", "name",       "title",     "o",
                                       "x",      "y",          "window",    "residuals",
                                       "record", "record-cmd", "record-dir"};

static const char *const counts[] = {"x", "1.5", "-1", "99999999999999999999", "1 ", "1e3"};
static const char *const tokens[] = {"x", "0", "-1", "1.3", "1KK", "99999999999999999999"};
static const char *const totals[] = {"x", "0", "-1", "1X", "inf"};
static const char *const numbers[] = {"x", "0", "-1", "nan", "inf", "1e999"};
static const char *const choices[] = {"no-such-choice"};
static const struct {
    const char *const *value;
    size_t count;
} bad[OPTION_KIND_COUNT] = {
    [OPTION_INTEGER] = {counts, ARRAY_LEN(counts)},
    [OPTION_TOKENS] = {tokens, ARRAY_LEN(tokens)},
    [OPTION_TRAINING_TOKENS] = {totals, ARRAY_LEN(totals)},
    [OPTION_POSITIVE_NUMBER] = {numbers, ARRAY_LEN(numbers)},
    [OPTION_CHOICE] = {choices, ARRAY_LEN(choices)},
};

static const char *folder;             /* in which the calls run */
static int output = -1, messages = -1; /* unnamed files, reused by all calls */

static int count_files(void)
{
    int count = -2; /* does not count . and .. */
    DIR *dir = opendir(folder);
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* Runs the command in a child process, as the program would; its output goes to the files `output` and `messages`.
 * Returns the status of the command (enum status); 99: the child could not use the folder or the files; -1: the files
 * could not be emptied, or a signal ended the child. */
static int run_command(int argc, char **argv)
{
    pid_t child;
    int end = 0;
    if (ftruncate(output, 0) != 0 || ftruncate(messages, 0) != 0)
        return -1;
    fflush(NULL);
    child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        const struct command *command;
        struct diag diag = {0};
        alarm(20);
        if (chdir(folder) != 0 || dup2(output, 1) < 0 || dup2(messages, 2) < 0)
            _exit(99);
        enum status status = command_find(&command, argv[0], &diag);
        if (status == STATUS_OK)
            status = command_run(command, argc - 1, argv + 1, &diag);
        if (diag.text != NULL)
            fputs(diag.text, stderr);
        fflush(NULL);
        _exit((int)status);
    }
    return waitpid(child, &end, 0) == child && WIFEXITED(end) ? WEXITSTATUS(end) : -1;
}

/* Reads the first bytes of a file into text; *size gets the size of the whole file. */
static void read_first_bytes(int file, char *text, size_t most, off_t *size)
{
    ssize_t count = pread(file, text, most - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    *size = lseek(file, 0, SEEK_END);
    lseek(file, 0, SEEK_SET);
}

/* Makes a call that is correct except for this value of this option, and checks how it ends. */
static void call_with_option_value(size_t call, const struct option *option, const char *value)
{
    char *argv[WORDS_MAX], shown[40], said[2000], label[200];
    char wrong[200], printed[8];
    int argc = 0;
    off_t size, out;
    snprintf(shown, sizeof shown, "%s%s", option->name[1] == '\0' ? "-" : "--", option->name);
    snprintf(wrong, sizeof wrong, "%s=%s", shown, value);
    if (option->name[1] == '\0')
        snprintf(wrong, sizeof wrong, "%s", value);
    snprintf(label, sizeof label, "%s %s %s", calls[call].command, shown, value);
    argv[argc++] = (char *)calls[call].command;
    for (size_t i = 0; i < ARRAY_LEN(calls[call].arguments); i++)
        if (calls[call].arguments[i] != NULL)
            argv[argc++] = (char *)calls[call].arguments[i];
    for (size_t i = 0; i < ARRAY_LEN(calls[call].option); i++) {
        const char *const *pair = calls[call].option[i];
        if (pair[0] == NULL || strcmp(pair[0], shown) == 0)
            continue;
        argv[argc++] = (char *)pair[0];
        argv[argc++] = (char *)pair[1];
    }
    if (option->name[1] == '\0')
        argv[argc++] = shown;
    argv[argc++] = wrong;

    int status = run_command(argc, argv);
    read_first_bytes(messages, said, sizeof said, &size);
    read_first_bytes(output, printed, sizeof printed, &out);
    bool refused = status == STATUS_BAD_INPUT || status == STATUS_SYSTEM;
    bool line = size > 0 && said[0] != '\0' && strchr(said, '\n') == said + size - 1;
    bool option_first = strncmp(said, shown, strlen(shown)) == 0 && said[strlen(shown)] == ':';
    bool file_first = value[0] != '\0' && strncmp(said, value, strlen(value)) == 0;
    if (option->kind ==
        OPTION_REPEATABLE) /* KEY=VALUES: the message may begin with the option KEY */
        option_first |=
            strncmp(said, "--", 2) == 0 && strncmp(said + 2, value, strcspn(value, "=")) == 0;
    if (!refused || !line || !(option_first || file_first) || out != 0 || count_files() != 0)
        printf("%s: status %d, %d bytes printed, %d files: %s\n", label, status, (int)out,
               count_files(), said);
    CHECK(label, refused);
    CHECK(label, line);
    CHECK(label, option_first || file_first);
    CHECK(label, out == 0);
    CHECK(label, count_files() == 0);
}

static void call_with_texts_of_option(size_t call, const struct option *option)
{
    size_t rows = 0;
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bool here = texts[i].command == NULL || strcmp(texts[i].command, calls[call].command) == 0;
        if (!here || strcmp(texts[i].option, option->name) != 0)
            continue;
        rows++;
        call_with_option_value(call, option, texts[i].value);
    }
    for (size_t i = 0; i < ARRAY_LEN(anything); i++)
        any |= strcmp(anything[i], option->name) == 0;
    CHECK(option->name, rows > 0 || any);
}

static void call_with_bad_option_values(size_t call, const struct option *option)
{
    char low[32], high[32];
    if (option->kind == OPTION_FLAG) {
        call_with_option_value(call, option, "yes");
        return;
    }
    call_with_option_value(call, option, "");
    if (option->kind == OPTION_TEXT || option->kind == OPTION_REPEATABLE)
        call_with_texts_of_option(call, option);
    for (size_t i = 0; i < bad[option->kind].count; i++)
        call_with_option_value(call, option, bad[option->kind].value[i]);
    if (option->kind == OPTION_INTEGER) {
        snprintf(low, sizeof low, "%lld", (long long)option->low - 1);
        call_with_option_value(call, option, low);
        if (option->high < INT64_MAX) {
            snprintf(high, sizeof high, "%lld", (long long)option->high + 1);
            call_with_option_value(call, option, high);
        }
    }
}

static void every_option_refuses_what_it_cannot_take(void)
{
    size_t count;
    const struct command *commands = command_table(&count);
    FILE *out = tmpfile(), *err = tmpfile();
    if (!CHECK("files", out != NULL && err != NULL))
        return;
    folder = check_temp_dir();
    output = fileno(out);
    messages = fileno(err);
    CHECK_INT("a call of every command", (int64_t)ARRAY_LEN(calls), (int64_t)count);
    for (size_t c = 0; c < count && c < ARRAY_LEN(calls); c++) {
        size_t call = 0;
        while (call < ARRAY_LEN(calls) && strcmp(calls[call].command, commands[c].name) != 0)
            call++;
        if (!CHECK(commands[c].name, call < ARRAY_LEN(calls)))
            continue;
        for (size_t s = 0; commands[c].option_sets[s] != NULL; s++)
            for (size_t i = 0; i < commands[c].option_sets[s]->option_count; i++)
                call_with_bad_option_values(call, &commands[c].option_sets[s]->option[i]);
    }
    fclose(out);
    fclose(err);
}

static const struct check_case cases[] = {
    {"every option refuses what it cannot take", every_option_refuses_what_it_cannot_take},
};
CHECK_MAIN("bad values", cases)
