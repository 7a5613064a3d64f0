#include "exec/cuda/library.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static enum status refused(struct diag *diag, const char *name, const char *what)
{
    return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM, "cannot be opened: %s",
                      what);
}

void *library_open(const char *const *names, size_t count, const char *folder, struct diag *diag)
{
    char words[512] = "no such library";
    for (size_t i = 0; i < 2 * count; i++) {
        char path[1024];
        const char *name = names[i % count];
        if (i < count)
            snprintf(path, sizeof path, "%s", name);
        else if (strchr(name, '/') == NULL)
            snprintf(path, sizeof path, "%s/%s", folder, name);
        else
            continue;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL)
            return library;
        if (i == 0)
            snprintf(words, sizeof words, "%s", dlerror());
    }
    refused(diag, names[0], words);
    return NULL;
}

void *library_find(void *library, const char *library_name, const char *function, struct diag *diag)
{
    dlerror();
    void *found = dlsym(library, function);
    if (found == NULL)
        diag_error(diag, (struct loc){.name = library_name}, STATUS_SYSTEM,
                   "has no function %s: %s", function, dlerror());
    return found;
}

/* A table of functions: names, and where their addresses go. */
struct table {
    const char *const *library;
    size_t libraries;
    const char *folder;
    const char *const *function;
    size_t functions;
    void *table;
};

static bool fill(const struct table *t, struct diag *diag)
{
    void *library = library_open(t->library, t->libraries, t->folder, diag);
    if (library == NULL)
        return false;
    for (size_t i = 0; i < t->functions; i++) {
        void *found = library_find(library, t->library[0], t->function[i], diag);
        if (found == NULL)
            return false;
        memcpy((char *)t->table + i * sizeof found, &found, sizeof found);
    }
    return true;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool fill_once(const struct table *t, bool *filled, struct diag *diag)
{
    pthread_mutex_lock(&lock);
    if (!*filled)
        *filled = fill(t, diag);
    bool there = *filled;
    pthread_mutex_unlock(&lock);
    return there;
}

#define NAME_OF(name) #name,

static const struct cublaslt *cublaslt_given;

void cublaslt_use(const struct cublaslt *table)
{
    cublaslt_given = table;
}

const struct cublaslt *cublaslt_open(struct diag *diag)
{
    static const char *const libraries[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                            "libcublasLt.so"};
    static const char *const functions[] = {CUBLASLT_FUNCTIONS(NAME_OF)};
    static struct cublaslt cublaslt;
    static bool filled;
    const struct table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                            functions, ARRAY_LEN(functions), &cublaslt};
    if (cublaslt_given != NULL)
        return cublaslt_given;
    return fill_once(&t, &filled, diag) ? &cublaslt : NULL;
}

#ifdef HAVE_CUDNN
static const struct cudnn *cudnn_given;

void cudnn_use(const struct cudnn *table)
{
    cudnn_given = table;
}

const struct cudnn *cudnn_open(struct diag *diag)
{
    static const char *const libraries[] = {"libcudnn.so.9", CUDNN_LIBRARY};
    static const char *const functions[] = {CUDNN_FUNCTIONS(NAME_OF)};
    static struct cudnn cudnn;
    static bool filled;
    const struct table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                            functions, ARRAY_LEN(functions), &cudnn};
    if (cudnn_given != NULL)
        return cudnn_given;
    return fill_once(&t, &filled, diag) ? &cudnn : NULL;
}
#endif

#ifdef HAVE_NCCL
static const struct nccl *nccl_given;

void nccl_use(const struct nccl *table)
{
    nccl_given = table;
}

const struct nccl *nccl_open(struct diag *diag)
{
    static const char *const libraries[] = {"libnccl.so.2", NCCL_LIBRARY};
    static const char *const functions[] = {NCCL_FUNCTIONS(NAME_OF)};
    static struct nccl nccl;
    static bool filled;
    const struct table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                            functions, ARRAY_LEN(functions), &nccl};
    if (nccl_given != NULL)
        return nccl_given;
    return fill_once(&t, &filled, diag) ? &nccl : NULL;
}
#endif

#ifdef HAVE_CUPTI
static const struct cupti *cupti_given;

void cupti_use(const struct cupti *table)
{
    cupti_given = table;
}

const struct cupti *cupti_library(struct diag *diag)
{
    static const char *const libraries[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const functions[] = {CUPTI_FUNCTIONS(NAME_OF)};
    static struct cupti cupti;
    static bool filled;
    const struct table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                            functions, ARRAY_LEN(functions), &cupti};
    if (cupti_given != NULL)
        return cupti_given;
    return fill_once(&t, &filled, diag) ? &cupti : NULL;
}
#endif
