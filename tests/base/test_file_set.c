/* tests/base/test_file_set.c: a new folder appears with all files of a set, or not at all, however the program ends.
 * If files of an existing folder are only partly replaced, the last file of the set is missing. */
#include "base/file_set.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 4 };
static const char *const names[FILES] = {"a", "b", "c", "d"};

/* Returns the path of a file in the program's temporary folder. The text is kept until the program ends. */
static const char *temp_path(const char *name)
{
    static struct arena kept;
    return arena_printf(&kept, "%s/%s", check_temp_dir(), name);
}

/* Returns how many files a folder has, hidden ones included; -1: there is no folder. */
static int count_folder_entries(const char *folder)
{
    DIR *open = opendir(folder);
    int count = 0;
    if (open == NULL)
        return -1;
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open);
    return count;
}

/* Removes a folder that holds only files. */
static void remove_folder(const char *folder)
{
    struct text path = {0};
    DIR *open = opendir(folder);
    if (open == NULL)
        return;
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        path.size = 0;
        text_printf(&path, "%s/%s", folder, entry->d_name);
        unlink(path.data);
    }
    closedir(open);
    rmdir(folder);
    text_release(&path);
}

/* Removes a folder that holds only folders of files. */
static void remove_tree(const char *around)
{
    struct text path = {0};
    DIR *open = opendir(around);
    for (const struct dirent *entry = open ? readdir(open) : NULL; entry; entry = readdir(open)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        path.size = 0;
        text_printf(&path, "%s/%s", around, entry->d_name);
        remove_folder(path.data);
    }
    closedir(open);
    rmdir(around);
    text_release(&path);
}

static enum status save_file_set(const char *folder, const char *content, size_t count,
                                 struct diag *diag)
{
    struct file_set files = {.folder = folder};
    enum status status = file_set_begin(&files, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = file_set_add(&files, names[i], content, strlen(content), diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    return status;
}

/* Returns how many of the files in `names` exist in the folder with this content. */
static int count_files_with_content(const char *folder, const char *content)
{
    int count = 0;
    for (size_t i = 0; i < FILES; i++) {
        struct text path = {0}, text = {0};
        text_printf(&path, "%s/%s", folder, names[i]);
        count += text_read(&text, path.data, NULL) == STATUS_OK && text.data != NULL &&
                 strcmp(text.data, content) == 0;
        text_release(&text);
        text_release(&path);
    }
    return count;
}

static void a_folder_is_made_and_its_files_are_replaced(void)
{
    struct diag diag = {0};
    const char *folder = temp_path("made/"); /* a slash at the end makes no difference */
    int before = count_folder_entries(check_temp_dir());
    CHECK_INT("new", save_file_set(folder, "one", FILES, &diag), STATUS_OK);
    CHECK_INT("all there", count_files_with_content(folder, "one"), FILES);
    CHECK_INT("replaced", save_file_set(folder, "two", FILES, &diag), STATUS_OK);
    CHECK_INT("all new", count_files_with_content(folder, "two"), FILES);
    CHECK_INT("some", save_file_set(folder, "three", 2, &diag), STATUS_OK);
    CHECK_INT("others stay", count_files_with_content(folder, "two"), FILES - 2);
    CHECK_INT("no more files", count_folder_entries(folder), FILES);
    CHECK_INT("nothing beside it", count_folder_entries(check_temp_dir()), before + 1);
    CHECK_INT("no messages", (int64_t)diag.size, 0);
    remove_folder(folder);
    diag_release(&diag);
}

/* file_set_delete_file_at_end() marks a file for deletion. file_set_end() deletes it, if it is there; a set
 * that is released without file_set_end() leaves it. */
static void a_file_is_removed_with_what_it_describes(void)
{
    struct diag diag = {0};
    const char *folder = temp_path("described");
    CHECK_INT("old", save_file_set(folder, "old", FILES, &diag), STATUS_OK);
    for (int ended = 0; ended < 2; ended++) {
        struct file_set files = {.folder = folder};
        CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
        file_set_delete_file_at_end(&files, "b");
        file_set_delete_file_at_end(&files, "never there");
        CHECK_INT("add", file_set_add(&files, "a", "new", 3, &diag), STATUS_OK);
        if (ended)
            CHECK_INT("end", file_set_end(&files, &diag), STATUS_OK);
        file_set_release(&files);
        CHECK_INT("files", count_folder_entries(folder), FILES - ended);
        CHECK_INT("old ones", count_files_with_content(folder, "old"), FILES - 2 * ended);
    }
    CHECK_INT("no messages", (int64_t)diag.size, 0);
    remove_folder(folder);
    diag_release(&diag);
}

static void an_unended_file_set_leaves_nothing(void)
{
    struct diag diag = {0};
    const char *folder = temp_path("dropped");
    int before = count_folder_entries(check_temp_dir());
    struct file_set files = {.folder = folder};
    CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
    CHECK_INT("add", file_set_add(&files, "a", "x", 1, &diag), STATUS_OK);
    file_set_release(&files);
    CHECK_INT("nothing", count_folder_entries(check_temp_dir()), before);
    diag_release(&diag);
}

/* The set has more files than the 1024 that a process may have open by default. */
static void sets_beyond_open_file_limit_work(void)
{
    enum { MANY = 1100 };
    struct diag diag = {0};
    const char *folder = temp_path("many");
    for (int fresh = 1; fresh >= 0; fresh--) {
        struct file_set files = {.folder = folder};
        char name[32], content[32];
        CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "%d", i);
            snprintf(content, sizeof content, "%d %d", i, fresh);
            CHECK_INT("add", file_set_add(&files, name, content, strlen(content), &diag),
                      STATUS_OK);
        }
        if (fresh)
            CHECK_INT("not there yet", count_folder_entries(folder), -1);
        CHECK_INT("end", file_set_end(&files, &diag), STATUS_OK);
        file_set_release(&files);
        CHECK_INT("all", count_folder_entries(folder), MANY);
    }
    struct text text = {0};
    CHECK_INT("last", text_read(&text, temp_path("many/275"), &diag), STATUS_OK);
    CHECK_TEXT("last", text.data, "275 0");
    text_release(&text);
    remove_folder(folder);
    diag_release(&diag);
}

static void a_place_that_is_no_folder_is_refused(void)
{
    static const struct {
        const char *label, *folder, *message;
    } rows[] = {
        {"a file", "/dev/null",
         "/dev/null: error: exists and is not a folder; give a new name, or the name of a "
         "folder\n"},
        {"in no folder", "/no/such",
         "/no/such: error: cannot make the folder: No such file or directory\n"},
        {"where none can be made", "/proc/none",
         "/proc/none: error: cannot make the folder: No such file or directory\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        CHECK_INT(rows[i].label, save_file_set(rows[i].folder, "x", 1, &diag), STATUS_SYSTEM);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].message);
        diag_release(&diag);
    }
}

/* A limit on file sizes has the effect of a full disk: writing fails at the third file, which is longer. */
static void a_full_disk_leaves_no_folder(void)
{
    char text_over_size_limit[8192];
    memset(text_over_size_limit, 'x', sizeof text_over_size_limit);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small =
        (struct rlimit){.rlim_cur = sizeof text_over_size_limit / 2, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    for (int there = 0; there < 2; there++) {
        struct diag diag = {0};
        const char *folder = temp_path("full");
        if (there)
            CHECK_INT("old", save_file_set(folder, "old", FILES, &diag), STATUS_OK);
        int before = count_folder_entries(check_temp_dir());
        struct file_set files = {.folder = folder};
        setrlimit(RLIMIT_FSIZE, &small);
        enum status status = file_set_begin(&files, &diag);
        for (int i = 0; i < FILES && status == STATUS_OK; i++)
            status = file_set_add(&files, names[i], text_over_size_limit,
                                  i == 2 ? sizeof text_over_size_limit : 10, &diag);
        file_set_release(&files);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_INT("refused", status, STATUS_SYSTEM);
        CHECK("message", diag.text && strstr(diag.text, "full/c: error: cannot write: File too"));
        CHECK_INT("nothing beside it", count_folder_entries(check_temp_dir()), before);
        CHECK_INT("the folder", count_folder_entries(folder), there ? FILES : -1);
        CHECK_INT("as it was", count_files_with_content(folder, "old"), there ? FILES : 0);
        remove_folder(folder);
        diag_release(&diag);
    }
}

/* Kills a program at different moments, many times. Its new folder is then complete or absent; only SIGKILL may
 * leave a hidden folder beside it. */
static void a_kill_leaves_a_whole_folder_or_none(void)
{
    enum { KILLS = 60 };
    const char *around = temp_path("killed"), *folder = temp_path("killed/folder");
    int whole = 0, none = 0;
    for (int i = 0; i < KILLS; i++) {
        CHECK_INT("a folder around it", mkdir(around, 0777), 0);
        pid_t pid = fork();
        if (pid == 0) {
            save_file_set(folder, "new", FILES, NULL);
            _exit(0);
        }
        nanosleep(&(struct timespec){.tv_nsec = i * 400000L}, NULL);
        kill(pid, i % 3 == 0 ? SIGKILL : i % 3 == 1 ? SIGTERM : SIGINT);
        waitpid(pid, NULL, 0);
        int count = count_folder_entries(folder);
        CHECK("whole or not there",
              count == -1 || count_files_with_content(folder, "new") == FILES);
        CHECK("nothing beside it", i % 3 == 0 || count_folder_entries(around) == (count == FILES));
        whole += count == FILES;
        none += count == -1;
        remove_tree(around);
    }
    CHECK_INT("nothing between", whole + none, KILLS);
}

/* A failing rename has the effect of a kill between two renames. */
static void interrupted_replace_lacks_last_file(void)
{
    struct diag diag = {0};
    const char *folder = temp_path("mixed");
    CHECK_INT("old", save_file_set(folder, "old", FILES, &diag), STATUS_OK);
    struct file_set files = {.folder = folder};
    CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
    for (int i = 0; i < FILES; i++)
        CHECK_INT("add", file_set_add(&files, names[i], "new", 3, &diag), STATUS_OK);
    CHECK("one of them", file_set_has(&files, "b") && !file_set_has(&files, "e"));
    unlink(temp_path("mixed/b"));
    mkdir(temp_path("mixed/b"), 0777);
    CHECK_INT("refused", file_set_end(&files, &diag), STATUS_SYSTEM);
    file_set_release(&files);
    rmdir(temp_path("mixed/b"));
    CHECK_INT("new", count_files_with_content(folder, "new"), 1);
    CHECK_INT("old", count_files_with_content(folder, "old"), 1);
    CHECK("not the last", access(temp_path("mixed/d"), F_OK) != 0);
    CHECK_INT("nothing else", count_folder_entries(folder), 2);
    remove_folder(folder);
    diag_release(&diag);
}

enum { LINES = 200000 };

/* Writes a text of LINES lines, passing lines on early so that the text is never in memory as a whole. */
static void write_expected_lines(struct text *out)
{
    for (int i = 0; i < LINES; i++) {
        text_printf(out, "line %d\n", i);
        text_flush_to_file_if_long(out);
    }
    CHECK("its room", out->capacity < 1 << 20);
}

static bool file_has_expected_lines(const char *path)
{
    struct text got = {0}, want = {0};
    for (int i = 0; i < LINES; i++)
        text_printf(&want, "line %d\n", i);
    bool same = text_read(&got, path, NULL) == STATUS_OK && got.size == want.size &&
                memcmp(got.data, want.data, want.size) == 0;
    text_release(&got);
    text_release(&want);
    return same;
}

/* One of the files is a pipe, which gets its whole text at the end. */
static void files_are_written_while_their_text_is_made(void)
{
    struct diag diag = {0};
    const char *folder = temp_path("grown");
    CHECK_INT("old", save_file_set(folder, "old", FILES, &diag), STATUS_OK);
    unlink(temp_path("grown/b"));
    CHECK_INT("a pipe", mkfifo(temp_path("grown/b"), 0666), 0);
    pid_t reader = fork();
    if (reader == 0)
        _exit(file_has_expected_lines(temp_path("grown/b")) ? 0 : 1);
    struct file_set files = {.folder = folder};
    CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        struct text out = {0};
        CHECK_INT("open", file_set_open_file(&files, names[i], &out, &diag), STATUS_OK);
        if (i == 1)
            for (int line = 0; line < LINES; line++)
                text_printf(&out, "line %d\n", line);
        else
            write_expected_lines(&out);
        CHECK_INT("close", file_set_close_file(&files, &out, &diag), STATUS_OK);
        CHECK("released", out.data == NULL);
    }
    CHECK("not yet", !file_has_expected_lines(temp_path("grown/a")));
    CHECK_INT("end", file_set_end(&files, &diag), STATUS_OK);
    file_set_release(&files);
    int code = 1;
    waitpid(reader, &code, 0);
    CHECK_INT("through the pipe", code, 0);
    CHECK("files", file_has_expected_lines(temp_path("grown/a")) &&
                       file_has_expected_lines(temp_path("grown/c")));
    unlink(temp_path("grown/b"));
    CHECK_INT("another", count_files_with_content(folder, "old"), 1);
    remove_folder(folder);
    diag_release(&diag);
}

static void a_failed_text_write_leaves_no_file(void)
{
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    for (int full = 0; full < 2; full++) {
        struct diag diag = {0};
        struct text out = {0};
        const char *folder = temp_path("given up");
        int before = count_folder_entries(check_temp_dir());
        struct file_set files = {.folder = folder};
        CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
        CHECK_INT("open", file_set_open_file(&files, "a", &out, &diag), STATUS_OK);
        if (full)
            setrlimit(RLIMIT_FSIZE, &small);
        write_expected_lines(&out);
        if (full) {
            CHECK_INT("full", file_set_close_file(&files, &out, &diag), STATUS_SYSTEM);
            CHECK("message", diag.text && strstr(diag.text, "up/a: error: cannot write: File too"));
        }
        text_release(&out);
        file_set_release(&files);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_INT("nothing", count_folder_entries(check_temp_dir()), before);
        diag_release(&diag);
    }
}

/* Writes the word into all files of a folder. Returns false, and prints the message, if that
 * fails. */
static bool write_word_into_folder_files(const char *folder, const char *word)
{
    struct diag diag = {0};
    struct file_set files = {.folder = folder};
    enum status status = file_set_begin(&files, &diag);
    for (int i = 0; i < FILES && status == STATUS_OK; i++)
        status = file_set_add(&files, names[i], word, strlen(word), &diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, &diag);
    if (status != STATUS_OK)
        fputs(diag.text, stderr);
    file_set_release(&files);
    diag_release(&diag);
    return status == STATUS_OK;
}

static void a_folder_that_another_process_made_is_taken_over(void)
{
    const char *folder = temp_path("raced");
    struct diag diag = {0};
    struct file_set files = {.folder = folder};
    CHECK_INT("begin", file_set_begin(&files, &diag), STATUS_OK);
    for (int i = 0; i < FILES; i++)
        CHECK_INT("add", file_set_add(&files, names[i], "mine", 4, &diag), STATUS_OK);
    pid_t other = fork();
    if (other == 0)
        _exit(write_word_into_folder_files(folder, "its") ? 0 : 1);
    int code = 1;
    waitpid(other, &code, 0);
    CHECK_INT("the other", code, 0);
    CHECK_INT("the other's files", count_files_with_content(folder, "its"), FILES);
    CHECK_INT("end", file_set_end(&files, &diag), STATUS_OK);
    file_set_release(&files);
    CHECK_TEXT("no message", diag.text, "");
    CHECK_INT("these files", count_files_with_content(folder, "mine"), FILES);
    CHECK_INT("and no hidden ones", count_folder_entries(folder), FILES);
    remove_folder(folder);
    diag_release(&diag);
}

/* Several processes write the same folder at the same time. Afterwards all its files come from one
 * of them. */
static void files_of_two_processes_do_not_mix(void)
{
    enum { WRITERS = 4, ROUNDS = 40 };
    static const char *const words[WRITERS] = {"one", "two", "three", "four"};
    const char *folder = temp_path("shared");
    for (int round = 0; round < ROUNDS; round++) {
        pid_t writer[WRITERS];
        int whole = 0;
        for (int i = 0; i < WRITERS; i++) {
            writer[i] = fork();
            if (writer[i] == 0)
                _exit(write_word_into_folder_files(folder, words[i]) ? 0 : 1);
        }
        for (int i = 0; i < WRITERS; i++) {
            int code = 1;
            waitpid(writer[i], &code, 0);
            CHECK_INT(words[i], code, 0);
        }
        for (int i = 0; i < WRITERS; i++)
            whole += count_files_with_content(folder, words[i]) == FILES;
        if (!CHECK_INT("one process' files", whole, 1) ||
            !CHECK_INT("no hidden files", count_folder_entries(folder), FILES))
            break;
        remove_folder(folder);
    }
}

/* Another process makes and removes a file again and again, like a process that renames its files
 * into the folder. */
static void a_file_that_comes_and_goes_is_replaced(void)
{
    enum { ROUNDS = 10000 };
    const char *path = temp_path("comes-and-goes");
    pid_t other = fork();
    if (other == 0) {
        alarm(60); /* ends this process if the test does not kill it */
        for (;;) {
            close(open(path, O_WRONLY | O_CREAT, 0666));
            unlink(path);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct diag diag = {0};
        struct text out = {0};
        struct file_set files = {0};
        enum status status = file_set_open_file(&files, path, &out, &diag);
        text_release(&out);
        file_set_release(&files);
        bool right =
            CHECK_INT("open", status, STATUS_OK) && CHECK_TEXT("no message", diag.text, "");
        diag_release(&diag);
        if (!right)
            break;
    }
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    unlink(path);
}

static const struct check_case cases[] = {
    {"a folder that another process made is taken over",
     a_folder_that_another_process_made_is_taken_over},
    {"files of two processes do not mix", files_of_two_processes_do_not_mix},
    {"a file that comes and goes is replaced", a_file_that_comes_and_goes_is_replaced},
    {"a folder is made and its files are replaced", a_folder_is_made_and_its_files_are_replaced},
    {"a file is removed with what it describes", a_file_is_removed_with_what_it_describes},
    {"what is not ended leaves nothing", an_unended_file_set_leaves_nothing},
    {"many files appear together too", sets_beyond_open_file_limit_work},
    {"a place that is no folder is refused", a_place_that_is_no_folder_is_refused},
    {"a full disk leaves no folder", a_full_disk_leaves_no_folder},
    {"a kill leaves all or nothing", a_kill_leaves_a_whole_folder_or_none},
    {"files are written while their text is made", files_are_written_while_their_text_is_made},
    {"a text that is given up leaves nothing", a_failed_text_write_leaves_no_file},
    {"what is mixed lacks the last file", interrupted_replace_lacks_last_file},
};
CHECK_MAIN("files", cases)
