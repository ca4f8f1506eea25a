/* The program of a plan that decides or computes with numbers: arithmetic with Python's rules, jumps, and steps, which
 * are instructions of the plan. A plan without such things has none, and runs its instructions one after the other.
 *
 * A number lives in a register, whose kind (int, float, bool, complex) is known when the plan is made. Whatever Python
 * would raise for, or do with another type or more bits (an int beyond 64, the square root of -1), stops the run with
 * TGX_BAD_VALUE: a graph has no effects, so whoever runs the plan lets the interpreter do it again, which says it best.
 *
 * Rejected: branches and loops that hold plans of their own (a call for each trip, and registers to be passed in and out);
 * registers with a tag (a test for each operand, though types are known). */
#ifndef TGX_PROGRAM_H
#define TGX_PROGRAM_H
#include <stddef.h>
#include <stdint.h>

enum { TGX_FUEL = 1 << 18 };       /* jumps back between two looks for an interrupt: a millisecond */

enum tgx_code_op {
    TGX_CODE_END,
    TGX_CODE_NONE,                 /* of programs that are being written */
    TGX_CODE_STEP,                 /* instruction a of the plan */
    TGX_CODE_RAW,                  /* instruction a, of which we know that it is one of this kind */
    TGX_CODE_SMALL,
    TGX_CODE_CALL,                 /* function a of whoever made the plan */
    TGX_CODE_FAIL,                 /* here the program raises */
    TGX_CODE_JUMP,                 /* to b; back or forth */
    TGX_CODE_UNLESS,               /* to b if bool a is false */
    TGX_CODE_NEXT,                 /* int `to` is one more; to b while it is less than int a */
    TGX_CODE_LOAD,                 /* the element at place a */
    TGX_CODE_PUT,                  /* register b to place a */
    TGX_CODE_WINDOW,               /* let window a show what int b selects */
    TGX_CODE_PUSH,                 /* `to` is stack a with row b on it, see stacks.h */
    TGX_CODE_POP,                  /* `to` is stack a without its last row, which row b reads */
    TGX_CODE_MOVE,
    /* ints */
    TGX_CODE_ADD, TGX_CODE_SUB, TGX_CODE_MUL, TGX_CODE_FLOORDIV, TGX_CODE_MOD, TGX_CODE_POW, TGX_CODE_NEG, TGX_CODE_ABS,
    TGX_CODE_MAX, TGX_CODE_MIN, TGX_CODE_AND, TGX_CODE_OR, TGX_CODE_XOR, TGX_CODE_LSHIFT, TGX_CODE_RSHIFT,
    TGX_CODE_INVERT, TGX_CODE_LT, TGX_CODE_LE, TGX_CODE_EQ, TGX_CODE_NE, TGX_CODE_TRUEDIV,
    /* floats */
    TGX_CODE_FADD, TGX_CODE_FSUB, TGX_CODE_FMUL, TGX_CODE_FDIV, TGX_CODE_FFLOORDIV, TGX_CODE_FMOD, TGX_CODE_FPOW,
    TGX_CODE_FNEG, TGX_CODE_FABS, TGX_CODE_FMAX, TGX_CODE_FMIN, TGX_CODE_FLT, TGX_CODE_FLE, TGX_CODE_FEQ, TGX_CODE_FNE,
    TGX_CODE_FLOOR, TGX_CODE_CEIL, TGX_CODE_ROUND, TGX_CODE_MATH,      /* math: function `which` */
    TGX_CODE_ISNAN, TGX_CODE_ISINF, TGX_CODE_ISFINITE,
    /* conversions */
    TGX_CODE_FLOAT,                /* of an int */
    TGX_CODE_EXACT,                /* of an int that is compared with a float: fails where it is rounded */
    TGX_CODE_INT,                  /* of a float */
    TGX_CODE_TRUTH, TGX_CODE_FTRUTH, TGX_CODE_NOT,
    /* to `to` unless a and b compare so: what a comparison and the jump behind it become, in the order of those above */
    TGX_CODE_UNLESS_LT, TGX_CODE_UNLESS_LE, TGX_CODE_UNLESS_EQ, TGX_CODE_UNLESS_NE,
    TGX_CODE_UNLESS_FLT, TGX_CODE_UNLESS_FLE, TGX_CODE_UNLESS_FEQ, TGX_CODE_UNLESS_FNE,
};

/* Functions of TGX_CODE_MATH, in this order. */
enum tgx_math { TGX_MATH_SQRT, TGX_MATH_EXP, TGX_MATH_SIN, TGX_MATH_COS, TGX_MATH_TAN, TGX_MATH_ASIN, TGX_MATH_ACOS,
                TGX_MATH_ATAN, TGX_MATH_SINH, TGX_MATH_COSH, TGX_MATH_TANH, TGX_MATH_EXPM1, TGX_MATH_LOG, TGX_MATH_LOG2,
                TGX_MATH_LOG10 };

enum tgx_kind { TGX_KIND_INT, TGX_KIND_FLOAT, TGX_KIND_BOOL, TGX_KIND_COMPLEX };

typedef struct {
    union { int64_t i; double f; };
    double im;
} tgx_number;

typedef struct {
    uint16_t code, which;
    int32_t to, a, b;
} tgx_code;

/* Where a number is read or written: an element of a dtype; -1: a tgx_scalar. */
typedef struct {
    char *data;
    int32_t dtype, kind;
} tgx_cell;

/* A pointer to one of `count` equal parts, `stride` bytes apart. */
typedef struct {
    char *data;
    char **where;
    int64_t count;
    ptrdiff_t stride;
} tgx_window;
#endif
