/* The reducers, once for each instruction set: a table by op and dtype. */
/* gcc would merge two rows of the row loops before it vectorises a row, and then gives up on the row */
#pragma GCC optimize("no-loop-unroll-and-jam")
#include "reduce.h"
#include "loops.h"
#include "half_vectors.h"
#include "vecmath.h"

#define LANES 16
/* Written out, since a loop over the halves stays scalar and costs as much as a tenth of its block. */
#define HALVE(lane, h, OP) for (int l = 0; l < h; l++) lane[l] = OP(lane[l], lane[l + h])
#define FOLD(lane, OP) HALVE(lane, 8, OP); HALVE(lane, 4, OP); HALVE(lane, 2, OP); HALVE(lane, 1, OP)

#define BLOCK_FN(NAME) static void NAME##_block(const char *p, int64_t n, int64_t start, const tgx_scalar *aux, tgx_acc *acc)
#define ROWS_FN(NAME) static void NAME##_rows(const char *const *rows, int64_t n, int w, int64_t start, \
                                              const tgx_scalar *aux, tgx_acc *acc)
#define MERGE_FN(NAME) static void NAME(tgx_acc *acc, const tgx_acc *later, int w)
#define FINISH_FN(NAME) static void NAME(const tgx_acc *acc, int w, int64_t count, const tgx_scalar *aux, \
                                         char *out, ptrdiff_t stride, char *out2, ptrdiff_t stride2)

#include "reduce_few.h"
#include "reduce_many.h"
#include "reduce_sum.h"
#include "reduce_nansum.h"
#include "reduce_several.h"
#include "reduce_moment.h"
#include "reduce_order.h"
#include "reduce_best.h"

#define INTS(M) M(TGX_U8, u8) M(TGX_I8, i8) M(TGX_I16, i16) M(TGX_I32, i32) M(TGX_I64, i64)
/* Up to how many elements of an output tiles are quicker: than one output after the other; than lanes whose last vector is filled up
 * behind a mask; than several outputs at once. */
#if defined(__AVX512F__)
enum { TILED = TGX_SHORT, LANES_TILED = 16, SUMS_TILED = 8, BEST_TILED = 15 };
#elif defined(__AVX2__)
enum { TILED = TGX_SHORT, LANES_TILED = TGX_SHORT, SUMS_TILED = TGX_SHORT, BEST_TILED = 15 };
#else
enum { TILED = TGX_SHORT, LANES_TILED = TGX_SHORT, SUMS_TILED = TGX_SHORT, BEST_TILED = TGX_SHORT };
#endif
#define R(fold, merge, finish) {fold##_block, fold##_rows, merge, finish, 0, 0, NULL, TILED}
#define IN_LANES(fold, merge, finish) {fold##_block, fold##_rows, merge, finish, 0, 0, NULL, LANES_TILED}
#define SUMS(packs, S, finish) {sum_##S##_block, sum_##S##_rows, add_a, finish, packs, 0, SEVERAL(S), SUMS_TILED}
#define ANY_ORDER(fold, merge, finish) {fold##_block, fold##_rows, merge, finish, 0, 1, NULL, TILED}
#define ONCE(fold, merge, finish) {fold##_block, fold##_rows, merge, finish, 0, 2, NULL, TILED}
#define BEST_OF(fold, merge, finish) {fold##_block, fold##_rows, merge, finish, 0, 2, SEVERAL_OF(fold), BEST_TILED}

const tgx_reducer_table ISA(tgx_reducers) = {
    [TGX_SUM] = {
#define ROW(D, S) [D] = ANY_ORDER(sum_##S, add_i, put_i),
        INTS(ROW) ROW(TGX_BOOL, b8)
#undef ROW
        [TGX_F16] = R(sum_f16, add_a, put_a_f16), [TGX_BF16] = R(sum_bf16, add_a, put_a_bf16),
        [TGX_F32] = SUMS(1, f32, put_a_f32), [TGX_F64] = SUMS(0, f64, put_a_f64),
        [TGX_C64] = R(sum_c64, add_ab, put_ab_c64), [TGX_C128] = R(sum_c128, add_ab, put_ab_c128)},
    [TGX_MEAN] = {
        [TGX_F16] = R(sum_f16, add_a, mean_f16), [TGX_BF16] = R(sum_bf16, add_a, mean_bf16),
        [TGX_F32] = SUMS(1, f32, mean_f32), [TGX_F64] = SUMS(0, f64, mean_f64),
        [TGX_C64] = R(sum_c64, add_ab, mean_c64), [TGX_C128] = R(sum_c128, add_ab, mean_c128)},
    [TGX_NANSUM] = {[TGX_F32] = IN_LANES(nansum_f32, add_a, put_a_f32), [TGX_F64] = IN_LANES(nansum_f64, add_a, put_a_f64)},
    [TGX_PROD] = {
#define ROW(D, S) [D] = ANY_ORDER(prod_##S, mul_i, put_i),
        INTS(ROW) ROW(TGX_BOOL, b8)
#undef ROW
        [TGX_F32] = IN_LANES(prod_f32, mul_a, put_a_f32), [TGX_F64] = IN_LANES(prod_f64, mul_a, put_a_f64),
        [TGX_C64] = R(prod_c64, mul_ab, put_ab_c64), [TGX_C128] = R(prod_c128, mul_ab, put_ab_c128)},
    [TGX_VAR] = {[TGX_F32] = R(var_f32, merge_var, put_var_f32), [TGX_F64] = R(var_f64, merge_var, put_var_f64),
                 [TGX_C64] = R(var_c64, merge_var_pairs, put_var_c64), [TGX_C128] = R(var_c128, merge_var_pairs, put_var_c128)},
#define ROW(D, S) [D] = ONCE(max_##S, max_i, put_i_##S),
    [TGX_MAX] = {INTS(ROW) ROW(TGX_BOOL, b8)
                 [TGX_F32] = BEST_OF(max_f32, max_a, put_a_f32), [TGX_F64] = BEST_OF(max_f64, max_a, put_a_f64)},
#undef ROW
#define ROW(D, S) [D] = ONCE(min_##S, min_i, put_i_##S),
    [TGX_MIN] = {INTS(ROW) ROW(TGX_BOOL, b8)
                 [TGX_F32] = BEST_OF(min_f32, min_a, put_a_f32), [TGX_F64] = BEST_OF(min_f64, min_a, put_a_f64)},
#undef ROW
#define ROW(D, S) [D] = R(argmax_##S, argmax_i, put_at_##S),
    [TGX_ARGMAX] = {INTS(ROW) ROW(TGX_BOOL, b8)
                    [TGX_F32] = R(argmax_f32, argmax_a, put_at_f32), [TGX_F64] = R(argmax_f64, argmax_a, put_at_f64)},
#undef ROW
#define ROW(D, S) [D] = R(argmin_##S, argmin_i, put_at_##S),
    [TGX_ARGMIN] = {INTS(ROW) ROW(TGX_BOOL, b8)
                    [TGX_F32] = R(argmin_f32, argmin_a, put_at_f32), [TGX_F64] = R(argmin_f64, argmin_a, put_at_f64)},
#undef ROW
#define EVERY(ROW) INTS(ROW) ROW(TGX_BOOL, b8) ROW(TGX_F16, f16) ROW(TGX_BF16, bf16) ROW(TGX_F32, f32) \
                   ROW(TGX_F64, f64) ROW(TGX_C64, c64) ROW(TGX_C128, c128)
#define ROW(D, S) [D] = ONCE(any_##S, or_i, put_i_b8),
    [TGX_ANY] = {EVERY(ROW)},
#undef ROW
#define ROW(D, S) [D] = ONCE(all_##S, and_i, put_i_b8),
    [TGX_ALL] = {EVERY(ROW)},
#undef ROW
#define ROW(D, S) [D] = ANY_ORDER(count_##S, add_i, put_i),
    [TGX_COUNT] = {EVERY(ROW)},
#undef ROW
    [TGX_NORM0] = {[TGX_F32] = R(count_f32, add_i, put_i_f32), [TGX_F64] = R(count_f64, add_i, put_i_f64),
                   [TGX_C64] = R(count_c64, add_i, put_i_f32), [TGX_C128] = R(count_c128, add_i, put_i_f64)},
    [TGX_ABSMAX] = {[TGX_F32] = R(absmax_f32, max_a, put_a_f32), [TGX_F64] = R(absmax_f64, max_a, put_a_f64),
                   [TGX_C64] = R(absmax_c64, max_a, put_a_f32), [TGX_C128] = R(absmax_c128, max_a, put_a_f64)},
    [TGX_ABSMIN] = {[TGX_F32] = R(absmin_f32, min_a, put_a_f32), [TGX_F64] = R(absmin_f64, min_a, put_a_f64),
                   [TGX_C64] = R(absmin_c64, min_a, put_a_f32), [TGX_C128] = R(absmin_c128, min_a, put_a_f64)},
    [TGX_NORM1] = {[TGX_F32] = IN_LANES(norm1_f32, add_a, put_a_f32), [TGX_F64] = IN_LANES(norm1_f64, add_a, put_a_f64),
                   [TGX_C64] = R(norm1_c64, add_a, put_a_f32), [TGX_C128] = R(norm1_c128, add_a, put_a_f64)},
    [TGX_NORM2] = {[TGX_F32] = IN_LANES(norm2_f32, add_a, root_f32), [TGX_F64] = IN_LANES(norm2_f64, add_a, root_f64),
                   [TGX_C64] = R(norm2_c64, add_a, root_f32), [TGX_C128] = R(norm2_c128, add_a, root_f64)},
    [TGX_NORMP] = {[TGX_F32] = IN_LANES(normp_f32, add_a, rootp_f32), [TGX_F64] = IN_LANES(normp_f64, add_a, rootp_f64),
                   [TGX_C64] = R(normp_c64, add_a, rootp_f32), [TGX_C128] = R(normp_c128, add_a, rootp_f64)},
};
