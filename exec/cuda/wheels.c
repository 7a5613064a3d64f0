#include "exec/cuda/wheels.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A script for python3 that prints the folders nvidia/.../lib among its packages. Only python3 knows where its packages
 * are, since there are shims, virtual environments, and folders of the user and of distributions. It runs with an empty
 * LD_LIBRARY_PATH, because the libraries that this program was started with are not meant for it. */
static const char command[] =
    "LD_LIBRARY_PATH= exec python3 -c '"
    "import glob, site, sys\n"
    "roots = [p for p in sys.path if p.endswith(\"-packages\")]\n"
    "for root in dict.fromkeys(roots + site.getsitepackages()):\n"
    "    for folder in sorted(glob.glob(glob.escape(root) + \"/nvidia/*/lib\")):\n"
    "        print(folder)\n"
    "' 2>/dev/null </dev/null";

enum { FOLDERS_MAX = 64, BYTES_MAX = 1 << 14 };

static const char *folder[FOLDERS_MAX];
static size_t folders;

static void ask_python_for_wheel_folders(void)
{
    static char text[BYTES_MAX];
    FILE *python = popen(command, "r");
    size_t size = python != NULL ? fread(text, 1, sizeof text - 1, python) : 0;
    if (python != NULL)
        pclose(python);
    text[size] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (folders < FOLDERS_MAX && line[0] == '/')
            folder[folders++] = line;
    }
}

const char *const *wheel_folders(size_t *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_python_for_wheel_folders);
    *count = folders;
    return folder;
}
