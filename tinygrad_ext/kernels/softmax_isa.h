/* See softmax.h. The formulas stand in softmax_rows.h, once for each floating type. */
#include "softmax.h"
#include "vecmath.h"

#define T float
#define NAME(x) x##_f32
#define T_MIN (-__builtin_inff())
#include "rows.h"
#include "softmax_rows.h"
#undef T
#undef NAME
#undef T_MIN
#define T double
#define NAME(x) x##_f64
#define T_MIN (-__builtin_inf())
#include "rows.h"
#include "softmax_rows.h"

const tgx_softmax_table ISA(tgx_softmax) = {
    {forward_f32, forward_f64}, {backward_f32, backward_f64}, {lse_f32, lse_f64}, {scaled_f32, scaled_f64},
};
