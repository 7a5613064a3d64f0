/* Counts the GPUs that the launchers of files (torchrun, srun, deepspeed) ask for. */
#include "predict/launch/launch_parts.h"

#include <string.h>

/* Returns how many GPUs list[0..size) names by their numbers, as in "0,2,3"; 0 if it is no such list. */
static int64_t count_listed_devices(const char *list, size_t size)
{
    const char *end = list + size;
    int64_t count = 0;
    while (list < end) {
        size_t digits = strspn(list, "0123456789");
        if (digits == 0)
            return 0;
        count++;
        list += digits;
        if (list < end && *list++ != ',')
            return 0;
    }
    return count;
}

/* Returns how many GPUs deepspeed's --include names: 3 for "worker-0:0,1@worker-1:0". Returns 0 if a node has no
 * numbers of GPUs ("worker-0"): it stands for all GPUs of the node, and how many these are is not known. */
static int64_t count_included_gpus(const char *nodes)
{
    int64_t count = 0;
    for (size_t size; *nodes != '\0'; nodes += size + (nodes[size] == '@')) {
        size = strcspn(nodes, "@");
        size_t host = strcspn(nodes, ":@");
        int64_t devices = host < size ? count_listed_devices(nodes + host + 1, size - host - 1) : 0;
        if (devices == 0)
            return 0;
        count += devices;
    }
    return count;
}

int64_t launch_gpu_count(const struct launch *launch)
{
    const int64_t most = 1 << 20; /* more than any cluster has here */
    const char *visible = launch_field_text(launch, LAUNCH_VISIBLE);
    int64_t nodes = launch_count_or(launch, LAUNCH_NODES, 1), gpus = 0;
    if (launch_has_field(launch, LAUNCH_PROCESSES))
        gpus = launch_count_or(launch, LAUNCH_PROCESSES, 0);
    else if (launch_has_field(launch, LAUNCH_DEVICES))
        gpus = count_included_gpus(launch_field_text(launch, LAUNCH_DEVICES));
    else if (launch_has_field(launch, LAUNCH_GPUS_A_NODE))
        gpus = nodes * launch_count_or(launch, LAUNCH_GPUS_A_NODE, 0);
    else if (launch_has_field(launch, LAUNCH_TASKS))
        gpus = launch_count_or(launch, LAUNCH_TASKS, 0);
    else if (launch_has_field(launch, LAUNCH_VISIBLE))
        gpus = nodes * count_listed_devices(visible, strlen(visible));
    return gpus < 0 ? 0 : gpus < most ? gpus : most;
}
