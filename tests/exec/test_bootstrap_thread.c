/* tests/exec/test_bootstrap_thread.c: the processes of a run learn their ranks from the launcher's environment, find
 * each other and exchange small messages. Here the processes are threads. */
#include "exec/bootstrap_state.h"

#include "tests/check.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* processes; rounds of messages; bytes of a broadcast, more than a socket takes at once */
enum { SIZE = 5, ROUNDS = 50, BYTES = 70000 };

/* A thread that acts as a process of a run. */
struct process {
    struct bootstrap_place place;
    uint32_t wrong_call_or_message_count; /* calls that failed and messages that were not as sent */
    bool must_leave;  /* process 2 ends without taking part, which the others must notice */
    bool has_noticed; /* this process noticed that process 2 has ended */
    pthread_t thread;
};

/* Returns a port chosen by the process id, so that tests can run at the same time. */
static uint16_t new_port(void)
{
    static int next;
    return (uint16_t)(20000 + (getpid() * 7 + next++) % 20000);
}

/* Runs one round: all processes gather one number of each, and one process, another in each round, sends a block to
 * all. */
static void exchange(struct process *p, struct bootstrap *b, uint32_t round, struct diag *diag)
{
    uint32_t mine = p->place.rank * 1000 + round, all[SIZE], root = round % SIZE;
    static _Thread_local char blob[BYTES];
    if (bootstrap_all_gather(b, &mine, all, sizeof mine, diag) != STATUS_OK)
        p->wrong_call_or_message_count++;
    for (uint32_t i = 0; i < SIZE; i++)
        p->wrong_call_or_message_count += all[i] != i * 1000 + round;
    memset(blob, p->place.rank == root ? (int)round + 1 : 0, BYTES);
    if (bootstrap_broadcast(b, root, blob, BYTES, diag) != STATUS_OK)
        p->wrong_call_or_message_count++;
    for (size_t i = 0; i < BYTES; i += 997)
        p->wrong_call_or_message_count += blob[i] != (char)(round + 1);
}

static void *process_main(void *argument)
{
    struct process *p = argument;
    struct diag diag = {0};
    struct bootstrap *b = bootstrap_open(&p->place, 1, 10, &diag);
    if (b == NULL) {
        p->wrong_call_or_message_count++;
        fputs(diag.text, stderr);
    } else if (!p->must_leave) {
        for (uint32_t round = 0; round < ROUNDS; round++)
            exchange(p, b, round, &diag);
    } else if (p->place.rank != 2) { /* rank 2 ends without taking part */
        char all[SIZE], mine = 0;
        enum status first = bootstrap_all_gather(b, &mine, all, 1, &diag);
        p->has_noticed = first == STATUS_SYSTEM && /* a second call fails as well */
                         bootstrap_all_gather(b, &mine, all, 1, &diag) == first;
    }
    bootstrap_close(b);
    diag_release(&diag);
    return NULL;
}

/* Runs SIZE processes until all have ended. */
static void run_processes(struct process *process, bool must_leave)
{
    uint16_t port = new_port();
    for (uint32_t i = SIZE; i-- > 0;) { /* rank 0 starts last */
        process[i] =
            (struct process){.place = {i, SIZE, i, "127.0.0.1", port, 0}, .must_leave = must_leave};
        pthread_create(&process[i].thread, NULL, process_main, &process[i]);
    }
    for (uint32_t i = 0; i < SIZE; i++)
        pthread_join(process[i].thread, NULL);
}

static void all_processes_receive_all_messages(void)
{
    struct process process[SIZE];
    run_processes(process, false);
    for (uint32_t i = 0; i < SIZE; i++)
        CHECK_INT("messages that were not as sent", process[i].wrong_call_or_message_count, 0);
}

static void a_process_that_ends_is_noticed(void)
{
    struct process process[SIZE];
    run_processes(process, true);
    for (uint32_t i = 0; i < SIZE; i++)
        CHECK("the others are told", i == 2 || process[i].has_noticed);
}

enum { VARIABLES = 6 };

/* The place in the run that follows from the environment: rank, processes, rank on the machine; where rank 0
 * listens. */
static const struct {
    const char *label, *variable[VARIABLES]; /* name=value */
    uint32_t rank, size, local;
    const char *host;
    uint16_t port;
} launched[] = {
    /* label, variable, rank, size, local, host, port */
    {"none", {0}, 0, 1, 0, "127.0.0.1", 29555},
    {"torchrun",
     {"RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "MASTER_ADDR=a", "MASTER_PORT=29500"},
     5,
     8,
     1,
     "a",
     30500},
    {"a port near the end", {"MASTER_PORT=65000"}, 0, 1, 0, "127.0.0.1", 64000},
    {"our own port", {"MASTER_PORT=29500", "LONGHAUL_PORT=4000"}, 0, 1, 0, "127.0.0.1", 4000},
    {"by hand, two variables",
     {"RANK=1", "WORLD_SIZE=2"},
     1,
     2,
     BOOTSTRAP_UNKNOWN,
     "127.0.0.1",
     29555},
    {"srun",
     {"SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "SLURM_STEP_ID=2",
      "SLURM_JOB_ID=12345", "SLURM_STEP_NODELIST=gpu[007-009,12]-a,login1"},
     3,
     4,
     1,
     "gpu007-a",
     20000 + (12345 * 7 + 2) % 10000},
    {"torchrun on two nodes",
     {"RANK=5", "WORLD_SIZE=16", "LOCAL_RANK=5", "LOCAL_WORLD_SIZE=8", "MASTER_ADDR=a"},
     5,
     16,
     5,
     "a",
     29555},
    {"srun on one node",
     {"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=0",
      "SLURM_STEP_NODELIST=node-a,node-b", "SLURM_JOB_ID=1"},
     0,
     2,
     0,
     "node-a",
     20007},
    {"the shell of sbatch",
     {"SLURM_NTASKS=8", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_JOB_ID=1",
      "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1"},
     0,
     1,
     0,
     "127.0.0.1",
     29555},
    {"mpirun of Open MPI below srun",
     {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=2",
      "OMPI_COMM_WORLD_LOCAL_SIZE=4", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"},
     2,
     4,
     2,
     "127.0.0.1",
     29555},
    {"mpirun of MPICH",
     {"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"},
     1,
     2,
     1,
     "127.0.0.1",
     29555},
};

/* The number of processes that share this one's machine, and so its memory. */
static const struct {
    const char *label, *variable[VARIABLES]; /* name=value */
    uint32_t count;
} sharing[] = {
    {"none", {0}, 1},
    {"torchrun on two nodes",
     {"RANK=5", "WORLD_SIZE=16", "LOCAL_RANK=5", "LOCAL_WORLD_SIZE=8", "MASTER_ADDR=a"},
     8},
    {"by hand on one machine", {"RANK=1", "WORLD_SIZE=16"}, 16},
    {"by hand on several machines",
     {"RANK=1", "WORLD_SIZE=16", "MASTER_ADDR=a"},
     BOOTSTRAP_UNKNOWN},
    {"mpirun on two nodes",
     {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "MASTER_ADDR=a"},
     2},
    {"srun, the first node of equal ones",
     {"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=20", "SLURM_NODEID=0",
      "SLURM_STEP_TASKS_PER_NODE=8(x2),4", "SLURM_STEP_NODELIST=a"},
     8},
    {"srun, the last of equal ones",
     {"SLURM_PROCID=8", "SLURM_STEP_NUM_TASKS=20", "SLURM_NODEID=1",
      "SLURM_STEP_TASKS_PER_NODE=8(x2),4", "SLURM_STEP_NODELIST=a"},
     8},
    {"srun, a node of fewer",
     {"SLURM_PROCID=16", "SLURM_STEP_NUM_TASKS=20", "SLURM_NODEID=2",
      "SLURM_STEP_TASKS_PER_NODE=8(x2),4", "SLURM_STEP_NODELIST=a"},
     4},
    {"srun, a node of more",
     {"SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=12", "SLURM_NODEID=1",
      "SLURM_STEP_TASKS_PER_NODE=4,8", "SLURM_STEP_NODELIST=a"},
     8},
    {"srun, a node beyond the list",
     {"SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=12", "SLURM_NODEID=7",
      "SLURM_STEP_TASKS_PER_NODE=4,8", "SLURM_STEP_NODELIST=a"},
     BOOTSTRAP_UNKNOWN},
    {"srun, no list",
     {"SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=12", "SLURM_NODEID=1"},
     BOOTSTRAP_UNKNOWN},
};

static const struct {
    const char *label, *variable[VARIABLES], *message;
} wrongly_launched[] = {
    {"no number",
     {"WORLD_SIZE=many"},
     "WORLD_SIZE: error: 'many' is not a whole number from 0 to 65535; launchers (torchrun, "
     "mpirun, srun) set this variable\n"},
    {"no rank",
     {"WORLD_SIZE=2"},
     "RANK: error: is not set, but WORLD_SIZE is: 2 processes have ranks from 0\n"},
    {"a rank too many",
     {"WORLD_SIZE=2", "RANK=2"},
     "WORLD_SIZE: error: rank 2 of 2 processes; ranks count from 0\n"},
    {"port 0",
     {"WORLD_SIZE=2", "RANK=1", "LONGHAUL_PORT=0"},
     "LONGHAUL_PORT: error: 0 is no port to connect to; a number from 1 to 65535 would do\n"},
    {"two machines and no address",
     {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     "MASTER_ADDR: error: is not set; with processes on several machines it must name the machine "
     "of rank 0, in the environment of all\n"},
};

static void set_environment(const char *const *variable, bool set)
{
    for (int k = 0; k < VARIABLES && variable[k] != NULL; k++) {
        char name[64];
        size_t size = strcspn(variable[k], "=");
        snprintf(name, sizeof name, "%.*s", (int)size, variable[k]);
        if (set)
            setenv(name, variable[k] + size + 1, 1);
        else
            unsetenv(name);
    }
}

static void launchers_give_rank_and_process_count(void)
{
    struct bootstrap_place place;
    for (size_t i = 0; i < ARRAY_LEN(launched); i++) {
        struct diag diag = {0};
        set_environment(launched[i].variable, true);
        CHECK_INT(launched[i].label, bootstrap_place_read(&place, &diag), STATUS_OK);
        set_environment(launched[i].variable, false);
        CHECK_TEXT(launched[i].label, diag.text ? diag.text : "", "");
        CHECK_INT(launched[i].label, place.rank, launched[i].rank);
        CHECK_INT(launched[i].label, place.process_count, launched[i].size);
        CHECK_INT(launched[i].label, place.local_rank, launched[i].local);
        CHECK_TEXT(launched[i].label, place.rank0_host, launched[i].host);
        CHECK_INT(launched[i].label, place.rank0_port, launched[i].port);
        diag_release(&diag);
    }
    for (size_t i = 0; i < ARRAY_LEN(sharing); i++) {
        struct diag diag = {0};
        set_environment(sharing[i].variable, true);
        CHECK_INT(sharing[i].label, bootstrap_place_read(&place, &diag), STATUS_OK);
        set_environment(sharing[i].variable, false);
        CHECK_INT(sharing[i].label, place.local_process_count, sharing[i].count);
        diag_release(&diag);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrongly_launched); i++) {
        struct diag diag = {0};
        set_environment(wrongly_launched[i].variable, true);
        CHECK_INT(wrongly_launched[i].label, bootstrap_place_read(&place, &diag), STATUS_BAD_INPUT);
        set_environment(wrongly_launched[i].variable, false);
        CHECK_TEXT(wrongly_launched[i].label, diag.text ? diag.text : "",
                   wrongly_launched[i].message);
        diag_release(&diag);
    }
}

/* ---- the port, and the processes that connect there ---- */

/* A server of another protocol that holds a port, as the store of torchrun's agent does: it accepts a connection, reads
 * once, sends reply_text and closes. */
struct foreign_server {
    int fd;
    const char *reply_text; /* NULL: nothing */
    pthread_t thread;
};

static void *run_foreign_server(void *argument)
{
    const struct foreign_server *fake_server = argument;
    for (;;) {
        char bytes[256];
        int peer = accept(fake_server->fd, NULL, NULL);
        if (peer < 0)
            return NULL;
        (void)!recv(peer, bytes, sizeof bytes, 0);
        if (fake_server->reply_text != NULL)
            (void)!send(peer, fake_server->reply_text, strlen(fake_server->reply_text),
                        MSG_NOSIGNAL);
        close(peer);
    }
}

static bool foreign_server_open(struct foreign_server *fake_server, uint16_t port,
                                const char *reply_text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    *fake_server =
        (struct foreign_server){.fd = socket(AF_INET, SOCK_STREAM, 0), .reply_text = reply_text};
    return bind(fake_server->fd, (struct sockaddr *)(void *)&address, sizeof address) == 0 &&
           listen(fake_server->fd, 16) == 0 &&
           pthread_create(&fake_server->thread, NULL, run_foreign_server, fake_server) == 0;
}

static void foreign_server_close(struct foreign_server *fake_server)
{
    shutdown(fake_server->fd, SHUT_RDWR);
    pthread_join(fake_server->thread, NULL);
    close(fake_server->fd);
}

/* A process that connects, and what it is told. */
struct caller {
    struct bootstrap_place place;
    uint64_t request;
    double timeout_s;
    struct bootstrap *b;
    struct diag diag;
    pthread_t thread;
};

static void *call(void *argument)
{
    struct caller *c = argument;
    c->b = bootstrap_open(&c->place, c->request, c->timeout_s, &c->diag);
    return NULL;
}

static void connect_all(struct caller *caller, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pthread_create(&caller[i].thread, NULL, call, &caller[i]);
    for (size_t i = 0; i < count; i++)
        pthread_join(caller[i].thread, NULL);
}

static void disconnect_all(struct caller *caller, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bootstrap_close(caller[i].b);
        diag_release(&caller[i].diag);
    }
}

/* torchrun's agent already listens on MASTER_PORT when the processes start. */
static void a_torchrun_agent_on_the_port_does_not_disturb(void)
{
    struct foreign_server torchrun_agent;
    struct caller caller[2] = {0};
    char port[16];
    uint16_t master = new_port();
    if (!CHECK("the store has the port", foreign_server_open(&torchrun_agent, master, NULL)))
        return;
    snprintf(port, sizeof port, "%d", master);
    setenv("MASTER_PORT", port, 1);
    setenv("WORLD_SIZE", "2", 1);
    for (size_t i = 0; i < 2; i++) {
        struct diag diag = {0};
        setenv("RANK", i == 0 ? "0" : "1", 1);
        CHECK_INT("place", bootstrap_place_read(&caller[i].place, &diag), STATUS_OK);
        caller[i].timeout_s = 10;
        diag_release(&diag);
    }
    unsetenv("MASTER_PORT");
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
    connect_all(caller, 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_TEXT("nothing is said", caller[i].diag.text ? caller[i].diag.text : "", "");
        if (CHECK("connected", caller[i].b != NULL)) {
            CHECK_INT("place on the machine", bootstrap_local_rank(caller[i].b), (int64_t)i);
            CHECK_INT("processes of the machine", bootstrap_local_process_count(caller[i].b), 2);
        }
    }
    disconnect_all(caller, 2);
    foreign_server_close(&torchrun_agent);
}

static void another_program_on_the_port_is_named_on_both_sides(void)
{
    static const char *const reply_texts[] = {
        NULL, "HTTP/1.1 400 Bad Request\r\n\r\n",
        "longer than an answer: ................................."};
    for (size_t k = 0; k < ARRAY_LEN(reply_texts); k++) {
        struct foreign_server other_program;
        uint16_t port = new_port();
        char first[256], second[256];
        struct caller caller[2] = {{.place = {0, 2, 0, "127.0.0.1", port, 0}, .timeout_s = 3},
                                   {.place = {1, 2, 1, "127.0.0.1", port, 0}, .timeout_s = 3}};
        if (!CHECK("the store has the port",
                   foreign_server_open(&other_program, port, reply_texts[k])))
            return;
        connect_all(caller, 2);
        snprintf(first, sizeof first,
                 "bind: error: rank 0 of 2 cannot listen on port %d: another program has it, or "
                 "another run on this machine; LONGHAUL_PORT chooses another port, the same for "
                 "all processes\n",
                 port);
        snprintf(second, sizeof second,
                 "rank 0: error: rank 1 does not find rank 0: another program listens on "
                 "127.0.0.1:%d and does not answer as longhaul would; LONGHAUL_PORT chooses "
                 "another port, the same for all processes\n",
                 port);
        CHECK_TEXT("rank 0", caller[0].diag.text ? caller[0].diag.text : "", first);
        CHECK_TEXT("rank 1", caller[1].diag.text ? caller[1].diag.text : "", second);
        disconnect_all(caller, 2);
        foreign_server_close(&other_program);
    }
}

static void processes_that_differ_are_refused_on_both_sides(void)
{
    static const struct {
        const char *label;
        uint32_t rank, size;
        uint64_t request;
        const char *message; /* of both */
    } rows[] = {
        /* label, rank, size, request, message */
        {"size", 1, 3, 7,
         "rank 0: error: rank 1 is one of 3 processes and rank 0 one of 2; the launcher must give "
         "all the same number\n"},
        {"schedule", 1, 2, 8,
         "rank 0: error: rank 1 has another schedule, or other options, than rank 0; all processes "
         "must be started with the same options and files\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint16_t port = new_port();
        struct caller caller[2] = {
            {.place = {0, 2, 0, "127.0.0.1", port, 0}, .request = 7, .timeout_s = 10},
            {.place = {rows[i].rank, rows[i].size, 1, "127.0.0.1", port, 0},
             .request = rows[i].request,
             .timeout_s = 10}};
        connect_all(caller, 2);
        for (size_t k = 0; k < 2; k++) {
            CHECK("refused", caller[k].b == NULL);
            CHECK_TEXT(rows[i].label, caller[k].diag.text ? caller[k].diag.text : "",
                       rows[i].message);
        }
        disconnect_all(caller, 2);
    }
}

static void connected_processes_hear_which_ranks_are_absent(void)
{
    uint16_t port = new_port();
    char message[256];
    struct caller caller[2] = {{.place = {0, 4, 0, "127.0.0.1", port, 0}, .timeout_s = 1},
                               {.place = {2, 4, 1, "127.0.0.1", port, 0}, .timeout_s = 1}};
    connect_all(caller, 2);
    snprintf(message, sizeof message,
             "rank 0: error: of 4 processes not all have connected to port %d within 1 s; missing: "
             "rank 1, 3\n",
             port);
    for (size_t k = 0; k < 2; k++)
        CHECK_TEXT("missing", caller[k].diag.text ? caller[k].diag.text : "", message);
    disconnect_all(caller, 2);
}

/* ---- progress, and processes that are absent, stopped or leaving ---- */

/* Returns true once process `at` knows these numbers of ended ops and of busy processes, and the failed rank; gives up
 * after five seconds. */
static bool wait_until_progress_is_heard(struct caller *at, uint64_t own, uint64_t ended,
                                         uint32_t busy, uint32_t failed)
{
    static const struct timespec nap = {0, 20000000};
    for (int tries = 0; tries < 250; tries++) {
        struct bootstrap_progress p = bootstrap_report_progress(at->b, own, false, false);
        if (p.ended_ops == ended && p.busy_processes == busy && p.failed_rank_plus_1 == failed)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static void progress_reaches_all_processes(void)
{
    enum { COUNT = 3 };
    struct caller caller[COUNT] = {0};
    uint16_t port = new_port();
    for (uint32_t i = 0; i < COUNT; i++)
        caller[i] = (struct caller){.place = {i, COUNT, i, "127.0.0.1", port, 0}, .timeout_s = 10};
    connect_all(caller, COUNT);
    bool all = true;
    for (uint32_t i = 0; i < COUNT; i++)
        all = all && CHECK("connected", caller[i].b != NULL);
    if (all) {
        for (uint32_t i = 0; i < COUNT; i++)
            (void)bootstrap_report_progress(caller[i].b, 10 * i, i == 2, false);
        CHECK("rank 1 hears of rank 2", wait_until_progress_is_heard(&caller[1], 10, 30, 1, 0));
        CHECK("rank 0 hears of rank 2", wait_until_progress_is_heard(&caller[0], 0, 30, 1, 0));
        (void)bootstrap_report_progress(caller[2].b, 25, false, true);
        CHECK("a failure is known", wait_until_progress_is_heard(&caller[1], 10, 35, 0, 3));
        bootstrap_close(caller[2].b);
        caller[2].b = NULL;
        CHECK("so is an end", wait_until_progress_is_heard(&caller[0], 0, 35, 0, 3));
    }
    disconnect_all(caller, COUNT);
}

/* The message says whether no process listens at rank 0's address or the machine's name is unknown. */
static void an_absent_rank_0_is_reported(void)
{
    uint16_t port = new_port();
    char message[256];
    struct caller caller[2] = {
        {.place = {1, 2, 1, "127.0.0.1", port, 0}, .timeout_s = 0.3},
        {.place = {1, 2, 1, "no.such.machine.invalid", port, 0}, .timeout_s = 0.3}};
    connect_all(caller, 2);
    snprintf(message, sizeof message,
             "rank 0: error: rank 1 of 2 has not found it on 127.0.0.1:%d within 0.3 s (Connection "
             "refused): either it has not started, or it has ended, or MASTER_ADDR names another "
             "machine\n",
             port);
    CHECK_TEXT("nobody", caller[0].diag.text ? caller[0].diag.text : "", message);
    const char *unknown = "MASTER_ADDR: error: rank 1 of 2 knows no machine "
                          "'no.such.machine.invalid' (";
    CHECK("no such machine", caller[1].diag.text != NULL &&
                                 strncmp(caller[1].diag.text, unknown, strlen(unknown)) == 0);
    disconnect_all(caller, 2);
}

/* A process that is stopped keeps its connections, and its last heartbeat may say that an op is running. */
static void a_process_that_is_stopped_is_noticed(void)
{
    enum { COUNT = 3 };
    struct caller caller[COUNT] = {0};
    uint16_t port = new_port();
    for (uint32_t i = 0; i < COUNT; i++)
        caller[i] = (struct caller){.place = {i, COUNT, i, "127.0.0.1", port, 0}, .timeout_s = 60};
    connect_all(caller, COUNT);
    bool all = true;
    for (uint32_t i = 0; i < COUNT; i++)
        all = all && CHECK("connected", caller[i].b != NULL);
    if (all) {
        char mine = 0, got[COUNT];
        (void)bootstrap_report_progress(caller[2].b, 0, true, false);
        CHECK("rank 2 is at work", wait_until_progress_is_heard(&caller[1], 0, 0, 1, 0));
        pthread_mutex_lock(&caller[0].b->lock);
        caller[0].b->limits = (struct silence_limits){.silence_until_counted_idle_s = 0.3,
                                                      .silence_until_failure_s = 1};
        pthread_mutex_unlock(&caller[0].b->lock);
        atomic_store(&caller[2].b->must_quit, true); /* its heartbeats stop */
        CHECK("then it is not", wait_until_progress_is_heard(&caller[1], 0, 0, 0, 0));
        CHECK_INT("nobody waits for it",
                  bootstrap_all_gather(caller[0].b, &mine, got, 1, &caller[0].diag), STATUS_SYSTEM);
        CHECK_TEXT("rank 0", caller[0].diag.text ? caller[0].diag.text : "",
                   "recv: error: rank 0 has not heard of rank 2 for 1 s: it, or its machine, is "
                   "stopped or cut off\n");
    }
    disconnect_all(caller, COUNT);
}

static void a_leaving_process_does_not_wait(void)
{
    struct caller caller[2] = {0};
    uint16_t port = new_port();
    for (uint32_t i = 0; i < 2; i++)
        caller[i] = (struct caller){.place = {i, 2, i, "127.0.0.1", port, 0}, .timeout_s = 600};
    connect_all(caller, 2);
    if (CHECK("connected", caller[0].b != NULL && caller[1].b != NULL)) {
        char mine = 0, got[2];
        double since_s = bootstrap_now_s();
        bootstrap_announce_end(caller[0].b);
        CHECK_INT("gather", bootstrap_all_gather(caller[0].b, &mine, got, 1, &caller[0].diag),
                  STATUS_SYSTEM);
        CHECK("soon", bootstrap_now_s() - since_s < 30);
    }
    disconnect_all(caller, 2);
}

static const struct check_case cases[] = {
    {"launchers say who we are", launchers_give_rank_and_process_count},
    {"everybody hears everybody", all_processes_receive_all_messages},
    {"a process that goes is noticed", a_process_that_ends_is_noticed},
    {"the store of an agent is in nobody's way", a_torchrun_agent_on_the_port_does_not_disturb},
    {"another program on the port is named on both sides",
     another_program_on_the_port_is_named_on_both_sides},
    {"processes that differ are refused on both sides",
     processes_that_differ_are_refused_on_both_sides},
    {"those who have come hear who has not", connected_processes_hear_which_ranks_are_absent},
    {"a process that is stopped is noticed", a_process_that_is_stopped_is_noticed},
    {"a process that leaves waits for nobody", a_leaving_process_does_not_wait},
    {"a rank 0 that is not there is said", an_absent_rank_0_is_reported},
    {"progress reaches all processes", progress_reaches_all_processes},
};
CHECK_MAIN("bootstrap", cases)
