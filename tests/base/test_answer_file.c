/* tests/base/test_answer_file.c: answers come back from the file in which they were kept; a damaged line loses only its
 * own answer, and a file that is not ours stays as it is. */
#include "base/answer_file.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char path[] = "test_answer_file.tmp", whose[] = "# answers of a test";

static void write_file(const char *data, size_t size)
{
    FILE *file = fopen(path, "w");
    CHECK("written", file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static struct text read_file(void)
{
    struct text text = {0};
    CHECK_INT("read", text_read(&text, path, NULL), STATUS_OK);
    return text;
}

static void open_file(struct answer_file *f, const char *build, const char *message)
{
    struct diag diag = {0};
    enum status status = answer_file_open(f, path, whose, build, &diag);
    CHECK("opened", (status == STATUS_OK) == (message == NULL));
    CHECK_TEXT("message", diag.text == NULL ? "" : diag.text, message == NULL ? "" : message);
    diag_release(&diag);
}

static void add_answer(struct answer_file *f, uint64_t key, const char *answer)
{
    CHECK_INT("added", answer_file_add(f, key, answer, strlen(answer), NULL), STATUS_OK);
}

static void expect_answer(const struct answer_file *f, uint64_t key, const char *answer)
{
    char got[16] = "";
    CHECK(answer, answer_file_find(f, key, got, strlen(answer)) && strcmp(got, answer) == 0);
    CHECK("no answer of another size", !answer_file_find(f, key, got, strlen(answer) + 1));
    CHECK("nor of another key", !answer_file_find(f, key ^ 1, got, strlen(answer)));
}

static bool has(const struct answer_file *f, uint64_t key, size_t size)
{
    char got[16];
    return answer_file_find(f, key, got, size);
}

static void stored_answers_are_found_again(void)
{
    struct answer_file f;
    unlink(path);
    for (int time = 0; time < 3; time++) {
        open_file(&f, "build 1", NULL);
        for (uint64_t i = 0; i < 1000 && time == 0; i++) {
            char number[16];
            snprintf(number, sizeof number, "%d", (int)i);
            add_answer(&f, 2 * i, number);
        }
        if (time == 1)
            add_answer(&f, 10, "later");
        expect_answer(&f, 10, time == 0 ? "5" : "later");
        expect_answer(&f, 1998, "999");
        expect_answer(&f, 1998, "999");
        /* counted are the answers that were in the file when it was opened, each once however often
         * it is found */
        CHECK_INT("reused", (int64_t)answer_file_reused_count(&f),
                  time == 0   ? 0
                  : time == 1 ? 1
                              : 2);
        answer_file_release(&f);
    }
    open_file(&f, "build 2", NULL); /* the answers of another build are discarded */
    CHECK("none", !has(&f, 1998, 3));
    answer_file_release(&f);
    struct text text = read_file();
    CHECK_TEXT("begun anew", text.data, "# answers of a test, build 2\n");
    text_release(&text);
    unlink(path);
}

static void one_damaged_answer_loses_no_other(void)
{
    struct answer_file f;
    unlink(path);
    open_file(&f, "1", NULL);
    add_answer(&f, 2, "first");
    add_answer(&f, 4, "second");
    add_answer(&f, 6, "third");
    answer_file_release(&f);
    struct text whole = read_file();
    size_t begin = (size_t)(strchr(whole.data, '\n') + 1 - whole.data);
    size_t second = (size_t)(strchr(whole.data + begin, '\n') + 1 - whole.data);
    size_t third = (size_t)(strchr(whole.data + second, '\n') + 1 - whole.data);
    for (size_t at = second; at < third; at++) {
        char was = whole.data[at];
        whole.data[at] = was == '0' ? '1' : '0';
        write_file(whole.data, whole.size);
        open_file(&f, "1", NULL);
        expect_answer(&f, 2, "first");
        char got[16] = ""; /* some compressed bits have no effect */
        CHECK("damaged", !answer_file_find(&f, 4, got, 6) || strcmp(got, "second") == 0);
        CHECK("after it",
              at == third - 1 || has(&f, 6, 5)); /* without its end, a line goes on into the next */
        answer_file_release(&f);
        whole.data[at] = was;
    }
    /* a file that is cut off anywhere is continued */
    for (size_t size = 0; size < whole.size; size++) {
        write_file(whole.data, size);
        open_file(&f, "1", NULL);
        CHECK("what is whole", has(&f, 2, 5) == (size >= second) &&
                                   has(&f, 4, 6) == (size >= third) && !has(&f, 6, 5));
        add_answer(&f, 8, "fourth");
        answer_file_release(&f);
        open_file(&f, "1", NULL);
        expect_answer(&f, 8, "fourth");
        CHECK("and before it", has(&f, 2, 5) == (size >= second));
        answer_file_release(&f);
    }
    text_release(&whole);
    unlink(path);
}

static void a_foreign_file_is_not_overwritten(void)
{
    struct answer_file f;
    static const char foreign[] = "my results\n";
    write_file(foreign, sizeof foreign - 1);
    open_file(&f, "1",
              "test_answer_file.tmp: error: exists and does not begin with '# answers of a test': "
              "remove it, or write elsewhere with -o\n");
    add_answer(&f, 2, "memory"); /* it is kept in memory, not in that file */
    expect_answer(&f, 2, "memory");
    answer_file_release(&f);
    struct text text = read_file();
    CHECK_TEXT("as it was", text.data, foreign);
    text_release(&text);
    unlink(path);
    CHECK("a folder", mkdir(path, 0777) == 0);
    open_file(&f, "1",
              "test_answer_file.tmp: error: exists and is no regular file: remove it, or write "
              "elsewhere with -o\n");
    answer_file_release(&f);
    rmdir(path);
}

static void a_zeroed_answer_file_has_no_answers(void)
{
    struct answer_file f = {0};
    CHECK("none", !has(&f, 2, 4));
    answer_file_release(&f);
}

static const struct check_case cases[] = {
    {"answers come back", stored_answers_are_found_again},
    {"damage loses its own answer only", one_damaged_answer_loses_no_other},
    {"what is no such file stays", a_foreign_file_is_not_overwritten},
    {"all-zero has none", a_zeroed_answer_file_has_no_answers},
};
CHECK_MAIN("answer_file", cases)
