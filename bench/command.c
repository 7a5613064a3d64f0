/* Runs a command as a process group of its own, which an alarm or a signal to this program ends as a whole. */
#define _DEFAULT_SOURCE /* wait4() */
#include "bench/command.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

static volatile sig_atomic_t running;     /* the process group of the command */
static volatile sig_atomic_t out_of_time; /* the alarm has ended the command */

/* Ends the command and the processes it has forked, which are one process group; on a signal other than the alarm also
 * this program. */
static void kill_command(int signal)
{
    out_of_time = signal == SIGALRM;
    kill(-(pid_t)running, SIGKILL);
    if (signal != SIGALRM)
        _exit(128 + signal);
}

/* Replaces the child process by the program with the words of the command. */
static void exec_command(const char *program, const char *command)
{
    char *words[WORDS_MAX + 2] = {"longhaul"}, *text = heap_alloc(strlen(command) + 1, 1);
    size_t count = 1;
    strcpy(text, command);
    for (char *word = strtok(text, " "); word && count <= WORDS_MAX; word = strtok(NULL, " "))
        words[count++] = word;
    const int nowhere = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execv(program, words);
    _exit(127);
}

static double timeval_seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

void command_catch_signals(void)
{
    static const int ending[] = {SIGALRM, SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        sigaction(ending[i], &(struct sigaction){.sa_handler = kill_command}, NULL);
}

bool command_run(const char *program, const char *command, unsigned limit_s,
                 struct command_run *run)
{
    struct rusage usage;
    int wait_status;
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0)
        exec_command(program, command);
    setpgid(child, child); /* the child does this too; the first of the two decides */
    running = (sig_atomic_t)child;
    out_of_time = 0;
    alarm(limit_s);
    while (wait4(child, &wait_status, 0, &usage) < 0 && errno == EINTR)
        ;
    alarm(0);
    *run = (struct command_run){.ended_in_time = !out_of_time,
                                .exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1,
                                .cpu_s = timeval_seconds(usage.ru_utime) +
                                         timeval_seconds(usage.ru_stime),
                                .peak_mib = (double)usage.ru_maxrss / 1024};
    return true;
}
