/* Copies of a plane: the two innermost dimensions of a strided copy at once, where the walk row by row would spend its
 * time on calls (short rows) or on cache misses (transposed rows). */
#ifndef TGX_PLANES_H
#define TGX_PLANES_H
#include "iterate.h"

/* The plane copy for elements of `size` bytes. */
tgx_plane tgx_copy_plane(int size);
#endif
