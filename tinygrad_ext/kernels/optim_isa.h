/* See optim.h. The updates stand in optim_steps.h, once for each floating type. */
#include "optim.h"

#define T float
#define NAME(x) x##_f32
#define SQRT __builtin_sqrtf
#include "optim_steps.h"
#undef T
#undef NAME
#undef SQRT
#define T double
#define NAME(x) x##_f64
#define SQRT __builtin_sqrt
#include "optim_steps.h"

const tgx_optim_table ISA(tgx_optim) = {{sgd_f32, sgd_f64}, {adam_f32, adam_f64}};
