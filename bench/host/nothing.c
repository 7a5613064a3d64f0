/* bench/host/nothing.c: functions of the CUDA runtime and of cuBLAS that do nothing and return at once. Loaded before the
 * real libraries, they leave of a PyTorch program what its host computes: its Python, PyTorch's dispatcher and autograd,
 * and the C++ of TransformerEngine. Allocations are memory of the host, copies of at most 64 KiB are made, and kernels
 * leave what was in memory, so no result means anything. bench/host/run makes the functions that are not here: they
 * return 0. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The calls since the program began, which bench/host/layer.py reads. */
long nothing_launches, nothing_products, nothing_copies, nothing_syncs;

static int return_zero(void)
{
    return 0;
}

/* Fills in what PyTorch and TransformerEngine ask of a B200; NOTHING_CC is another compute capability, 90 for an
 * H100. */
static void fill_properties(struct cudaDeviceProp *p)
{
    const char *capability = getenv("NOTHING_CC");
    const int cc = capability != NULL ? atoi(capability) : 100;
    memset(p, 0, sizeof *p);
    strcpy(p->name, "nothing");
    p->major = cc / 10;
    p->minor = cc % 10;
    p->multiProcessorCount = 148;
    p->totalGlobalMem = 180ULL << 30;
    p->sharedMemPerBlock = 49152;
    p->sharedMemPerBlockOptin = 232448;
    p->sharedMemPerMultiprocessor = 233472;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->l2CacheSize = 126 << 20;
    p->unifiedAddressing = p->concurrentKernels = p->cooperativeLaunch = 1;
    p->textureAlignment = 512;
    p->maxBlocksPerMultiProcessor = 32;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return 0;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return 0;
}

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device)
{
    (void)device;
    fill_properties(p);
    return 0;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp p;
    (void)device;
    fill_properties(&p);
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = p.multiProcessorCount;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = p.major;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = p.minor;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = (int)p.sharedMemPerBlock;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = (int)p.sharedMemPerBlockOptin;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = (int)p.sharedMemPerMultiprocessor;
        break;
    case cudaDevAttrMaxThreadsPerBlock:
        *value = p.maxThreadsPerBlock;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p.maxThreadsPerMultiProcessor;
        break;
    case cudaDevAttrWarpSize:
        *value = p.warpSize;
        break;
    case cudaDevAttrMaxGridDimX:
        *value = p.maxGridSize[0];
        break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        *value = p.maxGridSize[1];
        break;
    default:
        *value = 1;
    }
    return 0;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12080;
    return 0;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 12080;
    return 0;
}

/* ---- memory ---- */

/* Returns n bytes of the host that take no memory until they are written, or NULL. */
static void *reserve(size_t n)
{
    void *memory = mmap(NULL, (n + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

cudaError_t cudaMalloc(void **memory, size_t n)
{
    *memory = reserve(n);
    return *memory != NULL ? 0 : cudaErrorMemoryAllocation;
}

cudaError_t cudaMallocHost(void **memory, size_t n)
{
    return cudaMalloc(memory, n);
}

cudaError_t cudaHostAlloc(void **memory, size_t n, unsigned flags)
{
    (void)flags;
    return cudaMalloc(memory, n);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 170ULL << 30;
    *total_bytes = 180ULL << 30;
    return 0;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    nothing_copies++;
    if (n <= 65536)
        memcpy(to, from, n);
    return 0;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, n, kind, NULL);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t stream)
{
    (void)to;
    (void)value;
    (void)n;
    (void)stream;
    nothing_launches++;
    return 0;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = (void *)pointer;
    return 0;
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    (void)symbol;
    return cudaMalloc(address, 1 << 20);
}

/* ---- streams and events: each is a number of its own ---- */

static char *next_handle = (char *)4096;

static void *make_handle(void)
{
    return next_handle += 16;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)flags;
    (void)priority;
    *stream = make_handle();
    return 0;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = make_handle();
    return 0;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    (void)begin;
    (void)end;
    *ms = 1;
    return 0;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    nothing_syncs++;
    return 0;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    nothing_syncs++;
    return 0;
}

cudaError_t cudaDeviceSynchronize(void)
{
    nothing_syncs++;
    return 0;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return 0;
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **nodes, size_t *count)
{
    (void)id;
    (void)graph;
    (void)nodes;
    (void)count;
    return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return 0;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return 0;
}

/* ---- kernels ---- */

static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed; /* what <<< >>> gave the launch that follows */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *(void **)stream = pushed.stream;
    return 0;
}

static void *fat_binary;

void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    return &fat_binary;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    (void)kernel;
    (void)grid;
    (void)block;
    (void)arguments;
    (void)shared;
    (void)stream;
    nothing_launches++;
    return 0;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                void **arguments)
{
    (void)config;
    (void)kernel;
    (void)arguments;
    nothing_launches++;
    return 0;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    (void)kernel;
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = attributes->ptxVersion = 100;
    return 0;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
                                                                   int threads, size_t shared,
                                                                   unsigned flags)
{
    (void)kernel;
    (void)threads;
    (void)shared;
    (void)flags;
    *blocks = 2;
    return 0;
}

/* The driver's functions that the runtime hands out return 0. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)symbol;
    (void)version;
    (void)flags;
    *function = (void *)return_zero;
    if (result != NULL)
        *result = cudaDriverEntryPointSuccess;
    return 0;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, result);
}

const char *cudaGetErrorString(cudaError_t error)
{
    (void)error;
    return "an error of a CUDA that does nothing";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return cudaGetErrorString(error);
}

/* ---- cuBLAS and cuDNN: handles that nothing uses, and products that are counted ---- */

int cublasCreate_v2(void **handle)
{
    *handle = make_handle();
    return 0;
}

int cublasLtCreate(void **handle)
{
    *handle = make_handle();
    return 0;
}

int cudnnCreate(void **handle)
{
    *handle = make_handle();
    return 0;
}

int cublasGetMathMode(void *handle, int *mode)
{
    (void)handle;
    *mode = 0;
    return 0;
}

int cublasGetPointerMode_v2(void *handle, int *mode)
{
    return cublasGetMathMode(handle, mode);
}

int cublasGemmEx(void)
{
    nothing_products++;
    return 0;
}

int cublasLtMatmul(void)
{
    nothing_products++;
    return 0;
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
    return 0;
}
