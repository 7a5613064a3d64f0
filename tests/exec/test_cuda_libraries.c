/* tests/exec/test_cuda_libraries.c: libraries are found, also in a wheel of Python; the installed libraries of NVIDIA
 * have every function that the backend calls; and records of CUPTI are joined to ops. */
#include "base/text.h"
#include "exec/cuda/cupti.h"
#include "exec/cuda/library.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct text missing; /* names of the libraries that are not installed */
static int here;

/* Checks that a library that can be opened has all functions. One that is not installed, or whose version is
 * refused, is only noted as missing. */
static void check_library_has_all_functions(const char *name, const void *table, struct diag *diag)
{
    if (table == NULL &&
        (strstr(diag->text, "cannot be opened") != NULL || strstr(diag->text, "would do") != NULL))
        text_printf(&missing, "%s%s", missing.size > 0 ? ", " : "", name);
    else if (!CHECK(name, table != NULL))
        printf("%s", diag->text);
    else
        here++;
    diag_clear(diag);
}

static void libraries_have_the_functions(void)
{
    struct diag diag = {0};
    check_library_has_all_functions("cuBLASLt", cublaslt_open(&diag), &diag);
#ifdef HAVE_CUDNN
    check_library_has_all_functions("cuDNN", cudnn_open(&diag), &diag);
#endif
#ifdef HAVE_NCCL
    check_library_has_all_functions("NCCL", nccl_open(&diag), &diag);
#endif
#ifdef HAVE_CUPTI
    check_library_has_all_functions("CUPTI", cupti_open_library(&diag), &diag);
#endif
    diag_release(&diag);
}

static void a_missing_library_is_named(void)
{
    static const char *const names[] = {"libno-such-thing.so.1"};
    struct diag diag = {0};
    CHECK("not found", library_open(names, 1, "/nowhere", &diag) == NULL);
    CHECK_TEXT("the loader's words", diag.text,
               "libno-such-thing.so.1: error: cannot be opened: libno-such-thing.so.1: cannot open "
               "shared object file: No such file or directory\n");
    diag_release(&diag);
}

/* A library can be found in the folder of another one, as NVRTC is by means of cuDNN. */
static void a_library_is_found_near_another(void)
{
    static const char *const names[] = {NEAR_NAME};
    struct diag diag = {0};
    CHECK("not by its name", library_open(names, 1, "/nowhere", &diag) == NULL);
    diag_clear(&diag);
    static const char *const other[] = {NEAR_LIBRARY};
    void *library = library_open(other, 1, "/nowhere", &diag);
    if (CHECK("the other", library != NULL)) {
        const void *inside = library_function(library, "near", "near_number", &diag);
        CHECK("by the other", library_open_near(NEAR_NAME, inside) != NULL);
        CHECK("then by its name", library_open(names, 1, "/nowhere", &diag) != NULL);
        CHECK("nothing else", library_open_near("libno-such-thing.so.1", inside) == NULL);
    }
    diag_release(&diag);
}

/* Makes a wheel as pip installs PyTorch's, in a folder from which the python3 in PATH imports. */
static void make_wheel_with_library(void)
{
    static const char *const below[] = {"/site-packages", "/site-packages/nvidia",
                                        "/site-packages/nvidia/thing",
                                        "/site-packages/nvidia/thing/lib"};
    struct text path = {0};
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        path.size = 0;
        text_printf(&path, "%s%s", check_temp_dir(), below[i]);
        CHECK_INT(path.data, mkdir(path.data, 0777), 0);
    }
    text_puts(&path, "/libof-a-wheel.so.7");
    CHECK_INT(path.data, symlink(NEAR_LIBRARY, path.data), 0);
    path.size = 0;
    text_printf(&path, "%s/site-packages", check_temp_dir());
    setenv("PYTHONPATH", path.data, 1);
    text_release(&path);
}

static void a_library_of_a_wheel_is_found(void)
{
    static const char *const names[] = {"libof-a-wheel.so.8", "libof-a-wheel.so.7"};
    struct diag diag = {0};
    if (system("python3 -c 'import glob, site' >/dev/null 2>&1") != 0) {
        puts("    skipped: there is no python3");
        return;
    }
    CHECK("found", library_open(names, ARRAY_LEN(names), "/nowhere", &diag) != NULL);
    CHECK_TEXT("no message", diag.text ? diag.text : "", "");
    diag_release(&diag);
}

/* The test's records: op 7 has two and op 3 has one. One record belongs to no op. Op 8 has no record, one of op 9's two
 * has no times, and op 10's ends before it starts, so these three ops are left out. */
static void records_are_joined_to_ops(void)
{
    struct cupti_record record[] = {{12, 500, 900}, {11, 100, 400}, {13, 50, 60}, {99, 1, 2000},
                                    {21, 0, 0},     {22, 10, 20},   {23, 30, 29}};
    struct cupti_op_of_call tie[] = {{13, 3}, {12, 7}, {11, 7}, {14, 8},
                                     {21, 9}, {22, 9}, {23, 10}};
    struct cupti_span span[ARRAY_LEN(record)];
    CHECK_INT("ops",
              (int64_t)cupti_join_records_into_spans(record, ARRAY_LEN(record), tie, ARRAY_LEN(tie),
                                                     span),
              2);
    CHECK_INT("by id", (int64_t)span[0].op_id, 3);
    CHECK_INT("by id", (int64_t)span[1].op_id, 7);
    CHECK_CLOSE("start", span[1].start_s, 100e-9, 1e-9);
    CHECK_CLOSE("end", span[1].end_s, 900e-9, 1e-9);
    CHECK_INT("kernels", span[1].record_count, 2);
}

static const struct check_case cases[] = {
    {"a wheel is made",
     make_wheel_with_library}, /* before the folders are searched, which is done once */
    {"libraries have the functions", libraries_have_the_functions},
    {"a missing library is named", a_missing_library_is_named},
    {"a library is found near another", a_library_is_found_near_another},
    {"a library of a wheel is found", a_library_of_a_wheel_is_found},
    {"records are joined to ops", records_are_joined_to_ops},
};

/* The test counts as skipped when no library is installed. */
int main(int argc, char **argv)
{
    int code = check_run("cuda libraries", cases, ARRAY_LEN(cases), argc, argv);
    if (missing.size > 0)
        printf("%snot here: %s\n", here == 0 ? "skipped: " : "", missing.data);
    bool skipped = code == 0 && here == 0 && missing.size > 0;
    text_release(&missing);
    return skipped ? 77 : code;
}
