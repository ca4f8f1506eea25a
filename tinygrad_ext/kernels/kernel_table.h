/* All kernels by name, collected by the build from TGX_KERNEL lines. The list ends with NULL. */
#ifndef TGX_KERNEL_TABLE_H
#define TGX_KERNEL_TABLE_H
#include "tgx.h"
extern const tgx_kernel *const tgx_kernels[];
#endif
