/* The engine of program.h: arithmetic on registers by Python's rules, jumps, and the steps that are instructions of a plan. */
#include "plan.h"
#include <math.h>
#include <string.h>

/* ---- numbers in memory --------------------------------------------------------------------------------------------- */

static void put(const tgx_cell *p, tgx_number n) {
    double f = p->kind == TGX_KIND_INT || p->kind == TGX_KIND_BOOL ? (double)n.i : n.f;
    int64_t i = p->kind == TGX_KIND_INT || p->kind == TGX_KIND_BOOL ? n.i : -9.2e18 < n.f && n.f < 9.2e18 ? (int64_t)n.f : 0;
    double im = p->kind == TGX_KIND_COMPLEX ? n.im : 0;
    switch (p->dtype) {
        case -1: *(tgx_scalar *)p->data = (tgx_scalar){.f = f, .im = im, .i = i, .given = 1}; return;
        case TGX_F32: *(float *)p->data = (float)f; return;
        case TGX_F64: *(double *)p->data = f; return;
        case TGX_I64: *(int64_t *)p->data = i; return;
        case TGX_BOOL: *(uint8_t *)p->data = i != 0; return;
        case TGX_I32: *(int32_t *)p->data = (int32_t)i; return;
        case TGX_U8: *(uint8_t *)p->data = (uint8_t)i; return;
        case TGX_U16: *(uint16_t *)p->data = (uint16_t)i; return;
        case TGX_U32: *(uint32_t *)p->data = (uint32_t)i; return;
        case TGX_U64: *(uint64_t *)p->data = (uint64_t)i; return;
        case TGX_I8: *(int8_t *)p->data = (int8_t)i; return;
        case TGX_I16: *(int16_t *)p->data = (int16_t)i; return;
        case TGX_F16: *(uint16_t *)p->data = tgx_f32_to_f16((float)f); return;
        case TGX_BF16: *(uint16_t *)p->data = tgx_f32_to_bf16((float)f); return;
        case TGX_C64: ((float *)p->data)[0] = (float)f, ((float *)p->data)[1] = (float)im; return;
        default: ((double *)p->data)[0] = f, ((double *)p->data)[1] = im; return;
    }
}

static tgx_number load(const tgx_cell *p) {
    const char *d = p->data;
    switch (p->dtype) {
        case TGX_F32: return (tgx_number){.f = *(const float *)d};
        case TGX_F64: return (tgx_number){.f = *(const double *)d};
        case TGX_I64: return (tgx_number){.i = *(const int64_t *)d};
        case TGX_BOOL: return (tgx_number){.i = *(const uint8_t *)d != 0};
        case TGX_I32: return (tgx_number){.i = *(const int32_t *)d};
        case TGX_U8: return (tgx_number){.i = *(const uint8_t *)d};
        case TGX_U16: return (tgx_number){.i = *(const uint16_t *)d};
        case TGX_U32: return (tgx_number){.i = *(const uint32_t *)d};
        case TGX_U64: return (tgx_number){.i = (int64_t)*(const uint64_t *)d};
        case TGX_I8: return (tgx_number){.i = *(const int8_t *)d};
        case TGX_I16: return (tgx_number){.i = *(const int16_t *)d};
        case TGX_F16: return (tgx_number){.f = tgx_f16_to_f32(*(const uint16_t *)d)};
        case TGX_BF16: return (tgx_number){.f = tgx_bf16_to_f32(*(const uint16_t *)d)};
        case TGX_C64: return (tgx_number){.f = ((const float *)d)[0], .im = ((const float *)d)[1]};
        default: return (tgx_number){.f = ((const double *)d)[0], .im = ((const double *)d)[1]};
    }
}

/* ---- arithmetic: 0 where Python would do something else than return a number of the same kind ---------------------- */

static int int_power(int64_t a, int64_t b, int64_t *to) {
    int64_t made = 1;
    if (b < 0) return 0;
    for (;;) {
        if (b & 1 && __builtin_mul_overflow(made, a, &made)) return 0;
        if (!(b >>= 1)) break;
        if (__builtin_mul_overflow(a, a, &a)) return 0;
    }
    *to = made;
    return 1;
}

static int float_power(double a, double b, double *to) {
    if (!isfinite(a) || !isfinite(b) || (a == 0 && b < 0) || (a < 0 && b != floor(b))) return 0;
    *to = pow(a, b);
    return isfinite(*to);
}

/* The rest has the sign of b, and the quotient is the whole number that belongs to it. */
static void float_parts(double a, double b, double *quotient, double *rest) {
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0) {
        if ((b < 0) != (r < 0)) r += b, q -= 1;
    } else {
        r = copysign(0.0, b);
    }
    if (q != 0) {
        double whole = floor(q);
        *quotient = q - whole > 0.5 ? whole + 1 : whole;
    } else {
        *quotient = copysign(0.0, a / b);
    }
    *rest = r;
}

static double (*const functions[])(double) = {sqrt, exp, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, expm1, log, log2,
                                              log10};

static int function(int which, double a, double *to) {
    if (which >= TGX_MATH_LOG && !(a > 0)) return 0;
    *to = functions[which](a);
    return isfinite(*to) || isnan(a) || (isinf(a) && !isnan(*to));
}

static int whole(double a, tgx_number *to) {
    if (!(-9.2e18 < a && a < 9.2e18)) return 0;
    to->i = (int64_t)a;
    return 1;
}

static int exact(int64_t i) {
    return -(INT64_C(1) << 53) <= i && i <= INT64_C(1) << 53;
}

/* ---- stacks -------------------------------------------------------------------------------------------------------- */

/* Small sizes are known to the compiler. */
static inline void keep(char *to, const char *from, size_t bytes) {
    switch (bytes) {
        case 4: memcpy(to, from, 4); return;
        case 8: memcpy(to, from, 8); return;
        case 16: memcpy(to, from, 16); return;
        case 32: memcpy(to, from, 32); return;
        case 64: memcpy(to, from, 64); return;
        default: memcpy(to, from, bytes);
    }
}

static int push(tgx_plan *plan, const tgx_row *row, int64_t before, int64_t *top) {
    tgx_pile *pile = plan->piles[row->pile];
    char *to;
    if (__builtin_expect(pile->count == pile->room, 0)) {
        int code = plan->grow(pile);
        if (code) return code;
    }
    to = tgx_row_of(pile, pile->count);
    memcpy(to, &before, sizeof before);
    for (int32_t i = 0; i < row->nnumbers; i++) {
        keep(to + row->numbers[i].offset, (const char *)&plan->numbers[row->numbers[i].slot], (size_t)row->numbers[i].size);
    }
    for (int32_t i = 0; i < row->nparts; i++) {
        keep(to + row->parts[i].offset, row->parts[i].data, row->parts[i].bytes);
    }
    *top = pile->count++;
    return 0;
}

static int pop(tgx_plan *plan, const tgx_row *row, int64_t top, int64_t *before) {
    const tgx_pile *pile = plan->piles[row->pile];
    char *from;
    if (top < 0 || top >= pile->count) return TGX_BAD_VALUE;
    from = tgx_row_of(pile, top);
    for (int32_t i = 0; i < row->nnumbers; i++) {
        keep((char *)&plan->numbers[row->numbers[i].slot], from + row->numbers[i].offset, (size_t)row->numbers[i].size);
    }
    for (int32_t i = 0; i < row->nparts; i++) *row->parts[i].where = from + row->parts[i].offset;
    memcpy(before, from, sizeof *before);
    return 0;
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

static int stopped(tgx_plan *plan) {
    plan->fuel = TGX_FUEL;
    return plan->interrupted && plan->interrupted();
}

int tgx_program_run(tgx_plan *plan) {
    tgx_number *const r = plan->numbers;
    const tgx_code *const program = plan->program, *c = program;
    /* a jump of its own behind each operation is foreseen better than one for all */
    static const void *const labels[] = {
        [TGX_CODE_END] = &&L_END, [TGX_CODE_NONE] = &&L_NONE, [TGX_CODE_STEP] = &&L_STEP, [TGX_CODE_CALL] = &&L_CALL,
        [TGX_CODE_RAW] = &&L_RAW, [TGX_CODE_SMALL] = &&L_SMALL,
        [TGX_CODE_FAIL] = &&L_FAIL,
        [TGX_CODE_JUMP] = &&L_JUMP, [TGX_CODE_UNLESS] = &&L_UNLESS, [TGX_CODE_NEXT] = &&L_NEXT,
        [TGX_CODE_LOAD] = &&L_LOAD, [TGX_CODE_PUT] = &&L_PUT, [TGX_CODE_WINDOW] = &&L_WINDOW,
        [TGX_CODE_PUSH] = &&L_PUSH, [TGX_CODE_POP] = &&L_POP,
        [TGX_CODE_MOVE] = &&L_MOVE, [TGX_CODE_ADD] = &&L_ADD, [TGX_CODE_SUB] = &&L_SUB, [TGX_CODE_MUL] = &&L_MUL,
        [TGX_CODE_FLOORDIV] = &&L_FLOORDIV, [TGX_CODE_MOD] = &&L_MOD, [TGX_CODE_POW] = &&L_POW,
        [TGX_CODE_NEG] = &&L_NEG, [TGX_CODE_ABS] = &&L_ABS, [TGX_CODE_MAX] = &&L_MAX, [TGX_CODE_MIN] = &&L_MIN,
        [TGX_CODE_AND] = &&L_AND, [TGX_CODE_OR] = &&L_OR, [TGX_CODE_XOR] = &&L_XOR, [TGX_CODE_LSHIFT] = &&L_LSHIFT,
        [TGX_CODE_RSHIFT] = &&L_RSHIFT, [TGX_CODE_INVERT] = &&L_INVERT, [TGX_CODE_LT] = &&L_LT,
        [TGX_CODE_LE] = &&L_LE, [TGX_CODE_EQ] = &&L_EQ, [TGX_CODE_NE] = &&L_NE, [TGX_CODE_TRUEDIV] = &&L_TRUEDIV,
        [TGX_CODE_FADD] = &&L_FADD, [TGX_CODE_FSUB] = &&L_FSUB, [TGX_CODE_FMUL] = &&L_FMUL,
        [TGX_CODE_FDIV] = &&L_FDIV, [TGX_CODE_FFLOORDIV] = &&L_FFLOORDIV, [TGX_CODE_FMOD] = &&L_FMOD,
        [TGX_CODE_FPOW] = &&L_FPOW, [TGX_CODE_FNEG] = &&L_FNEG, [TGX_CODE_FABS] = &&L_FABS,
        [TGX_CODE_FMAX] = &&L_FMAX, [TGX_CODE_FMIN] = &&L_FMIN, [TGX_CODE_FLT] = &&L_FLT, [TGX_CODE_FLE] = &&L_FLE,
        [TGX_CODE_FEQ] = &&L_FEQ, [TGX_CODE_FNE] = &&L_FNE, [TGX_CODE_FLOOR] = &&L_FLOOR, [TGX_CODE_CEIL] = &&L_CEIL,
        [TGX_CODE_ROUND] = &&L_ROUND, [TGX_CODE_MATH] = &&L_MATH, [TGX_CODE_ISNAN] = &&L_ISNAN,
        [TGX_CODE_ISINF] = &&L_ISINF, [TGX_CODE_ISFINITE] = &&L_ISFINITE, [TGX_CODE_FLOAT] = &&L_FLOAT,
        [TGX_CODE_EXACT] = &&L_EXACT, [TGX_CODE_INT] = &&L_INT, [TGX_CODE_TRUTH] = &&L_TRUTH,
        [TGX_CODE_FTRUTH] = &&L_FTRUTH, [TGX_CODE_NOT] = &&L_NOT,
        [TGX_CODE_UNLESS_LT] = &&L_UNLESS_LT, [TGX_CODE_UNLESS_LE] = &&L_UNLESS_LE,
        [TGX_CODE_UNLESS_EQ] = &&L_UNLESS_EQ, [TGX_CODE_UNLESS_NE] = &&L_UNLESS_NE,
        [TGX_CODE_UNLESS_FLT] = &&L_UNLESS_FLT, [TGX_CODE_UNLESS_FLE] = &&L_UNLESS_FLE,
        [TGX_CODE_UNLESS_FEQ] = &&L_UNLESS_FEQ, [TGX_CODE_UNLESS_FNE] = &&L_UNLESS_FNE,
    };
    int code;
    plan->fuel = TGX_FUEL;
#define A r[c->a]
#define B r[c->b]
#define TO r[c->to]
#define FAIL_IF(x) if (__builtin_expect(x, 0)) goto bad
#define NEXT do { c++; goto *labels[c->code]; } while (0)
#define UNLESS(x) do { c = (x) ? c + 1 : program + c->to; goto *labels[c->code]; } while (0)
/* as tgx_instruction_run does it */
#define INSTRUCTION(run) do {                                                       \
        tgx_instruction *i = &plan->instructions[c->a];                                 \
        code = plan->profiled ? tgx_instruction_run(plan, c->a) : (run);                \
        plan->since += i->work;                                                         \
        if (__builtin_expect(plan->since > TGX_LOOK, 0) && !code) code = tgx_plan_look(plan); \
        if (__builtin_expect(code, 0)) { plan->at = c->a; return code; }                \
        NEXT;                                                                           \
    } while (0)
    goto *labels[c->code];
    L_END: return 0;
    L_NONE: NEXT;
    L_STEP:
        code = tgx_instruction_run(plan, c->a);
        if (code) return code;
        NEXT;
    L_RAW:
        INSTRUCTION(i->raw.kernel->run(i->raw.call));
    L_SMALL:
        INSTRUCTION(tgx_small_run(i->tile));
    L_CALL:
        code = plan->call(plan->context, c->a);
        if (code) return code;
        NEXT;
    L_FAIL: goto bad;
    L_JUMP:
        if (c->b <= c - program && !--plan->fuel && stopped(plan)) return TGX_INTERRUPTED;
        c = program + c->b - 1;
        NEXT;
    L_UNLESS:
        if (!A.i) c = program + c->b - 1;
        NEXT;
    L_NEXT:
        if (++TO.i < A.i) {
            if (!--plan->fuel && stopped(plan)) return TGX_INTERRUPTED;
            c = program + c->b - 1;
        }
        NEXT;
    L_LOAD: TO = load(plan->places[c->a]); NEXT;
    L_PUT: put(plan->places[c->a], B); NEXT;
    L_WINDOW: {
        const tgx_window *w = plan->windows[c->a];
        int64_t at = B.i < 0 ? B.i + w->count : B.i;
        FAIL_IF(at < 0 || at >= w->count);
        *w->where = w->data + at * w->stride;
        NEXT;
    }
    L_PUSH:
        code = push(plan, plan->rows[c->b], A.i, &TO.i);
        if (code) return code;
        NEXT;
    L_POP:
        code = pop(plan, plan->rows[c->b], A.i, &TO.i);
        if (code) return code;
        NEXT;
    L_MOVE: TO = A; NEXT;

    L_ADD: FAIL_IF(__builtin_add_overflow(A.i, B.i, &TO.i)); NEXT;
    L_SUB: FAIL_IF(__builtin_sub_overflow(A.i, B.i, &TO.i)); NEXT;
    L_MUL: FAIL_IF(__builtin_mul_overflow(A.i, B.i, &TO.i)); NEXT;
    L_FLOORDIV: {
        int64_t a = A.i, b = B.i, q;
        FAIL_IF(b == 0 || (b == -1 && a == INT64_MIN));
        q = a / b;
        TO.i = q - ((a % b != 0) & ((a < 0) != (b < 0)));
        NEXT;
    }
    L_MOD: {
        int64_t a = A.i, b = B.i, m;
        FAIL_IF(b == 0);
        m = b == -1 ? 0 : a % b;
        TO.i = m + ((m != 0) & ((m < 0) != (b < 0)) ? b : 0);
        NEXT;
    }
    L_POW: FAIL_IF(!int_power(A.i, B.i, &TO.i)); NEXT;
    L_NEG: FAIL_IF(A.i == INT64_MIN); TO.i = -A.i; NEXT;
    L_ABS: FAIL_IF(A.i == INT64_MIN); TO.i = A.i < 0 ? -A.i : A.i; NEXT;
    L_MAX: TO.i = B.i > A.i ? B.i : A.i; NEXT;
    L_MIN: TO.i = B.i < A.i ? B.i : A.i; NEXT;
    L_AND: TO.i = A.i & B.i; NEXT;
    L_OR: TO.i = A.i | B.i; NEXT;
    L_XOR: TO.i = A.i ^ B.i; NEXT;
    L_LSHIFT: {
        int64_t a = A.i, b = B.i;
        FAIL_IF(b < 0 || b > 62 || a > INT64_MAX >> b || a < INT64_MIN >> b);
        TO.i = a * (INT64_C(1) << b);
        NEXT;
    }
    L_RSHIFT: FAIL_IF(B.i < 0); TO.i = A.i >> (B.i > 63 ? 63 : B.i); NEXT;
    L_INVERT: TO.i = ~A.i; NEXT;
    L_LT: TO.i = A.i < B.i; NEXT;
    L_LE: TO.i = A.i <= B.i; NEXT;
    L_EQ: TO.i = A.i == B.i; NEXT;
    L_NE: TO.i = A.i != B.i; NEXT;
    L_TRUEDIV:          /* rounded once: both are exact */
        FAIL_IF(B.i == 0 || !exact(A.i) || !exact(B.i));
        TO.f = (double)A.i / (double)B.i;
        NEXT;

    L_FADD: TO.f = A.f + B.f; NEXT;
    L_FSUB: TO.f = A.f - B.f; NEXT;
    L_FMUL: TO.f = A.f * B.f; NEXT;
    L_FDIV: FAIL_IF(B.f == 0); TO.f = A.f / B.f; NEXT;
    L_FFLOORDIV: {
        double rest;
        FAIL_IF(B.f == 0);
        float_parts(A.f, B.f, &TO.f, &rest);
        NEXT;
    }
    L_FMOD: {
        double quotient;
        FAIL_IF(B.f == 0);
        float_parts(A.f, B.f, &quotient, &TO.f);
        NEXT;
    }
    L_FPOW: FAIL_IF(!float_power(A.f, B.f, &TO.f)); NEXT;
    L_FNEG: TO.f = -A.f; NEXT;
    L_FABS: TO.f = fabs(A.f); NEXT;
    L_FMAX: TO.f = B.f > A.f ? B.f : A.f; NEXT;
    L_FMIN: TO.f = B.f < A.f ? B.f : A.f; NEXT;
    L_FLT: TO.i = A.f < B.f; NEXT;
    L_FLE: TO.i = A.f <= B.f; NEXT;
    L_FEQ: TO.i = A.f == B.f; NEXT;
    L_FNE: TO.i = A.f != B.f; NEXT;
    L_FLOOR: FAIL_IF(!whole(floor(A.f), &TO)); NEXT;
    L_CEIL: FAIL_IF(!whole(ceil(A.f), &TO)); NEXT;
    L_ROUND: FAIL_IF(!whole(rint(A.f), &TO)); NEXT;
    L_MATH: FAIL_IF(!function(c->which, A.f, &TO.f)); NEXT;
    L_ISNAN: TO.i = isnan(A.f) != 0; NEXT;
    L_ISINF: TO.i = isinf(A.f) != 0; NEXT;
    L_ISFINITE: TO.i = isfinite(A.f) != 0; NEXT;

    L_FLOAT: TO.f = (double)A.i; NEXT;
    L_EXACT: FAIL_IF(!exact(A.i)); TO.f = (double)A.i; NEXT;
    L_INT: FAIL_IF(!whole(A.f, &TO)); NEXT;
    L_TRUTH: TO.i = A.i != 0; NEXT;
    L_FTRUTH: TO.i = A.f != 0; NEXT;
    L_NOT: TO.i = !A.i; NEXT;

    L_UNLESS_LT: UNLESS(A.i < B.i);
    L_UNLESS_LE: UNLESS(A.i <= B.i);
    L_UNLESS_EQ: UNLESS(A.i == B.i);
    L_UNLESS_NE: UNLESS(A.i != B.i);
    L_UNLESS_FLT: UNLESS(A.f < B.f);
    L_UNLESS_FLE: UNLESS(A.f <= B.f);
    L_UNLESS_FEQ: UNLESS(A.f == B.f);
    L_UNLESS_FNE: UNLESS(A.f != B.f);
bad:
    return TGX_BAD_VALUE;
}
