/* tests/base/data_where.c: prints where a shipped file is found, for the test of the installed
 * tree (tests/install.cmake), which runs it from several places. */
#include "base/data_path.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct text path = {0};
    struct diag diag = {0};
    enum status status = data_path(&path, argc > 1 ? argv[1] : "", &diag);
    if (status == STATUS_OK)
        puts(path.data);
    else
        fputs(diag.text, stderr);
    text_release(&path);
    diag_release(&diag);
    return status == STATUS_OK ? 0 : 2;
}
