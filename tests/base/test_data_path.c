/* tests/base/test_data_path.c: a data file is looked for only in the folder that LONGHAUL_DATA
 * names; without the variable, in the installed tree and then in the source tree. The message for a missing one names
 * the folders. */
#include "base/data_path.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

/* Without LONGHAUL_DATA, an installed tree finds its own data first: tests/install.cmake tests
 * that. */
static void the_environment_comes_before_the_source_tree(void)
{
    struct text path = {0};
    struct diag diag = {0};
    unsetenv("LONGHAUL_DATA");
    CHECK_INT("found", data_path(&path, "tests/check.h", &diag), STATUS_OK);
    CHECK_TEXT("source tree", path.data, check_path("check.h"));
    setenv("LONGHAUL_DATA", "/no/such", 1);
    CHECK_INT("only there", data_path(&path, "x", &diag), STATUS_SYSTEM);
    CHECK_TEXT("message", diag.text,
               "x: error: not found in /no/such: set LONGHAUL_DATA to the folder that holds it\n");
    setenv("LONGHAUL_DATA", check_temp_dir(), 1);
    CHECK_INT("the folder itself", data_path(&path, ".", &diag), STATUS_OK);
    unsetenv("LONGHAUL_DATA");
    text_release(&path);
    diag_release(&diag);
}

static void a_missing_file_names_the_folders_tried(void)
{
    struct text path = {0};
    struct diag diag = {0};
    CHECK_INT("status", data_path(&path, "no/such", &diag), STATUS_SYSTEM);
    CHECK("names the installed place", strstr(diag.text, "/share/longhaul, ") != NULL);
    text_release(&path);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"the environment comes before the source tree", the_environment_comes_before_the_source_tree},
    {"a missing file names the folders tried", a_missing_file_names_the_folders_tried},
};
CHECK_MAIN("data_path", cases)
