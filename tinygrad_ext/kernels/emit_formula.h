/* What an element of a pointwise op is, as codes that the emitter reads (see emit.h), and as terms that it makes of them.
 *
 * A formula is the op's expression for floats in postfix order; utils/formula_text.py writes it from the record's scalar=.
 * A term is one operation on registers. Terms of a run of ops are numbered in the order in which they are computed; one
 * that repeats a constant is the same term.
 *
 * Rejected: one routine per op that emits its code (a second statement of each op, in C); terms as a tree (what several
 * ops read would be computed again). */
#ifndef TGX_EMIT_FORMULA_H
#define TGX_EMIT_FORMULA_H
#include "types.h"

enum tgx_formula_code {
    TGX_F_END,
    TGX_F_X, TGX_F_Y, TGX_F_Z,      /* operands */
    TGX_F_NUMBER,                   /* the next byte says which of the formula's numbers */
    TGX_F_SCALAR, TGX_F_GIVEN, TGX_F_INTEGER,   /* of aux[next byte]: its value, whether it is not None, its value as an int */
    TGX_F_REFUSED,                  /* something that has no code here */
    TGX_F_ADD, TGX_F_SUB, TGX_F_MUL, TGX_F_DIV, TGX_F_SQRT, TGX_F_FLOOR, TGX_F_CEIL, TGX_F_TRUNC, TGX_F_RINT,
    TGX_F_NEG, TGX_F_ABS, TGX_F_COPYSIGN,
    TGX_F_EQ, TGX_F_NE, TGX_F_LT, TGX_F_LE, TGX_F_GT, TGX_F_GE,
    TGX_F_AND, TGX_F_OR, TGX_F_XOR, TGX_F_NOT,
    TGX_F_CHOOSE,                   /* condition ? a : b */
};

typedef struct { const uint8_t *codes; const double *numbers; } tgx_formula;
typedef struct { const char *name; tgx_formula formula; } tgx_formula_row;

enum tgx_term_op {
    TGX_T_LOAD,                     /* operand a of the group, an element each */
    TGX_T_REPEAT,                   /* operand a of the group, one element for all */
    TGX_T_CONST,                    /* bits */
    TGX_T_SCALAR,                   /* the double at `scalar`, which each run sets anew */
    TGX_T_STORE,                    /* term a to operand b */
    TGX_T_ADD, TGX_T_SUB, TGX_T_MUL, TGX_T_DIV, TGX_T_SQRT, TGX_T_FLOOR, TGX_T_CEIL, TGX_T_TRUNC, TGX_T_RINT,
    TGX_T_AND, TGX_T_OR, TGX_T_XOR, /* of bits */
    TGX_T_EQ, TGX_T_NE, TGX_T_LT, TGX_T_LE, TGX_T_GT, TGX_T_GE,     /* a truth: all bits or none */
    TGX_T_CHOOSE,                   /* c compared by `test` with d ? a : b; without a test c is a truth */
    TGX_T_CONVERT,                  /* between float32 and float64 */
    TGX_T_RESIZE,                   /* a truth of the other width */
    TGX_T_DEAD,
};

/* wide: lanes of eight bytes; else four. truth: all bits of a lane, or none; in memory a byte. */
typedef struct {
    uint8_t op, wide, truth, test;
    int16_t a, b, c, d;
    union { uint64_t bits; const double *scalar; double number; };
} tgx_term;

enum { TGX_TERMS = 1536, TGX_CONSTANTS = 64 };

typedef struct {
    int count, nconstants;
    int16_t constants[TGX_CONSTANTS];
    tgx_term at[TGX_TERMS];
} tgx_terms;

enum { TGX_REFUSED = -1 };

/* Append a term; its number, or TGX_REFUSED where there are too many. */
int tgx_term_add(tgx_terms *t, tgx_term term);
int tgx_term_constant(tgx_terms *t, int wide, uint64_t bits);
/* Truth m as 0.0 or 1.0; number a as a truth; a truth in lanes of a width. */
int tgx_term_number(tgx_terms *t, int m);
int tgx_term_truth(tgx_terms *t, int a);
int tgx_term_sized(tgx_terms *t, int m, int wide);

/* What a formula makes of operands: the term, or TGX_REFUSED. varying: bits of scalars that each run sets anew. */
int tgx_formula_terms(tgx_terms *t, const tgx_formula *f, int wide, const int16_t *operands, const tgx_scalar *aux, uint32_t varying);
#endif
