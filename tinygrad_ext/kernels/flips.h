/* Copies of elements whose signs are flipped on the way: the conjugate and the negative of a tensor that is read by a bit of its
 * own, see core/data/dtype.pxd. The bits of a NaN are kept but for its sign, as conj_physical and neg keep them. */
#ifndef TGX_FLIPS_H
#define TGX_FLIPS_H
#include "types.h"

enum {
    TGX_FLIP_CONJ = 1, /* of imaginary parts */
    TGX_FLIP_NEG = 2,  /* of all parts */
};

/* The loop of a dtype, data[0] out, data[1] in, aux->i the flips; NULL for a dtype that has none. Whole numbers are negated as
 * neg does it, modulo their range. */
tgx_loop tgx_flip_loop(int dtype);
#endif
