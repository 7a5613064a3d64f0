/* bench/host/driver.c: those functions of the CUDA driver that PyTorch and Triton find in libcuda.so.1. They do nothing,
 * as those of nothing.c. */
#include <stddef.h>

extern long nothing_launches;

/* Writes an attribute of the device, by its number in enum CUdevice_attribute: the B200's, as in nothing.c. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } known[] = {
        {1, 1024},     /* threads of a block */
        {10, 32},      /* threads of a warp */
        {12, 65536},   /* registers of a block */
        {13, 1965000}, /* clock, kHz */
        {16, 148},     /* multiprocessors */
        {36, 3996000}, /* clock of memory, kHz */
        {37, 8192},    /* width of the memory's bus, bits */
        {39, 2048},    /* threads of a multiprocessor */
        {75, 10},      /* compute capability, major */
        {76, 0},       /* and minor */
        {81, 233472},  /* shared memory of a multiprocessor */
        {97, 232448},  /* shared memory of a block that asks for it */
    };
    (void)device;
    *value = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *value = known[i].value;
    return 0;
}

int cuDeviceGet(int *device, int number)
{
    (void)number;
    *device = 0;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = (void *)16;
    return 0;
}

int cuCtxGetDevice(int *device)
{
    return cuDeviceGet(device, 0);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    return cuCtxGetCurrent(context);
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 1;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 12080;
    return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    return cuCtxGetCurrent(module);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    (void)name;
    return cuCtxGetCurrent(function);
}

/* Writes 1024 threads of a block for attribute 0, no local (3) or shared (1) memory, and 32 for others, of which one is
 * the number of registers. */
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == 0 ? 1024 : attribute == 1 || attribute == 3 ? 0 : 32;
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "an error of a driver that does nothing";
    return 0;
}

int cuLaunchKernelEx(void)
{
    nothing_launches++;
    return 0;
}

int cuLaunchKernel(void)
{
    nothing_launches++;
    return 0;
}

#define RETURNS_ZERO(name)                                                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return 0;                                                                                  \
    }
RETURNS_ZERO(cuCtxGetApiVersion)
RETURNS_ZERO(cuCtxGetLimit)
RETURNS_ZERO(cuCtxGetStreamPriorityRange)
RETURNS_ZERO(cuCtxSetCurrent)
RETURNS_ZERO(cuCtxSetLimit)
RETURNS_ZERO(cuCtxSynchronize)
RETURNS_ZERO(cuDeviceGetName)
RETURNS_ZERO(cuDeviceGetUuid)
RETURNS_ZERO(cuDeviceTotalMem_v2)
RETURNS_ZERO(cuFuncSetAttribute)
RETURNS_ZERO(cuFuncSetCacheConfig)
RETURNS_ZERO(cuGetErrorName)
RETURNS_ZERO(cuGetProcAddress_v2)
RETURNS_ZERO(cuInit)
RETURNS_ZERO(cuLaunchCooperativeKernel)
RETURNS_ZERO(cuLinkAddData_v2)
RETURNS_ZERO(cuLinkComplete)
RETURNS_ZERO(cuLinkCreate_v2)
RETURNS_ZERO(cuMemAddressFree)
RETURNS_ZERO(cuMemAddressReserve)
RETURNS_ZERO(cuMemCreate)
RETURNS_ZERO(cuMemExportToShareableHandle)
RETURNS_ZERO(cuMemGetAddressRange_v2)
RETURNS_ZERO(cuMemGetAllocationGranularity)
RETURNS_ZERO(cuMemImportFromShareableHandle)
RETURNS_ZERO(cuMemMap)
RETURNS_ZERO(cuMemRelease)
RETURNS_ZERO(cuMemSetAccess)
RETURNS_ZERO(cuMemUnmap)
RETURNS_ZERO(cuMemsetD32Async)
RETURNS_ZERO(cuModuleLoad)
RETURNS_ZERO(cuModuleLoadDataEx)
RETURNS_ZERO(cuModuleUnload)
RETURNS_ZERO(cuMulticastAddDevice)
RETURNS_ZERO(cuMulticastBindMem)
RETURNS_ZERO(cuMulticastCreate)
RETURNS_ZERO(cuOccupancyMaxActiveBlocksPerMultiprocessor)
RETURNS_ZERO(cuOccupancyMaxActiveClusters)
RETURNS_ZERO(cuPointerGetAttribute)
RETURNS_ZERO(cuStreamWriteValue32)
RETURNS_ZERO(cuTensorMapEncodeTiled)
