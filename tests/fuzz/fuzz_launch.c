/* tests/fuzz/fuzz_launch.c: whatever the text, and whichever kind of launch file it is taken for, it is
 * converted to options, or there is exactly one message. */
#include "predict/launch/launch.h"
#include "predict/launch/table_file.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

static void check_config(const char *name, const char *text, size_t size,
                         struct launch_known_facts given)
{
    static struct launch_tables tables; /* read once */
    if (tables.file_count == 0)
        assert(launch_tables_load(&tables, NULL) == STATUS_OK);
    struct launch launch = {.tables = &tables};
    struct diag diag = {0};
    enum status status = launch_read_text(&launch, name, text, size, &diag);
    if (status == STATUS_OK)
        status = launch_make_options(&launch, given, &diag);
    assert((status == STATUS_OK) == (diag.error_count == 0));
    assert(diag.error_count <= 1);
    for (size_t i = 0; i < launch.option_count; i++)
        assert(launch.option[i].name != NULL);
    for (size_t i = 0; i < launch.remark_count; i++)
        assert(launch.remark[i].name != NULL && launch.remark[i].kind < REMARK_KIND_COUNT);
    diag_release(&diag);
    launch_release(&launch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"fuzz.toml", "fuzz.yaml", "fuzz.json", "fuzz.sh"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        check_config(names[i], (const char *)data, size,
                     (struct launch_known_facts){.gpu_count = 8});
    check_config("fuzz.sh", (const char *)data, size,
                 (struct launch_known_facts){.takes_experts_as_dense = true});
    return 0;
}
