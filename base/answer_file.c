#include "base/answer_file.h"

#include "base/arena.h"
#include "base/digest.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* A slot of the hash table of answers. The `text_size` bytes of answer_file.lines_text from `text_begin` on are the
 * line of the key without the key: the digest and the compressed bytes, as hexadecimal digits. */
struct answer_slot {
    uint64_t key;
    size_t text_begin, text_size; /* size 0: the slot is free */
    bool was_reused;              /* answer_file_find() has returned the answer of the line */
};

/* DIGITS: the hexadecimal digits of a number. PREFIX: the bytes of "KEY DIGEST " at the beginning of a line. */
enum { DIGITS = 16, PREFIX = 2 * (DIGITS + 1) };

static enum status report_file_error(struct diag *diag, const char *path, const char *what)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

/* ---- lines ---- */

static int hex_digit_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex_u64(const char *text, uint64_t *number)
{
    *number = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (hex_digit_value(text[i]) < 0)
            return false;
        *number = *number << 4 | (uint64_t)hex_digit_value(text[i]);
    }
    return text[DIGITS] == ' ';
}

static bool read_hex_bytes(unsigned char *bytes, size_t size, const char *text)
{
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit_value(text[2 * i]),
            low = high < 0 ? -1 : hex_digit_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static void append_hex(struct text *out, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text_putc(out, digits[bytes[i] >> 4]);
        text_putc(out, digits[bytes[i] & 15]);
    }
}

/* Returns the slot of the hash table that has the key, or the free slot into which the key would be put. */
static struct answer_slot *find_table_slot(const struct answer_file *f, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15)) & (f->table_capacity - 1);
    while (f->table[i].text_size != 0 && f->table[i].key != key)
        i = (i + 1) & (f->table_capacity - 1);
    return &f->table[i];
}

/* Adds a line to the table. If several lines have one key, the last one replaces the others. */
static void add_to_table(struct answer_file *f, struct answer_slot line)
{
    if (2 * (f->answer_count + 1) > f->table_capacity) {
        struct answer_slot *old = f->table;
        size_t before = f->table_capacity;
        f->table_capacity = before == 0 ? 64 : 2 * before;
        f->table = heap_zalloc(f->table_capacity, sizeof *f->table);
        for (size_t i = 0; i < before; i++)
            if (old[i].text_size != 0)
                *find_table_slot(f, old[i].key) = old[i];
        free(old);
    }
    struct answer_slot *slot = find_table_slot(f, line.key);
    f->answer_count += slot->text_size == 0;
    *slot = line;
}

/* Adds all lines of f->lines_text, each of which is complete, to the table. A line that does not begin with a key and a
 * digest is left out. */
static void add_lines_to_table(struct answer_file *f)
{
    const char *text = f->lines_text.data;
    for (size_t at = 0; at < f->lines_text.size;) {
        const char *end = memchr(text + at, '\n', f->lines_text.size - at);
        size_t size = (size_t)(end - text) - at;
        struct answer_slot line = {.text_begin = at + DIGITS + 1, .text_size = size};
        uint64_t digest;
        if (size > PREFIX && read_hex_u64(text + at, &line.key) &&
            read_hex_u64(text + at + DIGITS + 1, &digest)) {
            line.text_size = size - DIGITS - 1;
            add_to_table(f, line);
        }
        at += size + 1;
    }
}

bool answer_file_find(const struct answer_file *f, uint64_t key, void *answer, size_t size)
{
    struct answer_slot *line = f->table_capacity == 0 ? NULL : find_table_slot(f, key);
    if (line == NULL || line->text_size <= DIGITS + 1)
        return false;
    const char *text = f->lines_text.data + line->text_begin;
    size_t packed_size = (line->text_size - DIGITS - 1) / 2;
    unsigned char *packed = heap_alloc(packed_size + 1, 1), *bytes = heap_zalloc(size + 1, 1);
    uLongf got = (uLongf)size;
    uint64_t digest_in_line;
    bool found = read_hex_u64(text, &digest_in_line) && (line->text_size - DIGITS - 1) % 2 == 0 &&
                 read_hex_bytes(packed, packed_size, text + DIGITS + 1) &&
                 uncompress(bytes, &got, packed, (uLong)packed_size) == Z_OK && got == size &&
                 digest_add(key, bytes, size) == digest_in_line;
    if (found)
        memcpy(answer, bytes, size);
    line->was_reused |= found;
    free(packed);
    free(bytes);
    return found;
}

size_t answer_file_reused_count(const struct answer_file *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->table_capacity; i++)
        count += f->table[i].was_reused && f->table[i].text_begin < f->existing_bytes;
    return count;
}

/* ---- the file ---- */

static enum status append_line(struct answer_file *f, const char *data, size_t size)
{
    if (!open_file_write_all_to_fd(f->fd, data, size))
        return STATUS_SYSTEM;
    f->file_bytes += (long long)size;
    return STATUS_OK;
}

enum status answer_file_add(struct answer_file *f, uint64_t key, const void *answer, size_t size,
                            struct diag *diag)
{
    uLongf packed_size = compressBound((uLong)size);
    unsigned char *packed = heap_alloc(packed_size + 1, 1);
    const size_t begin = f->lines_text.size;
    enum status status = STATUS_OK;
    if (compress(packed, &packed_size, answer, (uLong)size) == Z_OK) {
        text_printf(&f->lines_text, "%016" PRIx64 " %016" PRIx64 " ", key,
                    digest_add(key, answer, size));
        append_hex(&f->lines_text, packed, packed_size);
        add_to_table(f, (struct answer_slot){.key = key,
                                             .text_begin = begin + DIGITS + 1,
                                             .text_size = f->lines_text.size - begin - DIGITS - 1});
        text_putc(&f->lines_text, '\n');
        if (f->fd >= 0)
            status = append_line(f, f->lines_text.data + begin, f->lines_text.size - begin);
    }
    free(packed);
    if (status == STATUS_OK)
        return STATUS_OK;
    status = report_file_error(diag, f->path, "write");
    if (ftruncate(f->fd, (off_t)f->file_bytes) != 0)
        (void)0; /* nothing more can be done; the digest will show that the line was cut off */
    close(f->fd);
    f->fd = -1;
    return status;
}

/* Takes the answers from the text of a file that begins with `head`, and cuts the file off after its last complete
 * line. A file of another build, or one that ends within its head, is emptied and gets the new head. A file that does
 * not begin with `whose` is left as it is, with an error. */
static enum status load_answers_from_file_text(struct answer_file *f, const struct text *text,
                                               const char *whose, const struct text *head,
                                               struct diag *diag)
{
    size_t known = strlen(whose), common = text->size < known ? text->size : known;
    if (common > 0 && memcmp(text->data, whose, common) != 0)
        return diag_error(diag, (struct loc){.name = f->path}, STATUS_BAD_INPUT,
                          "exists and does not begin with '%s': remove it, or write elsewhere "
                          "with -o",
                          whose);
    bool same = text->size >= head->size && memcmp(text->data, head->data, head->size) == 0;
    size_t end = same ? text->size : 0;
    while (end > 0 && text->data[end - 1] != '\n')
        end--;
    if (end < text->size && ftruncate(f->fd, (off_t)end) != 0)
        return report_file_error(diag, f->path, "shorten");
    f->file_bytes = (long long)end;
    if (!same)
        return append_line(f, head->data, head->size) == STATUS_OK
                   ? STATUS_OK
                   : report_file_error(diag, f->path, "write");
    text_append(&f->lines_text, text->data + head->size, end - head->size);
    f->existing_bytes = f->lines_text.size;
    add_lines_to_table(f);
    return STATUS_OK;
}

enum status answer_file_open(struct answer_file *f, const char *path, const char *whose,
                             const char *build, struct diag *diag)
{
    struct text head = {0}, text = {0};
    struct stat info;
    *f = (struct answer_file){.path = path, .fd = -1};
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "exists and is no regular file: remove it, or write elsewhere with -o");
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (f->fd < 0)
        return report_file_error(diag, path, "write");
    text_printf(&head, "%s, %s\n", whose, build);
    enum status status = STATUS_OK;
    if (!open_file_try_lock_of_fd(f->fd))
        status = diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM,
                            "another process is writing it");
    else if (!open_file_read_all_from_fd(f->fd, &text))
        status = report_file_error(diag, path, "read");
    if (status == STATUS_OK)
        status = load_answers_from_file_text(f, &text, whose, &head, diag);
    if (status != STATUS_OK) {
        close(f->fd);
        f->fd = -1;
    }
    text_release(&head);
    text_release(&text);
    return status;
}

void answer_file_release(struct answer_file *f)
{
    if (f->path != NULL && f->fd >= 0)
        close(f->fd);
    text_release(&f->lines_text);
    free(f->table);
    *f = (struct answer_file){0};
}
