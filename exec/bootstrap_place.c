/* Reads this process's rank, the number of processes and the address of rank 0 from the variables of launchers. */
#include "exec/bootstrap.h"

#include "base/arena.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PORT: the port if no variable gives one. BESIDE: added to MASTER_PORT, on which torchrun's store listens, or
 * subtracted from it if the sum exceeds 65535. SLURM_PORTS, SLURM_PORT_COUNT: the first and the number of the ports
 * that are derived from the number of a Slurm job. */
enum { PORT = 29555, BESIDE = 1000, SLURM_PORTS = 20000, SLURM_PORT_COUNT = 10000 };

/* The variables that each launcher sets. The first row whose `marker` is set shows how this process was started.
 * Slurm's row is the last, because mpirun may start its daemons by srun, so that its processes have Slurm's variables,
 * too. Its marker is a variable of a job step: the shell of sbatch has SLURM_NTASKS and SLURM_PROCID although it is a
 * single process. */
static const struct launch_variables {
    const char *marker, *process_count, *rank, *local_rank;
    /* Slurm's variable is a list of all nodes: in "8(x2),4" two nodes have 8 processes each, and one has 4 */
    const char *local_process_count;
} launchers[] = {
    /* torchrun, or variables that a user sets */
    {"WORLD_SIZE", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    /* mpirun of Open MPI */
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    /* mpirun of MPICH and Intel MPI */
    {"MPI_LOCALNRANKS", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    /* srun of Slurm */
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE"},
};

static const struct launch_variables *find_launcher(void)
{
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        if (getenv(launchers[i].marker) != NULL)
            return &launchers[i];
    return NULL;
}

static enum status read_count_variable(const char *name, uint32_t fallback, uint32_t *number,
                                       struct diag *diag)
{
    const char *text = getenv(name);
    char *end;
    *number = fallback;
    if (text == NULL)
        return STATUS_OK;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > 65535)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "'%s' is not a whole number from 0 to 65535; launchers (torchrun, "
                          "mpirun, srun) set this variable",
                          text);
    *number = (uint32_t)value;
    return STATUS_OK;
}

/* Copies the first host of Slurm's list of nodes: "gpu003-a" of "gpu[003-010,12]-a,login1". */
static void copy_first_host(const char *list, char *host, size_t size)
{
    size_t stem = strcspn(list, "[,");
    const char *number = list[stem] == '[' ? list + stem + 1 : "";
    size_t digits = strcspn(number, "-,]");
    const char *after = strchr(number, ']');
    after = after != NULL ? after + 1 : "";
    snprintf(host, size, "%.*s%.*s%.*s", (int)stem, list, (int)digits, number,
             (int)strcspn(after, "[,"), after);
}

static bool is_slurm(const struct launch_variables *launcher)
{
    return launcher != NULL && strncmp(launcher->process_count, "SLURM", 5) == 0;
}

/* Returns the number of tasks of node number `node`, from 0, in Slurm's list: in "8(x2),4", node 2 has 4. A plain
 * number is a list of one node. Returns 0 if the list has no such node or cannot be read. */
static uint32_t find_task_count_of_node(const char *list, unsigned long node)
{
    while (*list != '\0') {
        char *end;
        unsigned long tasks = strtoul(list, &end, 10), nodes = 1;
        if (end == list)
            return 0;
        if (strncmp(end, "(x", 2) == 0) {
            nodes = strtoul(end + 2, &end, 10);
            end += *end == ')';
        }
        if (node < nodes)
            return tasks <= UINT16_MAX ? (uint32_t)tasks : 0;
        node -= nodes;
        list = end + (*end == ',');
    }
    return 0;
}

static void read_local_process_count(struct bootstrap_place *place,
                                     const struct launch_variables *launcher)
{
    const char *list = launcher != NULL ? getenv(launcher->local_process_count) : NULL;
    const char *node = is_slurm(launcher) ? getenv("SLURM_NODEID") : NULL;
    uint32_t tasks = list != NULL
                         ? find_task_count_of_node(list, node != NULL ? strtoul(node, NULL, 10) : 0)
                         : 0;
    bool is_one_machine =
        place->process_count == 1 || (getenv("MASTER_ADDR") == NULL && !is_slurm(launcher));
    if (tasks > 0)
        place->local_process_count = tasks < place->process_count ? tasks : place->process_count;
    else
        place->local_process_count = is_one_machine ? place->process_count : BOOTSTRAP_UNKNOWN;
}

static enum status read_rank0_host(struct bootstrap_place *place,
                                   const struct launch_variables *launcher, struct diag *diag)
{
    const char *host = getenv("MASTER_ADDR"), *nodes = getenv("SLURM_STEP_NODELIST");
    snprintf(place->rank0_host, sizeof place->rank0_host, "%s", host != NULL ? host : "127.0.0.1");
    if (host != NULL || launcher == NULL)
        return STATUS_OK;
    if (is_slurm(launcher) && nodes != NULL) {
        copy_first_host(nodes, place->rank0_host, sizeof place->rank0_host);
        return STATUS_OK;
    }
    if (place->local_process_count < place->process_count)
        return diag_error(diag, (struct loc){.name = "MASTER_ADDR"}, STATUS_BAD_INPUT,
                          "is not set; with processes on several machines it must name the "
                          "machine of rank 0, in the environment of all");
    return STATUS_OK;
}

/* Sets the port of rank 0. LONGHAUL_PORT gives it. Else it is BESIDE away from MASTER_PORT, on which torchrun's store
 * listens; or without that variable, in a Slurm job, a port that depends on the job, since several jobs may share a
 * machine; or else PORT. */
static enum status read_rank0_port(struct bootstrap_place *place,
                                   const struct launch_variables *launcher, struct diag *diag)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    uint32_t port, master;
    enum status status = read_count_variable("MASTER_PORT", 0, &master, diag);
    if (master > 0)
        port = master + BESIDE <= UINT16_MAX ? master + BESIDE : master - BESIDE;
    else if (is_slurm(launcher) && job != NULL)
        port = SLURM_PORTS + (uint32_t)((strtoull(job, NULL, 10) * 7 +
                                         (step != NULL ? strtoull(step, NULL, 10) : 0)) %
                                        SLURM_PORT_COUNT);
    else
        port = PORT;
    if (status == STATUS_OK)
        status = read_count_variable("LONGHAUL_PORT", port, &port, diag);
    if (status == STATUS_OK && port == 0)
        status = diag_error(diag, (struct loc){.name = "LONGHAUL_PORT"}, STATUS_BAD_INPUT,
                            "0 is no port to connect to; a number from 1 to 65535 would do");
    place->rank0_port = (uint16_t)port;
    return status;
}

enum status bootstrap_place_read(struct bootstrap_place *place, struct diag *diag)
{
    const struct launch_variables *launcher = find_launcher();
    enum status status = STATUS_OK;
    *place = (struct bootstrap_place){.process_count = 1};
    if (launcher != NULL) {
        status = read_count_variable(launcher->process_count, 1, &place->process_count, diag);
        if (status == STATUS_OK && place->process_count > 1 && getenv(launcher->rank) == NULL)
            status = diag_error(diag, (struct loc){.name = launcher->rank}, STATUS_BAD_INPUT,
                                "is not set, but %s is: %" PRIu32 " processes have ranks from 0",
                                launcher->process_count, place->process_count);
        if (status == STATUS_OK)
            status = read_count_variable(launcher->rank, 0, &place->rank, diag);
        if (status == STATUS_OK)
            status = read_count_variable(launcher->local_rank, BOOTSTRAP_UNKNOWN,
                                         &place->local_rank, diag);
    }
    if (status == STATUS_OK && (place->process_count == 0 || place->rank >= place->process_count))
        status = diag_error(diag, (struct loc){.name = launcher->process_count}, STATUS_BAD_INPUT,
                            "rank %" PRIu32 " of %" PRIu32 " processes; ranks count from 0",
                            place->rank, place->process_count);
    read_local_process_count(place, launcher);
    if (status == STATUS_OK)
        status = read_rank0_host(place, launcher, diag);
    return status == STATUS_OK ? read_rank0_port(place, launcher, diag) : status;
}

bool bootstrap_is_printing_process(void)
{
    struct bootstrap_place place;
    struct diag unread = {0};
    bool is_printing = bootstrap_place_read(&place, &unread) != STATUS_OK || place.rank == 0;
    diag_release(&unread);
    return is_printing;
}
