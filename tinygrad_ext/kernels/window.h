/* Views of parts, for whoever writes into what they show: shape says the window on any tensor it is asked about. */
#ifndef TGX_WINDOW_H
#define TGX_WINDOW_H
#include "tgx.h"

extern const tgx_kernel tgx_kernel_select, tgx_kernel_slice, tgx_kernel_diagonal, tgx_kernel_unfold;
#endif
