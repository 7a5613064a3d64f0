/* exec/cuda/wheels.h: the folders in which pip puts NVIDIA's libraries, for example those of PyTorch. */
#ifndef EXEC_CUDA_WHEELS_H
#define EXEC_CUDA_WHEELS_H

#include <stddef.h>

/* Returns the folders nvidia/NAME/lib below those from which the python3 in PATH imports modules. The first call runs
 * python3 to find them. Without python3 *count becomes 0. The array is valid until the program ends. Any thread may
 * call this. */
const char *const *wheel_folders(size_t *count);

#endif
