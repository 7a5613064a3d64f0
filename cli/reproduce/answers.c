#include "cli/reproduce/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Continues an FNV-1a hash with more bytes. */
static uint64_t hash(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

static const uint64_t hash_start = 14695981039346656037u;

static uint64_t key_number(const char *key)
{
    return hash(hash_start, key, strlen(key));
}

/* Appends the head of an answers file, which identifies the build by the program file's time and size: another build
 * may give other answers. */
static void put_head(struct text *out)
{
    struct stat info = {0};
    if (stat("/proc/self/exe", &info) != 0)
        info = (struct stat){0};
    text_printf(out,
                "# longhaul reproduce answers 1, longhaul " LONGHAUL_VERSION ", %lld.%09ld %lld\n",
                (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, (long long)info.st_size);
}

static enum status cannot(struct diag *diag, const char *path, const char *what)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

static enum status lock(int file, const char *path, struct diag *diag)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_SETLK, &whole) == 0 || (errno != EACCES && errno != EAGAIN))
        return STATUS_OK; /* or a file system without locks */
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM,
                      "another reproduction is writing it");
}

/* ---- lines ---- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(unsigned char *bytes, size_t size, const char *text)
{
    for (size_t i = 0; i < size; i++) {
        int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

enum { NUMBER_DIGITS = 16, PREFIX = 2 * (NUMBER_DIGITS + 1) };

static bool read_number(const char *text, uint64_t *number)
{
    *number = 0;
    for (int i = 0; i < NUMBER_DIGITS; i++) {
        if (digit(text[i]) < 0)
            return false;
        *number = *number << 4 | (uint64_t)digit(text[i]);
    }
    return text[NUMBER_DIGITS] == ' ';
}

/* Passes the answer on a line to its job. A line that fits no job, or is damaged, is ignored. */
static void take_line(struct answers *answers, struct reproduction *r, const uint64_t *number,
                      const char *line, size_t size)
{
    uint64_t key, sum;
    unsigned char bytes[REPRODUCTION_ANSWER_MAX] = {0};
    if (size < PREFIX || !read_number(line, &key) || !read_number(line + NUMBER_DIGITS + 1, &sum))
        return;
    for (size_t j = 0; j < r->jobs; j++) {
        size_t wanted = reproduction_answer_size(r, j);
        if (number[j] != key || r->job[j].kind == JOB_TRACE || size != PREFIX + 2 * wanted ||
            !read_hex(bytes, wanted, line + PREFIX) || hash(key, bytes, wanted) != sum)
            continue;
        answers->resumed += r->job[j].wanted && !r->job[j].done;
        reproduction_take(r, j, bytes);
        return;
    }
}

static void take_all(struct answers *answers, struct reproduction *r, const struct text *text,
                     size_t from)
{
    uint64_t *number = heap_alloc(r->jobs + 1, sizeof *number);
    for (size_t j = 0; j < r->jobs; j++)
        number[j] = key_number(r->job[j].key);
    for (size_t at = from; at < text->size;) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->size - at);
        size_t size = end == NULL ? text->size - at : (size_t)(end - line);
        take_line(answers, r, number, line, size);
        at += size + 1;
    }
    free(number);
}

/* ---- the file ---- */

static enum status append(struct answers *answers, const struct text *text, struct diag *diag)
{
    for (size_t at = 0; at < text->size;) {
        ssize_t put = write(answers->file, text->data + at, text->size - at);
        if (put < 0 && errno != EINTR)
            return cannot(diag, answers->path.data, "write");
        at += put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

enum status answers_open(struct answers *answers, const char *path, struct reproduction *r,
                         struct diag *diag)
{
    struct text head = {0}, text = {0};
    *answers = (struct answers){0};
    text_puts(&answers->path, path);
    answers->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (answers->file < 0)
        return cannot(diag, path, "write");
    enum status status = lock(answers->file, path, diag);
    if (status == STATUS_OK) { /* through the same file: to close another would end the lock */
        struct stat info;
        if (fstat(answers->file, &info) == 0 && info.st_size > 0) {
            char *room = heap_alloc((size_t)info.st_size + 1, 1);
            ssize_t got = pread(answers->file, room, (size_t)info.st_size, 0);
            text_append(&text, room, got > 0 ? (size_t)got : 0);
            free(room);
        }
    }
    put_head(&head);
    bool ours = text.size >= head.size && memcmp(text.data, head.data, head.size) == 0;
    if (status == STATUS_OK && ours) {
        take_all(answers, r, &text, head.size);
        if (text.data[text.size - 1] != '\n') { /* ends a line that was cut off */
            struct text end = {0};
            text_putc(&end, '\n');
            status = append(answers, &end, diag);
            text_release(&end);
        }
    } else if (status == STATUS_OK) {
        if (ftruncate(answers->file, 0) != 0)
            status = cannot(diag, path, "shorten");
        if (status == STATUS_OK)
            status = append(answers, &head, diag);
    }
    text_release(&head);
    text_release(&text);
    return status;
}

enum status answers_add(struct answers *answers, const struct reproduction *r, size_t job,
                        const void *answer, struct diag *diag)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = answer;
    size_t size = reproduction_answer_size(r, job);
    uint64_t key = key_number(r->job[job].key);
    struct text line = {0};
    text_printf(&line, "%016" PRIx64 " %016" PRIx64 " ", key, hash(key, bytes, size));
    for (size_t i = 0; i < size; i++) {
        text_putc(&line, digits[bytes[i] >> 4]);
        text_putc(&line, digits[bytes[i] & 15]);
    }
    text_putc(&line, '\n');
    enum status status = append(answers, &line, diag);
    text_release(&line);
    return status;
}

void answers_close(struct answers *answers)
{
    if (answers->path.size > 0 && answers->file >= 0)
        close(answers->file);
    text_release(&answers->path);
    *answers = (struct answers){0};
}
