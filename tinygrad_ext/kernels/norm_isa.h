/* See norm.h. The loops stand in norm_layer.h and norm_batch.h, once for each floating type. */
#include "norm.h"
#include <math.h>

#define T float
#define NAME(x) x##_f32
#define T_MIN (-__builtin_inff())
#include "rows.h"
#include "norm_layer.h"
#include "norm_batch.h"
#undef T
#undef NAME
#undef T_MIN
#define T double
#define NAME(x) x##_f64
#define T_MIN (-__builtin_inf())
#include "rows.h"
#include "norm_layer.h"
#include "norm_batch.h"

const tgx_norm_table ISA(tgx_norm) = {
    {layer_f32, layer_f64}, {layer_backward_f32, layer_backward_f64},
    {moments_f32, moments_f64}, {products_f32, products_f64},
    {apply_f32, apply_f64}, {apply_backward_f32, apply_backward_f64},
    {group_f32, group_f64}, {group_backward_f32, group_backward_f64},
};
