/* See recurrent.h. The formulas stand in recurrent_steps.h, once for each floating type. */
#include "recurrent.h"
#include "vecmath.h"

#define SIMD _Pragma("omp simd")
#define T float
#define NAME(x) x##_f32
#include "recurrent_steps.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "recurrent_steps.h"

const tgx_recurrent_table ISA(tgx_recurrent) = {
    {lstm_f32, lstm_f64}, {lstm_back_f32, lstm_back_f64}, {gru_f32, gru_f64},
    {gru_back_f32, gru_back_f64}, {elman_f32, elman_f64}, {elman_back_f32, elman_back_f64},
};
