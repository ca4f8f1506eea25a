/* One term as vector instructions; see emit.h. */
#ifndef TGX_EMIT_VECTOR_H
#define TGX_EMIT_VECTOR_H
#include "emit_formula.h"
#include "emit_x86.h"

/* How many elements the code makes at a time: as many as a vector has, as many as a mask lets through, one. */
enum tgx_emit_mode { TGX_FULL, TGX_MASKED, TGX_SINGLE };

typedef struct {
    tgx_text *text;
    int mode;
    int mixed;                     /* there are lanes of both widths: narrow ones lie in half of a register */
} tgx_vectors;

/* Registers that no value is given: two behind the others, and mask registers. */
static inline int tgx_registers(const tgx_text *t) { return t->evex ? 30 : 14; }

/* Instructions of a term. to: its register; in: those of its operands; place: of an element in memory. */
void tgx_emit_term(const tgx_vectors *v, const tgx_term *term, int to, const int *in, tgx_where place);
/* A whole register from or to the stack. */
void tgx_emit_spill(const tgx_vectors *v, int store, int reg, tgx_where place);
#endif
