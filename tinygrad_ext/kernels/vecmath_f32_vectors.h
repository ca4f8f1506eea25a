/* exp, sigmoid and tanh of VM_V, a vector of floats, with operations VM_P(name); included by vecmath_f32_loops.h for each width. */

VM_INLINE VM_V VM_WIDE(all)(float x) { return VM_P(set1_ps)(x); }
VM_INLINE VM_V VM_WIDE(same)(VM_V x) { return x; }

/* x * by, as a whole number. */
VM_INLINE VM_V VM_WIDE(rounded)(VM_V x, float by)
{
    const VM_V round = VM_WIDE(all)(VM_ROUND_F32);
    return VM_P(sub_ps)(VM_P(fmadd_ps)(x, VM_WIDE(all)(by), round), round);
}

VM_INLINE VM_V VM_WIDE(less)(VM_V x, VM_V k, float by) { return VM_P(fmadd_ps)(k, VM_WIDE(all)(-by), x); }

VM_INLINE VM_V VM_WIDE(exp_reduced)(VM_V x)
{
    VM_V k = VM_WIDE(rounded)(x, 0x1.715476p+0f);
    VM_V r = VM_WIDE(less)(VM_WIDE(less)(x, k, 0x1.62e4p-1f), k, 0x1.7f7d1cp-20f);
    return VM_P(scalef_ps)(VM_EXP(VM_T, r), k);
}

/* Minimum and maximum give their second operand where one is nan. */
VM_INLINE VM_V VM_WIDE(exp)(VM_V x)
{
    x = VM_P(min_ps)(VM_WIDE(all)(89.0f), x);
    return VM_WIDE(exp_reduced)(VM_P(max_ps)(VM_WIDE(all)(-105.0f), x));
}

VM_INLINE VM_V VM_WIDE(sigmoid)(VM_V x)
{
    const VM_V one = VM_WIDE(all)(1.0f), sign = VM_WIDE(all)(-0.0f);
    VM_V a = VM_P(min_ps)(VM_WIDE(all)(105.0f), VM_P(andnot_ps)(sign, x));
    VM_V e = VM_WIDE(exp_reduced)(VM_P(or_ps)(sign, a));
    VM_V den = VM_P(add_ps)(one, e), low = VM_P(sub_ps)(e, VM_P(sub_ps)(den, one));
    VM_V top = VM_P(mask_mov_ps)(one, VM_P(cmp_ps_mask)(x, VM_P(setzero_ps)(), _CMP_LT_OQ), e);
    VM_V q = VM_P(div_ps)(top, den);
    return VM_P(fnmadd_ps)(q, low, q);
}

VM_INLINE VM_V VM_WIDE(tanh)(VM_V x)
{
    const VM_V one = VM_WIDE(all)(1.0f), sign = VM_WIDE(all)(-0.0f);
    VM_V a = VM_P(andnot_ps)(sign, x), z = VM_P(mul_ps)(a, a), b = VM_P(min_ps)(VM_WIDE(all)(9.1f), a);
    VM_V near = VM_P(fmadd_ps)(VM_P(mul_ps)(a, z), VM_TANH_NEAR(VM_T, z), a);
    VM_V k = VM_WIDE(rounded)(b, 0x1.715476p+1f), r = VM_WIDE(less)(b, k, 0x1.62e43p-2f);
    VM_V e = VM_P(scalef_ps)(VM_EXP_TWICE(VM_T, r), k);
    VM_V tail = VM_P(sub_ps)(one, VM_P(div_ps)(VM_WIDE(all)(2.0f), VM_P(add_ps)(e, one)));
    near = VM_P(mask_mov_ps)(tail, VM_P(cmp_ps_mask)(a, VM_WIDE(all)(0.55f), _CMP_LT_OQ), near);
    return VM_P(or_ps)(VM_P(and_ps)(sign, x), VM_P(andnot_ps)(sign, near));
}

#undef VM_V
#undef VM_T
#undef VM_P
#undef VM_WIDE
