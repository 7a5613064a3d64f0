/* tests/base/test_text.c: texts grow by pieces of any kind, numbers print exactly, and files are read and saved as a
 * whole or not at all. */
#include "base/file_set.h"
#include "base/text.h"
#include "tests/check.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *temp_path(const char *name)
{
    static struct text path;
    path.size = 0;
    text_printf(&path, "%s/%s", check_temp_dir(), name);
    return path.data;
}

static void check_file(const char *label, const char *path, const char *want)
{
    struct text text = {0};
    struct diag diag = {0};
    CHECK_INT(label, text_read(&text, path, &diag), STATUS_OK);
    CHECK_TEXT(label, text.data, want);
    text_release(&text);
    diag_release(&diag);
}

static void check_refused(const char *label, const char *path, const char *message)
{
    struct diag diag = {0};
    CHECK_INT(label, file_set_write_single_file(path, "new", 3, &diag), STATUS_SYSTEM);
    CHECK_TEXT(label, diag.text, message);
    diag_release(&diag);
}

static void text_grows_by_any_kind_of_piece(void)
{
    struct text text = {0};
    text_puts(&text, "a");
    text_putc(&text, 'b');
    text_append(&text, "c\0d", 3);
    text_printf(&text, "%d", 5);
    CHECK_INT("size", (int64_t)text.size, 6);
    CHECK("bytes", memcmp(text.data, "abc\0d5", 7) == 0);
    text_release(&text);
    CHECK("released", text.data == NULL && text.size == 0);
    for (int i = 0; i < 100000; i++)
        text_puts(&text, "0123456789");
    CHECK_INT("large", (int64_t)text.size, 1000000);
    text_release(&text);
}

static void integers_print_in_full(void)
{
    static const int64_t values[] = {0, 7, -7, 10, 1234567890, INT64_MAX, INT64_MIN};
    struct text text = {0};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        text_put_i64(&text, values[i]);
        text_putc(&text, ' ');
    }
    CHECK_TEXT("all", text.data, "0 7 -7 10 1234567890 9223372036854775807 -9223372036854775808 ");
    text_release(&text);
}

static void doubles_print_shortest(void)
{
    static const struct {
        double value;
        const char *want;
    } rows[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {-2, "-2"},
        {524288, "524288"},
        {999999999999999, "999999999999999"},
        {1e15, "1e+15"},
        {1.5e-6, "1.5e-06"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "5e-324"},
        {0x1p-1022, "2.2250738585072014e-308"},
        {12345678901234.5, "12345678901234.5"},
        {0x1.0000000000001p54, "18014398509481988"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {-0.0001234, "-0.0001234"},
        {0.00001234, "1.234e-05"},
        {-1e100, "-1e+100"},
        {1234.5, "1234.5"},
        {0x1p53, "9007199254740992"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        text_put_double(&text, rows[i].value);
        CHECK_TEXT(rows[i].want, text.data, rows[i].want);
        text_release(&text);
    }
    struct check_random random = check_random_make();
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = check_random_u64(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        struct text text = {0};
        text_put_double(&text, value);
        double again = strtod(text.data, NULL);
        if (again != value && !CHECK("reads back", again == value))
            printf(" %s", text.data);
        text_release(&text);
    }
}

static void a_saved_file_reads_back(void)
{
    const char *path = temp_path("file");
    struct diag diag = {0};
    CHECK_INT("new", file_set_write_single_file(path, "one\n", 4, &diag), STATUS_OK);
    check_file("new", path, "one\n");
    CHECK_INT("mode", chmod(path, 0640), 0);
    CHECK_INT("replaced", file_set_write_single_file(path, "two\n", 4, &diag), STATUS_OK);
    check_file("replaced", path, "two\n");
    struct stat info;
    CHECK("stat", stat(path, &info) == 0);
    CHECK_INT("mode kept", info.st_mode & 0777, 0640);
    CHECK_INT("empty", file_set_write_single_file(path, "", 0, &diag), STATUS_OK);
    check_file("empty", path, "");
    CHECK_INT("no messages", (int64_t)diag.size, 0);
}

static void saving_keeps_a_symbolic_link(void)
{
    struct diag diag = {0};
    struct text link = {0};
    text_puts(&link, temp_path("link"));
    const char *target = temp_path("target");
    CHECK_INT("target", file_set_write_single_file(target, "old", 3, &diag), STATUS_OK);
    CHECK_INT("symlink", symlink("target", link.data), 0);
    CHECK_INT("save", file_set_write_single_file(link.data, "new", 3, &diag), STATUS_OK);
    check_file("behind the link", temp_path("target"), "new");
    struct stat info;
    CHECK("still a link", lstat(link.data, &info) == 0 && S_ISLNK(info.st_mode));
    unlink(temp_path("target"));
    struct text message = {0};
    text_printf(&message,
                "%s: error: cannot write: this is a symbolic link whose target does not exist\n",
                link.data);
    check_refused("dangling", link.data, message.data);
    text_release(&message);
    text_release(&link);
}

static void unwritable_files_are_reported(void)
{
    check_refused("full device", "/dev/full",
                  "/dev/full: error: cannot write: No space left on device\n");
    check_refused("no folder", "/no/such/file",
                  "/no/such/file: error: cannot write: No such file or directory\n");
    check_refused("a folder", "/tmp", "/tmp: error: cannot write: Is a directory\n");
    struct diag diag = {0};
    CHECK_INT("device", file_set_write_single_file("/dev/null", "x", 1, &diag), STATUS_OK);
    diag_release(&diag);
}

static size_t count_entries_of_temp_dir(void)
{
    struct text command = {0}, out = {0};
    text_printf(&command, "ls -A '%s' | wc -l", check_temp_dir());
    FILE *pipe = popen(command.data, "r");
    size_t count = 0;
    CHECK("ls", pipe && fscanf(pipe, "%zu", &count) == 1); /* NOLINT(cert-err34-c) */
    if (pipe)
        pclose(pipe);
    text_release(&command);
    text_release(&out);
    return count;
}

/* A limit on file sizes has the effect of a full disk: writing fails in the middle of the file. */
static void a_full_disk_leaves_the_old_file(void)
{
    struct diag diag = {0};
    const char *path = temp_path("precious");
    CHECK_INT("old", file_set_write_single_file(path, "old", 3, &diag), STATUS_OK);
    size_t entries = count_entries_of_temp_dir();

    char *data = heap_zalloc(1 << 16, 1);
    struct rlimit before, small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    enum status status = file_set_write_single_file(path, data, 1 << 16, &diag);
    setrlimit(RLIMIT_FSIZE, &before);
    free(data);

    CHECK_INT("refused", status, STATUS_SYSTEM);
    CHECK("message",
          diag.text && strstr(diag.text, "precious: error: cannot write: File too large\n"));
    check_file("old file", path, "old");
    CHECK_INT("no temporary file stays", (int64_t)count_entries_of_temp_dir(), (int64_t)entries);
    diag_release(&diag);
}

/* Each row makes the second of three files impossible to write: its device is full, its folder does not exist, or it
 * is itself a folder. */
static void files_are_saved_together_or_not_at_all(void)
{
    static const char *const wrong[] = {"/dev/full", "/no/such/file", "/tmp"};
    char first[512], last[512];
    snprintf(first, sizeof first, "%s", temp_path("together-1"));
    snprintf(last, sizeof last, "%s", temp_path("together-2"));
    struct diag diag = {0};
    CHECK_INT("old", file_set_write_single_file(first, "old", 3, &diag), STATUS_OK);
    size_t entries = count_entries_of_temp_dir();
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const struct file_set_path_and_data files[] = {
            {first, "1", 1}, {wrong[i], "2", 1}, {last, "3", 1}};
        diag_clear(&diag);
        CHECK_INT(wrong[i], file_set_write_files(files, ARRAY_LEN(files), &diag), STATUS_SYSTEM);
        CHECK(wrong[i], diag.text && strncmp(diag.text, wrong[i], strlen(wrong[i])) == 0);
        check_file(wrong[i], first, "old");
        CHECK_INT(wrong[i], (int64_t)count_entries_of_temp_dir(), (int64_t)entries);
    }
    diag_clear(&diag);
    const struct file_set_path_and_data files[] = {
        {first, "1", 1}, {"/dev/null", "2", 1}, {last, "3", 1}};
    CHECK_INT("all", file_set_write_files(files, ARRAY_LEN(files), &diag), STATUS_OK);
    check_file("first", first, "1");
    check_file("last", last, "3");
    CHECK_INT("no temporary file stays", (int64_t)count_entries_of_temp_dir(),
              (int64_t)entries + 1);
    diag_release(&diag);
}

static void read_only_files_are_not_replaced(void)
{
    if (geteuid() == 0)
        return; /* root may write everything */
    struct diag diag = {0};
    const char *path = temp_path("readonly");
    CHECK_INT("old", file_set_write_single_file(path, "old", 3, &diag), STATUS_OK);
    chmod(path, 0444);
    struct text message = {0};
    text_printf(&message, "%s: error: cannot write: Permission denied\n", path);
    check_refused("read only", path, message.data);
    check_file("read only", path, "old");
    text_release(&message);
}

static void unreadable_files_are_reported(void)
{
    static const struct {
        const char *path, *message;
    } rows[] = {
        {"/no/such", "/no/such: error: cannot open: No such file or directory\n"},
        {"/tmp", "/tmp: error: cannot read: Is a directory\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        struct diag diag = {0};
        CHECK_INT(rows[i].path, text_read(&text, rows[i].path, &diag), STATUS_SYSTEM);
        CHECK_TEXT(rows[i].path, diag.text, rows[i].message);
        CHECK("nothing kept", text.data == NULL);
        diag_release(&diag);
    }
}

static void a_sparse_giant_is_refused(void)
{
    const char *path = temp_path("giant");
    struct diag diag = {0};
    struct text text = {0};
    CHECK_INT("save", file_set_write_single_file(path, "x", 1, &diag), STATUS_OK);
    if (truncate(path, (off_t)((INT64_C(1) << 32) + 1)) == 0) {
        CHECK_INT("read", text_read(&text, path, &diag), STATUS_BAD_INPUT);
        CHECK("message",
              diag.text &&
                  strstr(diag.text,
                         "giant: error: the file is larger than 4 GiB, the most that is read\n"));
    }
    unlink(path);
    diag_release(&diag);
}

/* Checks that a file or device is refused with this message if at most 1 MiB may be read. */
static void check_size_limit_refuses(const char *path, const char *message)
{
    struct diag diag = {0};
    struct text text = {0};
    CHECK_INT(path, text_read_with_byte_limit(&text, path, 1 << 20, &diag), STATUS_BAD_INPUT);
    CHECK(path, diag.text != NULL && strstr(diag.text, message) != NULL);
    CHECK("nothing kept", text.data == NULL);
    diag_release(&diag);
}

static void a_limit_is_kept_by_files_and_by_devices_without_end(void)
{
    const char *path = temp_path("large");
    struct diag diag = {0};
    CHECK_INT("save", file_set_write_single_file(path, "x", 1, &diag), STATUS_OK);
    if (truncate(path, (1 << 20) + 1) == 0)
        check_size_limit_refuses(
            path, "large: error: the file is larger than 1 MiB, the most that is read\n");
    check_size_limit_refuses(
        "/dev/zero", "/dev/zero: error: the file is larger than 1 MiB, the most that is read\n");
    unlink(path);
    diag_release(&diag);
}

static void a_byte_order_mark_is_no_part_of_a_text(void)
{
    static const struct {
        const char *label, *written, *read;
    } rows[] = {
        {"a mark", "\xEF\xBB\xBF{}", "{}"},
        {"only a mark", "\xEF\xBB\xBF", ""},
        {"the half of one", "\xEF\xBB", "\xEF\xBB"},
        {"one that comes later", "x\xEF\xBB\xBF", "x\xEF\xBB\xBF"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *path = temp_path("mark");
        struct diag diag = {0};
        struct text text = {0};
        file_set_write_single_file(path, rows[i].written, strlen(rows[i].written), &diag);
        CHECK_INT(rows[i].label, text_read(&text, path, &diag), STATUS_OK);
        CHECK_TEXT(rows[i].label, text.data, rows[i].read);
        CHECK_INT(rows[i].label, (long long)text.size, (long long)strlen(rows[i].read));
        text_release(&text);
        diag_release(&diag);
        unlink(path);
    }
}

static const struct check_case cases[] = {
    {"text grows by any kind of piece", text_grows_by_any_kind_of_piece},
    {"integers print in full", integers_print_in_full},
    {"doubles print shortest", doubles_print_shortest},
    {"a saved file reads back", a_saved_file_reads_back},
    {"a link stays a link", saving_keeps_a_symbolic_link},
    {"what cannot be written is said", unwritable_files_are_reported},
    {"a full disk leaves the old file", a_full_disk_leaves_the_old_file},
    {"a limit is kept by files and by devices without end",
     a_limit_is_kept_by_files_and_by_devices_without_end},
    {"a byte order mark is no part of a text", a_byte_order_mark_is_no_part_of_a_text},
    {"files are saved together or not at all", files_are_saved_together_or_not_at_all},
    {"a read-only file stays", read_only_files_are_not_replaced},
    {"what cannot be read is said", unreadable_files_are_reported},
    {"a sparse giant is refused", a_sparse_giant_is_refused},
};
CHECK_MAIN("text", cases)
