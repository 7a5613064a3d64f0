#include "cli/sweep/journal.h"

#include "base/c_locale.h"
#include "base/file_set.h"
#include "base/open_file.h"
#include "base/path.h"

#include "cli/sweep/predictor.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The journal is flushed to the disk when a row is added more than this many seconds after the last
 * flush. A power failure loses the rows since then; when only the program ends, none is lost. */
#define SYNC_EVERY_S 1.0

static const char journal_head[] = "# longhaul sweep journal 1\n";

static enum status report_errno(struct diag *diag, const char *path, const char *what)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

/* Appends the lines with which both kinds of file begin, the journal and the finished sweep. */
static void put_header_lines(struct text *out, const struct sweep_grid *grid)
{
    size_t before = out->size;
    text_puts(out, "# command=");
    sweep_grid_put_sweep_command(out, grid);
    if (strstr(out->data + before, " --as-dense") != NULL)
        text_puts(out,
                  "\n# proxy=the rows are of a dense proxy: parts of the model are not modelled");
    text_printf(out, "\n# made_by=longhaul " LONGHAUL_VERSION " sweep\n# identity=%016" PRIx64 "\n",
                sweep_grid_identity(grid));
}

/* Returns the value of a key in the lines "# key=value" at the beginning of data, and sets *size to its length.
 * Returns NULL, without setting *size, if the key is not there. */
static const char *find_header_value(const char *data, const char *key, size_t *size)
{
    size_t length = strlen(key);
    while (data != NULL && data[0] == '#') {
        const char *end = strchr(data, '\n');
        if (end == NULL)
            return NULL;
        if (strncmp(data, "# ", 2) == 0 && strncmp(data + 2, key, length) == 0 &&
            data[2 + length] == '=') {
            *size = (size_t)(end - data) - length - 3;
            return data + length + 3;
        }
        data = end + 1;
    }
    return NULL;
}

/* Checks that the file whose first bytes are `data` belongs to the same grid, so that its rows can be used. */
static enum status check_same_grid(const struct sweep_grid *grid, const char *path,
                                   const char *data, struct diag *diag)
{
    struct loc at = {.name = path};
    struct text own_identity = {0};
    size_t size, command_size;
    const char *identity = find_header_value(data, "identity", &size);
    const char *command = find_header_value(data, "command", &command_size);
    enum status status = STATUS_OK;
    if (identity == NULL || command == NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "exists and is no sweep: remove it, or write to another file with -o");
    text_printf(&own_identity, "%016" PRIx64, sweep_grid_identity(grid));
    bool same = size == own_identity.size && memcmp(identity, own_identity.data, size) == 0;
    own_identity.size = 0;
    sweep_grid_put_sweep_command(&own_identity, grid);
    if (!same && command_size == own_identity.size &&
        memcmp(command, own_identity.data, own_identity.size) == 0)
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "this sweep was begun by another version of longhaul, or an input file "
                            "has changed since: remove this CSV file, or write to another with -o");
    else if (!same)
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "holds another sweep, `%.*s`: remove it, or write to another file "
                            "with -o",
                            (int)command_size, command);
    text_release(&own_identity);
    return status;
}

/* ---- lines ---- */

static uint32_t checksum(const char *data, size_t size)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)data[i]) * 16777619u;
    return sum;
}

static void store_row(struct sweep_journal *j, size_t point, const char *text, size_t size,
                      bool failed)
{
    j->known_row_count += j->row[point].text == NULL;
    j->row[point] =
        (struct sweep_row){.text = arena_text(&j->arena, text, size), .has_point_failed = failed};
}

/* Appends to *out a line in the form of the journal: "checksum point - row", or "checksum point f row" for a point that
 * failed. The checksum is that of the text after it. */
static void put_checksummed_journal_line(struct text *out, size_t point, const struct text *row,
                                         bool failed)
{
    struct text rest = {0};
    text_printf(&rest, "%zu %c ", point, failed ? 'f' : '-');
    text_append(&rest, row->data, row->size);
    text_printf(out, "%" PRIu32 " ", checksum(rest.data, rest.size));
    text_append(out, rest.data, rest.size);
    text_putc(out, '\n');
    text_release(&rest);
}

/* Reads a number and the blank after it, and moves *at past both. Returns false if there are none. */
static bool read_number(const char **at, const char *end, uint64_t *value)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    if (blank == NULL || !parse_u64(*at, (size_t)(blank - *at), value))
        return false;
    *at = blank + 1;
    return true;
}

/* Takes the row from a line. A damaged line is ignored, so its point is predicted again. The row of a point that failed
 * does not replace one that is there. */
static void parse_journal_line(struct sweep_journal *j, const char *line, size_t size)
{
    const char *at = line, *end = line + size, *rest;
    uint64_t sum, point;
    if (!read_number(&at, end, &sum))
        return;
    rest = at;
    if (!read_number(&at, end, &point) || point >= j->grid->point_count || end - at < 2 ||
        checksum(rest, (size_t)(end - rest)) != sum)
        return;
    bool failed = at[0] == 'f';
    if (j->row[point].text == NULL || !failed)
        store_row(j, (size_t)point, at + 2, (size_t)(end - at) - 2, failed);
}

/* Reads the rows of a journal, and sets *size to the bytes of its complete lines. It sets *size to 0 if the head is
 * not complete; the caller then begins the journal again. */
static enum status read_journal(struct sweep_journal *j, int file, const char *path,
                                long long *size, struct diag *diag)
{
    struct text text = {0};
    enum status status =
        open_file_read_all_from_fd(file, &text) ? STATUS_OK : report_errno(diag, path, "read");
    *size = 0;
    size_t at = 0, head = sizeof journal_head - 1;
    if (status != STATUS_OK || text.size == 0)
        goto out;
    bool cut = text.size < head && memcmp(text.data, journal_head, text.size) == 0;
    if (!cut && (text.size < head || memcmp(text.data, journal_head, head) != 0))
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "exists and is no journal of a sweep: remove it, or write to another "
                            "file with -o");
    struct text wanted = {0};
    put_header_lines(&wanted, j->grid);
    /* a journal that was cut off within its head has no rows, and is begun again */
    if (status == STATUS_OK && !cut &&
        !(text.size < head + wanted.size &&
          memcmp(text.data + head, wanted.data, text.size - head) == 0)) {
        status = check_same_grid(j->grid, path, text.data, diag);
        for (at = head; status == STATUS_OK && at < text.size;) {
            const char *line = text.data + at, *end = memchr(line, '\n', text.size - at);
            if (end == NULL)
                break;
            if (*line != '#')
                parse_journal_line(j, line, (size_t)(end - line));
            at += (size_t)(end - line) + 1;
            *size = (long long)at;
        }
    }
    text_release(&wanted);
out:
    text_release(&text);
    return status;
}

/* ---- files ---- */

static enum status lock_journal(int file, const char *path, struct diag *diag)
{
    return open_file_try_lock_of_fd(file)
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM,
                            "another sweep is writing it");
}

/* Appends a text to the journal. If that fails, removes what was written of it. */
static enum status append_text_to_journal(struct sweep_journal *j, const struct text *text,
                                          struct diag *diag)
{
    if (open_file_write_all_to_fd(j->journal_file_descriptor, text->data, text->size)) {
        j->complete_bytes += (long long)text->size;
        return STATUS_OK;
    }
    enum status status =
        diag_error(diag, (struct loc){.name = j->journal_path.data}, STATUS_SYSTEM,
                   "cannot write: %s; the %zu rows before are kept; run the same command again to "
                   "continue",
                   strerror(errno), j->known_row_count);
    /* if this fails, too, the next run sees by the line's checksum that the line is not complete */
    if (ftruncate(j->journal_file_descriptor, (off_t)j->complete_bytes) != 0)
        (void)0;
    return status;
}

/* Finds the journals of the sweep that is written to `path`: that of the whole sweep and those of its parts. */
static void find_journals(const char *path, glob_t *found)
{
    static const char *const endings[] = {".part", ".part-[0-9]*-of-[0-9]*"};
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        struct text pattern = {0};
        /* characters of the path that would be patterns are escaped */
        for (const char *c = path; *c != '\0'; c++) {
            if (strchr("*?[\\", *c) != NULL)
                text_putc(&pattern, '\\');
            text_putc(&pattern, *c);
        }
        text_puts(&pattern, endings[i]);
        locale_t before = c_locale_enter(); /* glob() sorts by the locale */
        glob(pattern.data, i > 0 ? GLOB_APPEND : 0, NULL, found);
        c_locale_leave(before);
        text_release(&pattern);
    }
}

/* Reads the rows from the journals of the parts. */
static enum status read_part_journals(struct sweep_journal *j, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    find_journals(j->sweep_path, &found);
    for (size_t i = 0; status == STATUS_OK && i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        long long size;
        if (strcmp(path, j->journal_path.data) == 0)
            continue;
        int file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0)
            status = report_errno(diag, path, "open");
        if (status == STATUS_OK)
            status = lock_journal(file, path, diag);
        if (status == STATUS_OK)
            status = read_journal(j, file, path, &size, diag);
        if (file >= 0)
            close(file);
    }
    globfree(&found);
    return status;
}

static enum status open_journal(struct sweep_journal *j, struct diag *diag)
{
    const char *path = j->journal_path.data;
    j->journal_file_descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (j->journal_file_descriptor < 0)
        return report_errno(diag, path, "write");
    enum status status = lock_journal(j->journal_file_descriptor, path, diag);
    if (status == STATUS_OK)
        status = read_journal(j, j->journal_file_descriptor, path, &j->complete_bytes, diag);
    if (status == STATUS_OK && ftruncate(j->journal_file_descriptor, (off_t)j->complete_bytes) != 0)
        status = report_errno(diag, path, "shorten");
    if (status == STATUS_OK && j->complete_bytes == 0) {
        struct text head = {0};
        text_puts(&head, journal_head);
        put_header_lines(&head, j->grid);
        status = append_text_to_journal(j, &head, diag);
        text_release(&head);
    }
    return status;
}

/* Sets *finished_file_exists. If the finished file exists, checks that it is of this grid. */
static enum status check_finished_file(const struct sweep_grid *grid, const char *path,
                                       bool *finished_file_exists, struct diag *diag)
{
    struct text text = {0};
    *finished_file_exists = path_exists(path);
    if (!*finished_file_exists)
        return STATUS_OK;
    if (!path_is_file(path))
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is not a regular file, which -o needs to resume a sweep; leave -o out "
                          "to write the rows to standard output");
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = check_same_grid(grid, path, text.data, diag);
    text_release(&text);
    return status;
}

enum status sweep_journal_open(struct sweep_journal *j, const struct sweep_grid *grid,
                               const char *path, size_t part, size_t parts, struct diag *diag)
{
    *j = (struct sweep_journal){.grid = grid, .sweep_path = path, .journal_file_descriptor = -1};
    j->row = arena_array(&j->arena, grid->point_count, sizeof *j->row);
    if (path == NULL)
        return STATUS_OK;
    bool finished_file_exists;
    enum status status = check_finished_file(grid, path, &finished_file_exists, diag);
    if (status != STATUS_OK)
        return status;
    text_printf(&j->journal_path, "%s.part", path);
    if (parts > 0)
        text_printf(&j->journal_path, "-%zu-of-%zu", part, parts);
    /* the finished file has all rows; without a journal, none of them has failed */
    if (finished_file_exists && access(j->journal_path.data, F_OK) != 0) {
        j->is_complete = true;
        return STATUS_OK;
    }
    status = open_journal(j, diag);
    if (status == STATUS_OK && parts == 0)
        status = read_part_journals(j, diag);
    for (size_t i = 0; i < grid->point_count; i++)
        if (j->row[i].text != NULL && j->row[i].has_point_failed) {
            j->row[i] = (struct sweep_row){0};
            j->known_row_count--;
        }
    j->resumed_row_count = j->known_row_count;
    return status;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum status sweep_journal_add(struct sweep_journal *j, size_t point, const struct text *row,
                              bool failed, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (j->journal_file_descriptor >= 0) {
        struct text line = {0};
        put_checksummed_journal_line(&line, point, row, failed);
        status = append_text_to_journal(j, &line, diag);
        text_release(&line);
        if (status == STATUS_OK && now_s() - j->synced_s > SYNC_EVERY_S) {
            /* the result is not checked: if the disk fails, the next write fails, too */
            fdatasync(j->journal_file_descriptor);
            j->synced_s = now_s();
        }
    }
    if (status == STATUS_OK)
        store_row(j, point, row->data, row->size, failed);
    return status;
}

static void remove_journals(const struct sweep_journal *j)
{
    glob_t found = {0};
    find_journals(j->sweep_path, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
}

void sweep_journal_put_csv(const struct sweep_journal *j, struct text *out)
{
    put_header_lines(out, j->grid);
    sweep_put_columns(out, &j->grid->axes);
    text_putc(out, '\n');
    for (size_t i = 0; i < j->grid->point_count; i++) {
        text_puts(out, j->row[i].text);
        text_putc(out, '\n');
    }
}

enum status sweep_journal_write_sweep_file(struct sweep_journal *j, struct diag *diag)
{
    struct text out = {0};
    bool failed = false;
    sweep_journal_put_csv(j, &out);
    for (size_t i = 0; i < j->grid->point_count; i++)
        failed |= j->row[i].has_point_failed;
    enum status status = file_set_write_single_file(j->sweep_path == NULL ? "-" : j->sweep_path,
                                                    out.data, out.size, diag);
    if (status != STATUS_OK && j->sweep_path != NULL)
        diag_note(diag, (struct loc){.name = j->journal_path.data},
                  "has all %zu rows; the same command makes the sweep's file from them",
                  j->known_row_count);
    if (status == STATUS_OK && j->sweep_path != NULL && !failed)
        remove_journals(j);
    text_release(&out);
    return status;
}

void sweep_journal_release(struct sweep_journal *j)
{
    if (j->row != NULL && j->journal_file_descriptor >= 0)
        close(j->journal_file_descriptor);
    text_release(&j->journal_path);
    arena_release(&j->arena);
    *j = (struct sweep_journal){0};
}
