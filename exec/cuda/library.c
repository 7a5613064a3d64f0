#define _GNU_SOURCE /* dladdr() */
#include "exec/cuda/library.h"

#include "base/arena.h"
#include "exec/cuda/versions.h"
#include "exec/cuda/wheels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status report_no_library(struct diag *diag, const char *name, const char *what)
{
    return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM, "cannot be opened: %s",
                      what);
}

static void *open_in_folder(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Opens a library in the folders of the CUDA toolkit. Returns NULL if none has it. */
static void *open_in_toolkit(const char *name)
{
    static const char *const places[] = {"lib64", "lib"};
    const char *roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    void *library = NULL;
    for (size_t i = 0; i < ARRAY_LEN(roots) && library == NULL; i++)
        for (size_t k = 0; k < ARRAY_LEN(places) && roots[i] != NULL && library == NULL; k++) {
            char folder[768];
            snprintf(folder, sizeof folder, "%s/%s", roots[i], places[k]);
            library = open_in_folder(folder, name);
        }
    return library;
}

void *library_open(const char *const *names, size_t count, const char *folder, struct diag *diag)
{
    char words[512] = "no such library";
    void *library = NULL;
    for (size_t i = 0; i < count && library == NULL; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL && i == 0)
            snprintf(words, sizeof words, "%s", dlerror());
    }
    for (size_t i = 0; i < count && library == NULL; i++)
        if (strchr(names[i], '/') == NULL)
            library = open_in_folder(folder, names[i]);
    for (size_t i = 0; i < count && library == NULL; i++)
        if (strchr(names[i], '/') == NULL)
            library = open_in_toolkit(names[i]);
    size_t wheels = 0;
    const char *const *wheel = library == NULL ? wheel_folders(&wheels) : NULL;
    for (size_t i = 0; i < count * wheels && library == NULL; i++)
        if (strchr(names[i / wheels], '/') == NULL)
            library = open_in_folder(wheel[i % wheels], names[i / wheels]);
    if (library == NULL)
        report_no_library(diag, names[0], words);
    return library;
}

void *library_open_near(const char *name, const void *near)
{
    static const char *const places[] = {".", "../../cuda_nvrtc/lib", "../../cu13/lib",
                                         "../../cu12/lib"};
    Dl_info library_info;
    void *library = NULL;
    if (dladdr(near, &library_info) == 0 || library_info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(library_info.dli_fname, '/');
    int size = slash != NULL ? (int)(slash - library_info.dli_fname) : 0;
    for (size_t i = 0; i < ARRAY_LEN(places) && size > 0 && library == NULL; i++) {
        char folder[768];
        snprintf(folder, sizeof folder, "%.*s/%s", size, library_info.dli_fname, places[i]);
        library = open_in_folder(folder, name);
    }
    return library;
}

void *library_function(void *library, const char *library_name, const char *function,
                       struct diag *diag)
{
    dlerror();
    void *found = dlsym(library, function);
    if (found == NULL)
        diag_error(diag, (struct loc){.name = library_name}, STATUS_SYSTEM,
                   "has no function %s: %s", function, dlerror());
    return found;
}

/* The names of the functions to load from a library, and the table that receives their addresses. */
struct function_table {
    const char *const *library_names;
    size_t library_name_count;
    const char *folder;
    const char *const *function_names;
    size_t function_count;
    void *table;
};

static bool load_library_functions(const struct function_table *t, struct diag *diag)
{
    void *library = library_open(t->library_names, t->library_name_count, t->folder, diag);
    if (library == NULL)
        return false;
    for (size_t i = 0; i < t->function_count; i++) {
        void *found = library_function(library, t->library_names[0], t->function_names[i], diag);
        if (found == NULL)
            return false;
        memcpy((char *)t->table + i * sizeof found, &found, sizeof found);
    }
    return true;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool load_library_functions_once(const struct function_table *t, bool *filled,
                                        struct diag *diag)
{
    pthread_mutex_lock(&lock);
    if (!*filled)
        *filled = load_library_functions(t, diag);
    bool is_filled = *filled;
    pthread_mutex_unlock(&lock);
    return is_filled;
}

static bool version_is_accepted(enum nvidia_library library, int version, struct diag *diag)
{
    return version_check(library, version, diag) == STATUS_OK;
}

#define NAME_OF(name) #name,

static const struct cublaslt *cublaslt_given;

void cublaslt_use_table(const struct cublaslt *table)
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
    const struct function_table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                                     functions, ARRAY_LEN(functions), &cublaslt};
    const struct cublaslt *table = cublaslt_given;
    if (table == NULL && load_library_functions_once(&t, &filled, diag))
        table = &cublaslt;
    return table != NULL &&
                   version_is_accepted(NVIDIA_CUBLASLT, (int)table->cublasLtGetVersion(), diag)
               ? table
               : NULL;
}

#ifdef HAVE_CUDNN
static const struct cudnn *cudnn_given;

void cudnn_use_table(const struct cudnn *table)
{
    cudnn_given = table;
}

/* The state of loading NVRTC. cuDNN opens NVRTC by its name when it first compiles a kernel. The loader often does not
 * look in the folder of the CUDA toolkit, but it finds a library that is already open; so cudnn_open() opens NVRTC
 * before. */
static struct {
    bool was_load_tried;
    char load_error[512]; /* the loader's message */
} compiler;

static void open_compiler(const struct cudnn *dnn)
{
    struct diag words = {0};
    char name[32];
    const char *const names[] = {name};
    const void *address_in_library;
    snprintf(name, sizeof name, "libnvrtc.so.%d", (int)(dnn->cudnnGetCudartVersion() / 1000));
    memcpy(&address_in_library, &dnn->cudnnGetVersion, sizeof address_in_library);
    pthread_mutex_lock(&lock);
    if (!compiler.was_load_tried && library_open_near(name, address_in_library) == NULL &&
        library_open(names, 1, CUDA_LIBRARY_DIR, &words) == NULL)
        snprintf(compiler.load_error, sizeof compiler.load_error, "%.*s",
                 (int)strcspn(words.text, "\n"), words.text);
    compiler.was_load_tried = true;
    pthread_mutex_unlock(&lock);
    diag_release(&words);
}

const char *cudnn_why_no_compiler(void)
{
    return compiler.load_error[0] != '\0' ? compiler.load_error : NULL;
}

const struct cudnn *cudnn_open(struct diag *diag)
{
    static const char *const libraries[] = {"libcudnn.so.9", CUDNN_LIBRARY};
    static const char *const functions[] = {CUDNN_FUNCTIONS(NAME_OF)};
    static struct cudnn cudnn;
    static bool filled;
    const struct function_table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                                     functions, ARRAY_LEN(functions), &cudnn};
    const struct cudnn *table = cudnn_given;
    if (table == NULL && load_library_functions_once(&t, &filled, diag))
        table = &cudnn;
    if (table == NULL || !version_is_accepted(NVIDIA_CUDNN, (int)table->cudnnGetVersion(), diag))
        return NULL;
    if (table == &cudnn)
        open_compiler(table);
    return table;
}
#endif

#ifdef HAVE_NCCL
static const struct nccl *nccl_given;

void nccl_use_table(const struct nccl *table)
{
    nccl_given = table;
}

const struct nccl *nccl_open(struct diag *diag)
{
    static const char *const libraries[] = {"libnccl.so.2", NCCL_LIBRARY};
    static const char *const functions[] = {NCCL_FUNCTIONS(NAME_OF)};
    static struct nccl nccl;
    static bool filled;
    const struct function_table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                                     functions, ARRAY_LEN(functions), &nccl};
    const struct nccl *table = nccl_given;
    int version = 0;
    if (table == NULL && load_library_functions_once(&t, &filled, diag))
        table = &nccl;
    if (table != NULL)
        table->ncclGetVersion(&version);
    return table != NULL && version_is_accepted(NVIDIA_NCCL, version, diag) ? table : NULL;
}

#ifdef HAVE_NCCL_REGISTRATION
static const struct nccl_registration *given_registration;

void nccl_registration_use_table(const struct nccl_registration *table)
{
    given_registration = table;
}

const struct nccl_registration *nccl_registration_open(struct diag *diag)
{
    static const char *const libraries[] = {"libnccl.so.2", NCCL_LIBRARY};
    static const char *const functions[] = {NCCL_REGISTRATION_FUNCTIONS(NAME_OF)};
    static struct nccl_registration table;
    static bool filled;
    const struct function_table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                                     functions, ARRAY_LEN(functions), &table};
    if (given_registration != NULL)
        return given_registration;
    return load_library_functions_once(&t, &filled, diag) ? &table : NULL;
}
#endif
#endif

#ifdef HAVE_CUPTI
static const struct cupti *cupti_given;

void cupti_use_table(const struct cupti *table)
{
    cupti_given = table;
}

const struct cupti *cupti_open_library(struct diag *diag)
{
    static const char *const libraries[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const functions[] = {CUPTI_FUNCTIONS(NAME_OF)};
    static struct cupti cupti;
    static bool filled;
    const struct function_table t = {libraries, ARRAY_LEN(libraries), CUDA_LIBRARY_DIR,
                                     functions, ARRAY_LEN(functions), &cupti};
    const struct cupti *table = cupti_given;
    uint32_t version = 0;
    if (table == NULL && load_library_functions_once(&t, &filled, diag))
        table = &cupti;
    if (table != NULL)
        table->cuptiGetVersion(&version);
    return table != NULL && version_is_accepted(NVIDIA_CUPTI, (int)version, diag) ? table : NULL;
}
#endif
