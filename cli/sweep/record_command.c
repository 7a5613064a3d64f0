#define _XOPEN_SOURCE 700 /* realpath(), nftw() */
#include "cli/sweep/record_command.h"

#include "base/c_locale.h"
#include "base/digest.h"
#include "base/path.h"
#include "base/process.h"
#include "traces/step_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct loc at_option = {.name = "--record-cmd"};

/* ---- the names of recordings, of which the command's digest is a part ---- */

static uint64_t add_to_digest(uint64_t sum, const char *data, size_t size)
{
    return digest_add(digest_add(sum, data, size), "\xff", 1);
}

uint64_t record_command_digest(const char *command)
{
    static const char blanks[] = " \t\n;&|<>()\"'";
    uint64_t sum = add_to_digest(DIGEST_OF_NO_BYTES, command, strlen(command));
    for (const char *at = command + strspn(command, blanks); *at != '\0';) {
        const size_t size = strcspn(at, blanks);
        struct text path = {0}, text = {0};
        text_printf(&path, "%.*s", (int)size, at);
        if (path_is_file(path.data) && text_read(&text, path.data, NULL) == STATUS_OK)
            sum = add_to_digest(sum, text.data == NULL ? "" : text.data, text.size);
        text_release(&path);
        text_release(&text);
        at += size;
        at += strspn(at, blanks);
    }
    return sum;
}

/* Returns the recorder's name of a device (longhaul.record --device); NULL: it has none. */
static const char *recorder_device_name(const char *device)
{
    static const char *const same[] = {"a100-40g", "a100-80g", "h100-96g", "h200", "gh200",
                                       "b200",     "gb200",    "b300",     "gb300"};
    if (device == NULL)
        return NULL;
    if (strcmp(device, "h100") == 0)
        return "h100-sxm";
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (strcmp(same[i], device) == 0)
            return device;
    return NULL;
}

/* Appends the path of the recording, or of the folder of its stages, without its ending:
 * "recordings/w8-l8192-h100-0123456789abcdef". */
static void put_recording_stem(struct text *out, const struct record_command *run)
{
    struct text name = {0};
    text_printf(&name, "w%" PRId64, run->world_size);
    if (run->stage_count > 0)
        text_printf(&name, "-s%" PRId64, run->stage_count);
    if (run->sequence_tokens > 0)
        text_printf(&name, "-l%" PRId64, run->sequence_tokens);
    if (run->batch_sequences > 0)
        text_printf(&name, "-b%" PRId64, run->batch_sequences);
    if (recorder_device_name(run->device) != NULL)
        text_printf(&name, "-%s", run->device);
    text_printf(out, "%s/%s-%016" PRIx64, run->folder, name.data, run->digest);
    text_release(&name);
}

/* ---- the command ---- */

/* Sets an environment variable to a number, or removes the variable if the number is 0. */
static void set_number_variable(const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    if (value > 0)
        setenv(name, text, 1);
    else
        unsetenv(name);
}

/* Sets LONGHAUL_RECORD_OUTPUT to the absolute path, since the command may change its working folder. */
static void set_output_variable(const struct record_command *run, const char *output)
{
    struct text whole = {0};
    char *folder = realpath(run->folder, NULL);
    text_printf(&whole, "%s%s", folder != NULL ? folder : run->folder, strrchr(output, '/'));
    setenv("LONGHAUL_RECORD_OUTPUT", whole.data, 1);
    free(folder);
    text_release(&whole);
}

/* If the pipeline has stages, sets LONGHAUL_RECORD_STAGES and LONGHAUL_RECORD_RANK; else removes the former. */
static void set_rank_variables(const struct record_command *run, int64_t rank)
{
    char text[32];
    set_number_variable("LONGHAUL_RECORD_STAGES", run->stage_count);
    snprintf(text, sizeof text, "%" PRId64, rank);
    if (run->stage_count > 0)
        setenv("LONGHAUL_RECORD_RANK", text, 1);
}

/* Replaces the child process by the command that records a rank. The output of the command goes to `log`. */
static void exec_command(const struct record_command *run, int64_t rank, const char *output,
                         int log)
{
    const char *device = recorder_device_name(run->device);
    const int none = open("/dev/null", O_RDONLY);
    set_output_variable(run, output);
    set_number_variable("LONGHAUL_RECORD_WORLD_SIZE", run->world_size);
    set_rank_variables(run, rank);
    set_number_variable("LONGHAUL_RECORD_LENGTH", run->sequence_tokens);
    set_number_variable("LONGHAUL_RECORD_BATCH", run->batch_sequences);
    if (device != NULL)
        setenv("LONGHAUL_RECORD_DEVICE", device, 1);
    else
        unsetenv("LONGHAUL_RECORD_DEVICE");
    if (none >= 0 && dup2(none, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
        execl("/bin/sh", "sh", "-c", run->command, (char *)NULL);
    _exit(127);
}

/* Appends ": " and the last line of a file that is not blank, of which at most the last SHOWN letters; nothing if there
 * is no such line. */
static void put_last_line_of_file(struct text *out, const char *path)
{
    enum { SHOWN = 300 };
    struct text text = {0};
    if (text_read(&text, path, NULL) == STATUS_OK) {
        size_t end = text.size;
        while (end > 0 && c_is_space(text.data[end - 1]))
            end--;
        size_t begin = end;
        while (begin > 0 && text.data[begin - 1] != '\n' && end - begin < SHOWN)
            begin--;
        if (end > begin)
            text_printf(out, ": %.*s", (int)(end - begin), text.data + begin);
    }
    text_release(&text);
}

/* True if a command failed because the folder's disk is full: it has no space left, or the last line that the command
 * printed says so. */
static bool disk_is_full(const char *folder, const struct text *last)
{
    struct statvfs disk_space;
    return (statvfs(folder, &disk_space) == 0 && disk_space.f_bavail == 0) ||
           (last->size > 0 && strstr(last->data, strerror(ENOSPC)) != NULL);
}

/* Reports how the command failed. Returns `status`; or STATUS_SYSTEM if the disk is full, so that the next run of the
 * sweep tries the point again. */
static enum status report_failed_record_command(const struct record_command *run,
                                                enum status status, const char *log,
                                                const char *how, struct diag *diag)
{
    struct text last = {0};
    put_last_line_of_file(&last, log);
    const bool is_full = disk_is_full(run->folder, &last);
    if (is_full)
        status = STATUS_SYSTEM;
    diag_error(diag, at_option, status, "%s%s%s (%s has all that the command printed)",
               is_full ? "the disk of --record-dir is full: " : "", how,
               last.size > 0 ? last.data : "", log);
    text_release(&last);
    return status;
}

/* True if the file is a recorded step that can be read. */
static bool is_readable_recording(const char *path)
{
    struct text text = {0};
    struct step_recording recording = {0};
    struct diag diag = {0};
    const bool is_readable =
        step_recording_is_file_at(path) && text_read(&text, path, &diag) == STATUS_OK &&
        step_recording_parse(&recording, path, text.data, text.size, &diag) == STATUS_OK;
    step_recording_release(&recording);
    text_release(&text);
    diag_release(&diag);
    return is_readable;
}

/* Runs the command for a rank, and waits for it. Returns STATUS_SYSTEM if a signal ended it or the
 * disk is full; STATUS_BAD_INPUT if it failed by itself or wrote no recorded step to `output`. */
static enum status run_command_of_rank(const struct record_command *run, int64_t rank,
                                       const char *output, int log, const char *log_path,
                                       struct diag *diag)
{
    enum { SIGNALS = 128, LAST_SIGNAL = 31 };
    char how[80];
    int state = 0;
    pid_t parent = getpid(), child = fork(), got;
    if (child < 0)
        return diag_error(diag, at_option, STATUS_SYSTEM, "cannot fork: %s", strerror(errno));
    if (child == 0) {
        process_end_with_parent(parent);
        exec_command(run, rank, output, log);
    }
    do
        got = waitpid(child, &state, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return diag_error(diag, at_option, STATUS_SYSTEM, "cannot wait for the command: %s",
                          strerror(errno));
    /* A shell whose command was ended by signal N exits with the code SIGNALS + N. */
    const int number = WIFSIGNALED(state) ? WTERMSIG(state)
                       : WIFEXITED(state) ? WEXITSTATUS(state) - SIGNALS
                                          : 0;
    if (number > 0 && number <= LAST_SIGNAL) {
        snprintf(how, sizeof how, "the command was ended by signal %d (%.40s)", number,
                 strsignal(number));
        return report_failed_record_command(run, STATUS_SYSTEM, log_path, how, diag);
    }
    if (WEXITSTATUS(state) != 0) {
        snprintf(how, sizeof how, "the command ended with exit code %d", WEXITSTATUS(state));
        return report_failed_record_command(run, STATUS_BAD_INPUT, log_path, how, diag);
    }
    return is_readable_recording(output)
               ? STATUS_OK
               : report_failed_record_command(
                     run, STATUS_BAD_INPUT, log_path,
                     "the command wrote no recorded step to $LONGHAUL_RECORD_OUTPUT", diag);
}

/* ---- folders of recordings ---- */

static int remove_path_on_nftw(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

/* Removes a file or a whole folder that a command left in place of a recording. */
static void remove_file_or_folder(const char *path)
{
    enum { FOLDERS_OPEN = 8 };
    nftw(path, remove_path_on_nftw, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* Opens the file into which the command prints, and waits until no other process has it locked. Returns -1 after an
 * error. */
static int open_and_lock_log(const char *path, struct diag *diag)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int locked = -1;
    while (log >= 0 && (locked = fcntl(log, F_SETLKW, &whole)) != 0 && errno == EINTR)
        ;
    if (log >= 0 && locked == 0)
        return log;
    diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot write: %s",
               strerror(errno));
    if (log >= 0)
        close(log);
    return -1;
}

/* Makes the recording of a rank at `path` if it does not exist. stem: the path with which the names of the log and
 * of the unfinished recording begin. */
static enum status make_recording_of_rank(const struct record_command *run, int64_t rank,
                                          const char *stem, const char *path, struct diag *diag)
{
    struct text log_path = {0}, made = {0};
    enum status status = STATUS_OK;
    text_printf(&log_path, "%s.log", stem);
    text_printf(&made, "%s.%ld.json.gz", stem, (long)getpid());
    const int log = open_and_lock_log(log_path.data, diag);
    if (log < 0)
        status = STATUS_SYSTEM;
    else if (!step_recording_is_file_at(path)) {
        if (ftruncate(log, 0) != 0)
            status = diag_error(diag, (struct loc){.name = log_path.data}, STATUS_SYSTEM,
                                "cannot write: %s", strerror(errno));
        if (status == STATUS_OK)
            status = run_command_of_rank(run, rank, made.data, log, log_path.data, diag);
        if (status == STATUS_OK && rename(made.data, path) != 0)
            status = diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot write: %s",
                                strerror(errno));
        if (status != STATUS_OK)
            remove_file_or_folder(made.data);
    }
    if (log >= 0)
        close(log); /* gives the lock back */
    text_release(&log_path);
    text_release(&made);
    return status;
}

static enum status make_folder(const char *path, struct diag *diag)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM,
                            "cannot make the folder: %s", strerror(errno));
}

/* Makes the recordings of all stages in a folder. A recording is written next to the folder until it is complete, so
 * that the folder has only complete ones. */
static enum status make_recordings_of_stages(const struct record_command *run, const char *folder,
                                             struct diag *diag)
{
    if (run->world_size % run->stage_count != 0)
        return diag_error(diag, (struct loc){.name = "--record-stages"}, STATUS_BAD_INPUT,
                          "%" PRId64 " stages do not divide the %" PRId64
                          " GPU%s of the point: all stages have the same number of ranks",
                          run->stage_count, run->world_size, run->world_size == 1 ? "" : "s");
    enum status status = make_folder(folder, diag);
    for (int64_t i = 0; i < run->stage_count && status == STATUS_OK; i++) {
        const int64_t rank = i * (run->world_size / run->stage_count);
        struct text stem = {0}, path = {0};
        text_printf(&stem, "%s-r%" PRId64, folder, rank);
        text_printf(&path, "%s/r%" PRId64 ".json.gz", folder, rank);
        status = make_recording_of_rank(run, rank, stem.data, path.data, diag);
        text_release(&stem);
        text_release(&path);
    }
    return status;
}

enum status record_command_make_recordings(const struct record_command *run, struct text *path,
                                           struct diag *diag)
{
    enum status status = make_folder(run->folder, diag);
    if (status != STATUS_OK)
        return status;
    put_recording_stem(path, run);
    if (run->stage_count > 0)
        return make_recordings_of_stages(run, path->data, diag);
    struct text stem = {0};
    text_puts(&stem, path->data);
    text_puts(path, ".json.gz");
    status = make_recording_of_rank(run, 0, stem.data, path->data, diag);
    text_release(&stem);
    return status;
}
