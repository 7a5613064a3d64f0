/* tests/exec/test_cuda_emulated_host.c: the host's part of the CUDA backend: its memory, and how its threads
 * wait. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/host_memory.h"
#include "tests/check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The lines of /proc/self/smaps about the mapping that contains an address. */
struct mapping {
    uint64_t resident_bytes;
    bool large_pages; /* were requested */
};

static bool find_memory_mapping(const void *address, struct mapping *mapping)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, done = false;
    while (file != NULL && !done && fgets(line, sizeof line, file) != NULL) {
        char *end;
        uintptr_t begin = (uintptr_t)strtoull(line, &end, 16);
        if (end != line && *end == '-') /* "begin-end permissions ..." opens an entry */
            inside = (uintptr_t)address >= begin &&
                     (uintptr_t)address < (uintptr_t)strtoull(end + 1, NULL, 16);
        else if (inside && strncmp(line, "Rss:", 4) == 0)
            mapping->resident_bytes = strtoull(line + 4, NULL, 10) << 10;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            mapping->large_pages = strstr(line, " hg") != NULL;
            done = true;
        }
    }
    if (file != NULL)
        fclose(file);
    return done;
}

static bool system_has_large_pages(void)
{
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

static void host_memory_has_large_pages(void)
{
    static const struct {
        const char *label;
        size_t bytes;
        bool large;
    } rows[] = {
        {"a page", 4096, false},
        {"two large pages", 4 << 20, true},
        {"more than one thread touches", (130 << 20) + 4096, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mapping mapping = {0};
        char *memory = host_memory_new(rows[i].bytes, -1);
        if (!CHECK(rows[i].label, memory != NULL && find_memory_mapping(memory, &mapping)))
            continue;
        CHECK(rows[i].label, mapping.resident_bytes >= rows[i].bytes);
        CHECK(rows[i].label, !rows[i].large || (uintptr_t)memory % (2 << 20) == 0);
        if (system_has_large_pages())
            CHECK_INT(rows[i].label, mapping.large_pages, rows[i].large);
        CHECK(rows[i].label, memory[0] == 0 && memory[rows[i].bytes - 1] == 0);
        memory[0] = memory[rows[i].bytes - 1] = 1;
        host_memory_free(memory, rows[i].bytes);
    }
}

/* With its default timer slack the kernel would wake the thread 50 us late. */
static void a_thread_that_has_waited_is_woken_in_time(void)
{
    prctl(PR_SET_TIMERSLACK, 50000ul);
    cuda_pause_polling(run_now_s() +
                       3600); /* a thread that has not waited so far, however slowly it runs */
    CHECK_INT("it yields first", prctl(PR_GET_TIMERSLACK), 50000);
    cuda_pause_polling(run_now_s() - 1);
    CHECK_INT("then it sleeps", prctl(PR_GET_TIMERSLACK), 1);
}

static const struct check_case cases[] = {
    {"memory of the host is there in large pages", host_memory_has_large_pages},
    {"a thread that has waited is woken in time", a_thread_that_has_waited_is_woken_in_time},
};
CHECK_MAIN("cuda emulated host", cases)
