/* Writes the description of a backend into the header of measured points. */
#include "exec/microbench.h"

#include "exec/backend.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void set_header_key(struct points *points, const char *key, const char *value)
{
    points_add_header_line(points, (struct loc){0}, key, value);
}

/* Sets name to the "model name" of the first processor in /proc/cpuinfo or, if the system does not give it, to the
 * machine's architecture. */
static void read_processor_name(char *name, size_t size)
{
    static const char key[] = "model name";
    char line[256];
    struct utsname system;
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "%s", uname(&system) == 0 ? system.machine : "a processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || colon == NULL)
            continue;
        colon += 1 + strspn(colon + 1, " ");
        snprintf(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file)
        fclose(file);
}

static void describe_cpu(struct points *points)
{
    char name[128];
    read_processor_name(name, sizeof name);
    set_header_key(points, "device", name);
    set_header_key(points, "threads", "1");
    set_header_key(points, "blas", openblas_get_config());
    set_header_key(points, "device.sm_count", "1");
}

static void add_header_to_points(void *user, const char *key, const char *value)
{
    set_header_key(user, key, value);
}

enum status microbench_describe(const char *backend, struct points *points, struct diag *diag)
{
    const char *name = backend ? backend : "cpu";
    const struct backend *row = backend_find(name);
    if (row == NULL)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "there is no backend '%s' in this build", name);
    set_header_key(points, "backend", name);
    if (row->describe != NULL)
        return row->describe(add_header_to_points, points, diag);
    describe_cpu(points);
    return STATUS_OK;
}
