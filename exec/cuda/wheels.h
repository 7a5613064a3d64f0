/* exec/cuda/wheels.h: the folders in which pip puts NVIDIA's libraries, PyTorch's for one. */
#ifndef EXEC_CUDA_WHEELS_H
#define EXEC_CUDA_WHEELS_H

#include <stddef.h>

/* The folders nvidia/NAME/lib of what the python3 in PATH imports from, found by the first call, which runs
 * python3; *count is 0 without it. They stay as they are until the program ends. Any thread may call. */
const char *const *wheel_folders(size_t *count);

#endif
