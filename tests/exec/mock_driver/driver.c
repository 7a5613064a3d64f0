/* tests/exec/mock_driver/driver.c: a stand-in for libcuda.so.1. The calls that cuDNN makes when it finalizes a plan
 * succeed, so that tests learn on machines without a driver whether cuDNN accepts a graph. It is for tests only and
 * lives in a folder of its own, since a program that found it would take it for the driver. */
#include <stddef.h>
#include <stdlib.h>

enum { OK = 0, NO_DEVICE = 100, NOT_FOUND = 500 };

static int thing[4];

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorString(int error, const char **text);
int cuGetErrorName(int error, const char **text);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        void *status);
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d,
                      void *e, unsigned f);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelGetFunction(void **function, void *kernel);
int cuKernelGetAttribute(int *value, int name, void *kernel, int device);
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, void *o, void *v);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuFuncGetAttribute(int *value, int name, void *function);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int size,
                                                size_t shared);
int cuOccupancyMaxActiveClusters(int *clusters, void *function, void *config);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);

int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE; /* a runtime that loads this library still finds no GPU */
}

/* Sets *version to the version of CUDA that the driver serves: MOCK_DRIVER_CUDA of the environment, or 13000. */
int cuDriverGetVersion(int *version)
{
    const char *given = getenv("MOCK_DRIVER_CUDA");
    *version = given != NULL ? (int)strtol(given, NULL, 10) : 13000;
    return OK;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "the stand-in for a driver";
    return OK;
}

int cuGetErrorName(int error, const char **text)
{
    return cuGetErrorString(error, text);
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        void *status)
{
    (void)name;
    (void)version;
    (void)flags;
    (void)status;
    *function = NULL;
    return NOT_FOUND;
}

int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d,
                      void *e, unsigned f)
{
    (void)code;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)e;
    (void)f;
    *library = &thing[0];
    return OK;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library;
    (void)name;
    *kernel = &thing[1];
    return OK;
}

int cuKernelGetFunction(void **function, void *kernel)
{
    (void)kernel;
    *function = &thing[2];
    return OK;
}

int cuKernelGetAttribute(int *value, int name, void *kernel, int device)
{
    (void)name;
    (void)kernel;
    (void)device;
    *value = 1024;
    return OK;
}

int cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    *module = &thing[0];
    return OK;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned n, void *o, void *v)
{
    (void)n;
    (void)o;
    (void)v;
    return cuModuleLoadData(module, image);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    (void)name;
    *function = &thing[2];
    return OK;
}

int cuFuncGetAttribute(int *value, int name, void *function)
{
    (void)name;
    (void)function;
    *value = 1024;
    return OK;
}

int cuCtxGetCurrent(void **context)
{
    *context = &thing[3];
    return OK;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return OK;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int size,
                                                size_t shared)
{
    (void)function;
    (void)size;
    (void)shared;
    *blocks = 1;
    return OK;
}

int cuOccupancyMaxActiveClusters(int *clusters, void *function, void *config)
{
    (void)function;
    (void)config;
    *clusters = 66;
    return OK;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return OK;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return OK;
}

/* Defines a function that returns success, whatever its arguments are. */
#define YES(name)                                                                                  \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return OK;                                                                                 \
    }
YES(cuLibraryUnload)
YES(cuLibraryLoadFromFile)
YES(cuKernelSetAttribute)
YES(cuModuleUnload)
YES(cuFuncSetAttribute)
YES(cuLaunchKernel)
YES(cuLaunchKernelEx)
YES(cuLaunchCooperativeKernel)
YES(cuTensorMapEncodeTiled)
YES(cuTensorMapEncodeIm2col)
YES(cuCtxGetLimit)
YES(cuCtxPopCurrent)
YES(cuCtxPushCurrent)
YES(cuStreamGetCtx)
YES(cuLinkCreate)
YES(cuLinkAddData)
YES(cuLinkComplete)
YES(cuLinkDestroy)
YES(cuOccupancyMaxPotentialClusterSize)
