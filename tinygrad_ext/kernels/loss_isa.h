/* See loss.h. The loops stand in loss_squares.h and loss_margins.h, once for each floating type. */
#include "loss.h"
#include <string.h>
#include "once.h"

#define T float
#define NAME(x) x##_f32
#include "loss_squares.h"
#include "loss_margins.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "loss_squares.h"
#include "loss_margins.h"

const tgx_loss_table ISA(tgx_loss) = {{square_f32, square_f64}, {sum_f32, sum_f64}, {slope_f32, slope_f64}, {margin_f32, margin_f64}};
