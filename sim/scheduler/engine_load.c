#define _GNU_SOURCE /* dlinfo() */

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/data_path.h"
#include "sim/scheduler/engine.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

/* CMake sets this to the folder of the build that holds the module, with a '/' at its end. In a bundle it is empty
 * and the bundle's loader finds the module, because the program's own path may be that of the loader
 * (packaging/start.sh). */
#ifndef LONGHAUL_BUILT_MODULES
#error "compile with LONGHAUL_BUILT_MODULES"
#endif

static const char module_name[] = "longhaul_simgrid.so";

static const struct engine_calls *_Atomic calls;
static void *module;

/* Appends the path of the module: in the program's folder, as in a build, or where it is installed,
 * if the file exists there; else in the folder where it was built. The last is for programs that
 * are elsewhere, such as tests and those of users of the library. */
static void append_module_path(struct text *path)
{
    static const char *const places[] = {"", "../lib/longhaul/"};
    const size_t begin = path->size;
    for (size_t i = 0; i < ARRAY_LEN(places) && program_folder(path); i++) {
        text_printf(path, "%s%s", places[i], module_name);
        if (access(path->data + begin, R_OK) == 0)
            return;
        path->size = begin;
    }
    text_printf(path, "%s%s", LONGHAUL_BUILT_MODULES, module_name);
}

enum status engine_load(struct diag *diag)
{
    if (calls != NULL)
        return STATUS_OK;
    struct text path = {0};
    append_module_path(&path);
    locale_t before = c_locale_enter();
    heap_guard_operator_new(true); /* SimGrid's constructors allocate */
    errno = 0;
    /* RTLD_LOCAL: SimGrid has an MPI of its own, whose names must not stand before those of the MPI of a launcher. */
    module = dlopen(path.data, RTLD_LAZY | RTLD_LOCAL);
    int error = errno;
    heap_guard_operator_new(false);
    c_locale_leave(before);
    if (module == NULL && error == ENOMEM)
        heap_out_of_memory();
    calls = module == NULL ? NULL : dlsym(module, "longhaul_simgrid");
    enum status status = STATUS_OK;
    if (calls == NULL) {
        status = diag_error(diag, (struct loc){.name = path.data}, STATUS_SYSTEM,
                            "the simulator cannot be loaded: %s; it belongs into "
                            "the program's folder or into ../lib/longhaul beside it",
                            dlerror());
    }
    text_release(&path);
    return status;
}

void engine_append_simgrid_module_path(struct text *out)
{
    struct link_map *map = NULL;
    assert(module != NULL);
    if (dlinfo(module, RTLD_DI_LINKMAP, &map) == 0)
        text_puts(out, map->l_name);
}

void engine_version(int *major, int *minor, int *patch)
{
    assert(calls != NULL);
    calls->version(major, minor, patch);
}

void engine_init(engine_done_fn done, engine_before_advance_fn ahead, void *context,
                 const double *link_bytes_per_s, uint32_t links)
{
    assert(calls != NULL);
    heap_guard_operator_new(true);
    calls->init(done, ahead, context, link_bytes_per_s, links);
}

double engine_now_s(void)
{
    return calls->now_s();
}

void engine_set_timer(double date_s, int64_t tag)
{
    calls->set_timer(date_s, tag);
}

void engine_start_flow(const uint32_t *link, uint32_t count, double bytes, int64_t tag)
{
    calls->start_flow(link, count, bytes, tag);
}

const char *engine_run(void)
{
    return calls->run();
}
