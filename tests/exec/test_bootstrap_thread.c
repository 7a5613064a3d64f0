/* tests/exec/test_bootstrap_thread.c: the processes of a run learn their ranks from the launcher's environment, find
 * each other and exchange small messages. Here the processes are threads. */
#include "exec/bootstrap.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 5, ROUNDS = 50, BYTES = 70000 };

struct process {
    struct bootstrap_place place;
    uint32_t wrong;
    bool leaves, told;
    pthread_t thread;
};

/* Returns a port chosen by the process id, so that tests can run at the same time. */
static uint16_t new_port(void)
{
    static int next;
    return (uint16_t)(20000 + (getpid() * 7 + next++) % 20000);
}

static void exchange(struct process *p, struct bootstrap *b, uint32_t round, struct diag *diag)
{
    uint32_t mine = p->place.rank * 1000 + round, all[SIZE], root = round % SIZE;
    static _Thread_local char blob[BYTES];
    if (bootstrap_gather(b, &mine, all, sizeof mine, diag) != STATUS_OK)
        p->wrong++;
    for (uint32_t i = 0; i < SIZE; i++)
        p->wrong += all[i] != i * 1000 + round;
    memset(blob, p->place.rank == root ? (int)round + 1 : 0, BYTES);
    if (bootstrap_broadcast(b, root, blob, BYTES, diag) != STATUS_OK)
        p->wrong++;
    for (size_t i = 0; i < BYTES; i += 997)
        p->wrong += blob[i] != (char)(round + 1);
}

static void *process_main(void *argument)
{
    struct process *p = argument;
    struct diag diag = {0};
    struct bootstrap *b = bootstrap_open(&p->place, 10, &diag);
    if (b == NULL) {
        p->wrong++;
        fputs(diag.text, stderr);
    } else if (!p->leaves) {
        for (uint32_t round = 0; round < ROUNDS; round++)
            exchange(p, b, round, &diag);
    } else if (p->place.rank != 2) { /* rank 2 ends without taking part */
        char all[SIZE], mine = 0;
        enum status first = bootstrap_gather(b, &mine, all, 1, &diag);
        p->told = first == STATUS_SYSTEM && /* a second call fails as well */
                  bootstrap_gather(b, &mine, all, 1, &diag) == first;
    }
    bootstrap_close(b);
    diag_release(&diag);
    return NULL;
}

static void run(struct process *process, bool leaves)
{
    uint16_t port = new_port();
    for (uint32_t i = SIZE; i-- > 0;) { /* rank 0 starts last */
        process[i] = (struct process){.place = {i, SIZE, i, "127.0.0.1", port}, .leaves = leaves};
        pthread_create(&process[i].thread, NULL, process_main, &process[i]);
    }
    for (uint32_t i = 0; i < SIZE; i++)
        pthread_join(process[i].thread, NULL);
}

static void everybody_hears_everybody(void)
{
    struct process process[SIZE];
    run(process, false);
    for (uint32_t i = 0; i < SIZE; i++)
        CHECK_INT("messages that were not as sent", process[i].wrong, 0);
}

static void a_process_that_goes_is_noticed(void)
{
    struct process process[SIZE];
    run(process, true);
    for (uint32_t i = 0; i < SIZE; i++)
        CHECK("the others are told", i == 2 || process[i].told);
}

static void launchers_say_who_we_are(void)
{
    static const struct {
        const char *label, *name[3], *value[3];
        uint32_t rank, size, local;
    } rows[] = {
        {"torchrun", {"RANK", "WORLD_SIZE", "LOCAL_RANK"}, {"5", "8", "1"}, 5, 8, 1},
        {"slurm", {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}, {"3", "4", "3"}, 3, 4, 3},
    };
    struct diag diag = {0};
    struct bootstrap_place place;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int k = 0; k < 3; k++)
            setenv(rows[i].name[k], rows[i].value[k], 1);
        CHECK_INT(rows[i].label, bootstrap_place_read(&place, &diag), STATUS_OK);
        CHECK_INT(rows[i].label, place.rank, rows[i].rank);
        CHECK_INT(rows[i].label, place.size, rows[i].size);
        CHECK_INT(rows[i].label, place.local, rows[i].local);
        for (int k = 0; k < 3; k++)
            unsetenv(rows[i].name[k]);
    }
    CHECK_INT("nothing said", bootstrap_place_read(&place, &diag), STATUS_OK);
    CHECK_INT("alone", place.size, 1);
    setenv("WORLD_SIZE", "many", 1);
    CHECK_INT("no number", bootstrap_place_read(&place, &diag), STATUS_BAD_INPUT);
    unsetenv("WORLD_SIZE");
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"launchers say who we are", launchers_say_who_we_are},
    {"everybody hears everybody", everybody_hears_everybody},
    {"a process that goes is noticed", a_process_that_goes_is_noticed},
};
CHECK_MAIN("bootstrap", cases)
