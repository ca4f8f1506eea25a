/* Machine code for a run of plain arithmetic within a group of pointwise ops (plan.h), on x86-64 with AVX2 or AVX-512.
 *
 * The loops of a group make one pass over a tile each, so six cheap ops cost twelve loads and six stores an element. A run
 * of them is emitted as one loop whose values stay in registers; ops without a formula (exp) keep their loops, before and
 * behind it. Each instruction is the one that the op's loop rounds with, in the same order, so the bits are the same; of
 * two NaNs either may be the one that is passed on, as in eager mode, where it depends on the layout.
 *
 *     emit_formula    what an op computes, as terms
 *     emit            terms in registers, and the loop around them
 *     emit_vector     a term as instructions
 *     emit_x86        an instruction as bytes
 *     emit_memory     memory that may be executed
 *
 * Measured, against compiled C for the same run: equal. Rejected: a compiler at run time (0.2 s where this takes 2 us);
 * interpreting operations on vectors (five times slower than loops over tiles); a second form of each op in C for the
 * emitter (the record's expression says it); contraction into fused multiply and add (other bits). Docs: decision 22. */
#ifndef TGX_EMIT_H
#define TGX_EMIT_H
#include "emit_formula.h"
#include "emit_x86.h"

/* A value of a run: what a step makes or reads. */
typedef struct {
    int8_t dtype;
    uint8_t repeated;              /* one element, for all */
    int16_t operand;               /* of the group, where it is read from or written to; -1: it stays in registers */
} tgx_emit_value;

/* An op of a run. */
typedef struct {
    const tgx_formula *formula;    /* NULL: a conversion of what is read to what is made */
    const tgx_scalar *aux;
    uint32_t varying;              /* bits of those that each run of the plan sets anew */
    int8_t dtype;                  /* that it is computed in: TGX_F32 or TGX_F64 */
    int8_t n;
    int16_t value[TGX_MAX_OPERANDS];
} tgx_emit_step;

/* Whether a step can be emitted at all; dtypes: of what it makes, then of what it reads. */
int tgx_emit_fits(const tgx_emit_step *step, const int8_t *dtypes);

/* Append the code of a run to a text (whose `evex` says for which machine); where it begins, or -1. */
ptrdiff_t tgx_emit_run(tgx_text *text, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues);

/* Copy code to memory where it can run; NULL where that is refused. Any thread may call these. */
void *tgx_code_make(const void *bytes, size_t n);
void tgx_code_free(void *code, size_t n);
size_t tgx_code_held(void);        /* bytes of all code that is there now */
/* What can be emitted for here: 0 (nothing: another processor, or a system that refuses), 1 (AVX2), 2 (AVX-512). */
int tgx_emit_level(void);

#if defined(__x86_64__) && (defined(__unix__) || defined(__APPLE__))
#define TGX_EMITS 1
#else
#define TGX_EMITS 0
#endif
#endif
