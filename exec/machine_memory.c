#include "exec/machine_memory.h"

#include "base/text.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns the bytes of memory that the system says are available; 0: it does not say. */
static double available_memory_bytes(void)
{
    double kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            const char *number = line + 13 + strspn(line + 13, " ");
            (void)parse_double(number, strcspn(number, " \n"), &kib);
        }
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

enum status machine_memory_check(const char *name, uint32_t ranks, double needed_bytes,
                                 struct diag *diag)
{
    double available_bytes = available_memory_bytes();
    if (available_bytes <= 0 || needed_bytes <= available_bytes)
        return STATUS_OK;
    struct text text = {0};
    units_put_gib(&text, needed_bytes);
    text_puts(&text, ", and this machine has ");
    units_put_gib(&text, available_bytes);
    enum status status = diag_error(
        diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
        "%" PRIu32 " rank%s %s; a small model such as longhaul-3m, or a shorter --seq, would do",
        ranks, ranks == 1 ? " needs" : "s need", text.data);
    text_release(&text);
    return status;
}
