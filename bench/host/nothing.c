/* bench/host/nothing.c: the functions of CUDA that TransformerEngine, Triton and cuBLAS call. The stub of
 * longhaul.record (packaging/python/longhaul/record/stub.c) has those that PyTorch calls. Linked before that stub, this
 * file takes precedence over it: kernels, products, copies and waits are counted, and return at once. What is left of a
 * program is what its host computes. Device memory keeps what was there, so no result means anything; only copies of at
 * most 64 KiB are made, which the host may read. Like the stub it includes no header of CUDA, and its functions ignore
 * the arguments that they do not need. */
#include <stddef.h>
#include <string.h>

enum { SUCCESS = 0, SMALL_COPY_BYTES = 1 << 16 };

/* The numbers of calls since the program began, which bench/host/layer.py reads. */
long nothing_launches, nothing_products, nothing_copies, nothing_syncs;

#define DEFINE_CALL_THAT_SUCCEEDS(function)                                                        \
    int function(void)                                                                             \
    {                                                                                              \
        return SUCCESS;                                                                            \
    }

#define DEFINE_COUNTED_CALL(function, counter)                                                     \
    int function(void)                                                                             \
    {                                                                                              \
        counter++;                                                                                 \
        return SUCCESS;                                                                            \
    }

/* ---- kernels, copies and waits ---- */

DEFINE_COUNTED_CALL(cudaLaunchKernel, nothing_launches)
DEFINE_COUNTED_CALL(cudaLaunchKernelExC, nothing_launches)
DEFINE_COUNTED_CALL(cuLaunchKernel, nothing_launches)
DEFINE_COUNTED_CALL(cuLaunchKernelEx, nothing_launches)
DEFINE_COUNTED_CALL(cuLaunchCooperativeKernel, nothing_launches)
DEFINE_COUNTED_CALL(cudaMemsetAsync, nothing_launches)
DEFINE_COUNTED_CALL(cudaStreamSynchronize, nothing_syncs)
DEFINE_COUNTED_CALL(cudaEventSynchronize, nothing_syncs)
DEFINE_COUNTED_CALL(cudaDeviceSynchronize, nothing_syncs)

int cudaMemcpyAsync(void *to, const void *from, size_t size)
{
    nothing_copies++;
    if (size <= SMALL_COPY_BYTES)
        memcpy(to, from, size);
    return SUCCESS;
}

int cudaMemcpy(void *to, const void *from, size_t size)
{
    return cudaMemcpyAsync(to, from, size);
}

/* The grid and block that <<< >>> gave, which code made by nvcc takes back for the launch: nothing reads them. */
DEFINE_CALL_THAT_SUCCEEDS(__cudaPushCallConfiguration)
DEFINE_CALL_THAT_SUCCEEDS(__cudaPopCallConfiguration)

void **__cudaRegisterFatBinary(void)
{
    static void *only;
    return &only;
}

/* ---- properties of devices and kernels ---- */

/* Stores an attribute of a B200 by its number in enum cudaDeviceAttr, which is that of enum CUdevice_attribute; 1 for
 * attributes that the table lacks. */
int cudaDeviceGetAttribute(int *value, int attribute)
{
    static const struct {
        int attribute, value;
    } known[] = {
        {1, 1024},       /* threads of a block */
        {5, 0x7fffffff}, /* blocks of a grid: x */
        {6, 65535},      /* y */
        {7, 65535},      /* z */
        {8, 49152},      /* shared memory of a block */
        {10, 32},        /* threads of a warp */
        {12, 65536},     /* registers of a block */
        {13, 1965000},   /* clock, kHz */
        {16, 148},       /* multiprocessors */
        {36, 3996000},   /* clock of memory, kHz */
        {37, 8192},      /* width of the memory's bus, bits */
        {39, 2048},      /* threads of a multiprocessor */
        {75, 10},        /* compute capability: major */
        {76, 0},         /* minor */
        {81, 233472},    /* shared memory of a multiprocessor */
        {97, 232448},    /* shared memory of a block that asks for it */
    };
    *value = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *value = known[i].value;
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute)
{
    return cudaDeviceGetAttribute(value, attribute);
}

/* Stores the attributes of a kernel: at most 1024 threads of a block, 32 registers, no memory of its own. The offsets
 * are those of cudaFuncAttributes. */
int cudaFuncGetAttributes(char *attributes)
{
    const int threads = 1024, registers = 32;
    memset(attributes, 0, 32);
    memcpy(attributes + 24, &threads, sizeof threads);
    memcpy(attributes + 28, &registers, sizeof registers);
    return SUCCESS;
}

/* Stores what cudaFuncGetAttributes() does, by the number in enum CUfunction_attribute. */
int cuFuncGetAttribute(int *value, int attribute)
{
    enum { THREADS = 0, SHARED_BYTES = 1, LOCAL_BYTES = 3 };
    *value = attribute == THREADS                                    ? 1024
             : attribute == SHARED_BYTES || attribute == LOCAL_BYTES ? 0
                                                                     : 32;
    return SUCCESS;
}

DEFINE_CALL_THAT_SUCCEEDS(cuFuncSetAttribute)
DEFINE_CALL_THAT_SUCCEEDS(cuFuncSetCacheConfig)
DEFINE_CALL_THAT_SUCCEEDS(cuModuleUnload)
DEFINE_CALL_THAT_SUCCEEDS(cuTensorMapEncodeTiled)

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks)
{
    *blocks = 2;
    return SUCCESS;
}

/* Stores the address of device memory that a pointer stands for: the pointer itself. */
int cuPointerGetAttribute(const void **address, int attribute, const void *pointer)
{
    (void)attribute;
    *address = pointer;
    return SUCCESS;
}

/* Stores cudaPointerAttributes of device memory. */
int cudaPointerGetAttributes(void *attributes, const void *pointer)
{
    enum { MEMORY_TYPE_DEVICE = 2 };
    const struct {
        int type, device;
        const void *device_pointer, *host_pointer;
    } of = {MEMORY_TYPE_DEVICE, 0, pointer, NULL};
    memcpy(attributes, &of, sizeof of);
    return SUCCESS;
}

/* ---- the driver's functions that the runtime hands out, and errors ---- */

/* The driver's functions that the runtime hands out do nothing. */
static int do_nothing(void)
{
    return SUCCESS;
}

static int give_address_of_do_nothing(void **function, int *result)
{
    *function = (void *)do_nothing;
    if (result != NULL)
        *result = SUCCESS;
    return SUCCESS;
}

int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                            int *result)
{
    (void)symbol;
    (void)flags;
    return give_address_of_do_nothing(function, result);
}

int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                     unsigned long long flags, int *result)
{
    (void)symbol;
    (void)version;
    (void)flags;
    return give_address_of_do_nothing(function, result);
}

const char *cudaGetErrorString(void)
{
    return "an error of a CUDA that does nothing";
}

/* ---- modules of the driver, and handles of cuBLAS and cuDNN: each function gives an object that nothing reads ---- */

#define DEFINE_CALL_THAT_MAKES_HANDLE(function)                                                    \
    int function(void **handle)                                                                    \
    {                                                                                              \
        static char only;                                                                          \
        *handle = &only;                                                                           \
        return SUCCESS;                                                                            \
    }

DEFINE_CALL_THAT_MAKES_HANDLE(cuModuleLoad)
DEFINE_CALL_THAT_MAKES_HANDLE(cuModuleLoadData)
DEFINE_CALL_THAT_MAKES_HANDLE(cuModuleLoadDataEx)
DEFINE_CALL_THAT_MAKES_HANDLE(cuModuleGetFunction)
DEFINE_CALL_THAT_MAKES_HANDLE(cublasCreate_v2)
DEFINE_CALL_THAT_MAKES_HANDLE(cublasLtCreate)
DEFINE_CALL_THAT_MAKES_HANDLE(cudnnCreate)

/* ---- products of cuBLAS ---- */

DEFINE_COUNTED_CALL(cublasGemmEx, nothing_products)
DEFINE_COUNTED_CALL(cublasLtMatmul, nothing_products)

int cublasGetMathMode(void *handle, int *mode)
{
    (void)handle;
    *mode = 0;
    return SUCCESS;
}

/* Finds one algorithm, of 64 zero bytes. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                   void *preference, int asked, void *algorithm, int *found)
{
    (void)handle;
    (void)product;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)preference;
    (void)asked;
    memset(algorithm, 0, 64);
    *found = 1;
    return SUCCESS;
}
