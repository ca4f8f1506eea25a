/* See emit.h. Terms are computed in the order of the steps, so loads and stores keep the order that the ops' loops have
 * for an element: a result may lie over an operand that is read for the last time. A value that no register is left for
 * goes to the stack, the one that is needed latest first; constants and repeated elements are loaded again instead.
 *
 * The code:   pointers into registers; for (i = 0; i + width <= n; i += width) body; the rest, with a mask or one by one. */
#include "emit.h"
#include "emit_vector.h"
#include <stdlib.h>

enum {
    VALUES = 1024,
    POINTERS = 9,                  /* registers that hold addresses of operands; others are read from the list each time */
    SLOT = 64,                     /* bytes on the stack */
};

static const uint8_t pointer_registers[POINTERS] = {8, 9, 10, 11, TGX_RBX, 12, 13, 14, 15};

/* ---- terms of steps ----------------------------------------------------------------------------------------------- */

static int wide_of(int dtype) { return dtype == TGX_F64; }

/* Terms of one step, whose operands are terms; the term of what it makes, of the dtype that is asked for, or TGX_REFUSED. */
static int step_terms(tgx_terms *t, const tgx_emit_step *s, const int16_t *given, int dtype) {
    int16_t operands[TGX_MAX_OPERANDS];
    int made;
    const int wide = wide_of(s->dtype);
    for (int k = 0; k + 1 < s->n; k++) {
        const int sized = t->at[given[k]].truth ? tgx_term_sized(t, given[k], wide) : given[k];
        if (sized < 0) return sized;
        operands[k] = (int16_t)sized;
    }
    made = s->formula ? tgx_formula_terms(t, s->formula, wide, operands, s->aux, s->varying) : operands[0];
    if (made < 0) return made;
    if (dtype == TGX_BOOL) return t->at[made].truth ? made : tgx_term_truth(t, made);
    if (t->at[made].truth) {
        if (t->at[made].wide != wide_of(dtype)) made = tgx_term_sized(t, made, wide_of(dtype));
        return made < 0 ? made : tgx_term_number(t, made);
    }
    if (t->at[made].wide == wide_of(dtype)) return made;
    return tgx_term_add(t, (tgx_term){.op = TGX_T_CONVERT, .wide = (uint8_t)wide_of(dtype), .a = (int16_t)made});
}

static int emitted_dtype(int dtype) { return dtype == TGX_F32 || dtype == TGX_F64 || dtype == TGX_BOOL; }

int tgx_emit_fits(const tgx_emit_step *step, const int8_t *dtypes) {
    tgx_terms t;
    int16_t given[TGX_MAX_OPERANDS];
    t.count = t.nconstants = 0;
    for (int k = 0; k < step->n; k++) {
        if (!emitted_dtype(dtypes[k]) || (k && step->formula && dtypes[k] != TGX_BOOL && dtypes[k] != step->dtype)) return 0;
        const int truth = dtypes[k] == TGX_BOOL, wide = wide_of(truth ? step->dtype : dtypes[k]);
        const tgx_term load = {.op = TGX_T_LOAD, .wide = (uint8_t)wide, .truth = (uint8_t)truth};
        if (k) given[k - 1] = (int16_t)tgx_term_add(&t, load);
    }
    return step->dtype != TGX_BOOL && step_terms(&t, step, given, dtypes[0]) >= 0;
}

/* The term of a value that a step reads: made in the run before, or loaded now. */
static int value_term(tgx_terms *t, int16_t *made, const tgx_emit_value *values, int value, int wide) {
    const tgx_emit_value *v = &values[value];
    if (made[value] < 0)
        made[value] = (int16_t)tgx_term_add(t, (tgx_term){
            .op = v->repeated ? TGX_T_REPEAT : TGX_T_LOAD, .truth = v->dtype == TGX_BOOL,
            .wide = (uint8_t)(v->dtype == TGX_BOOL ? wide : wide_of(v->dtype)), .a = v->operand});
    return made[value];
}

static int run_terms(tgx_terms *t, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues) {
    int16_t made[VALUES], given[TGX_MAX_OPERANDS];
    if (nvalues > VALUES) return TGX_REFUSED;
    for (int i = 0; i < nvalues; i++) made[i] = -1;
    for (const tgx_emit_step *s = steps; s < steps + nsteps; s++) {
        const tgx_emit_value *to = &values[s->value[0]];
        for (int k = 1; k < s->n; k++) {
            const int term = value_term(t, made, values, s->value[k], wide_of(s->dtype));
            if (term < 0 || (values[s->value[k]].repeated && t->at[term].truth)) return TGX_REFUSED;
            given[k - 1] = (int16_t)term;
        }
        const int term = step_terms(t, s, given, to->dtype);
        if (term < 0) return term;
        made[s->value[0]] = (int16_t)term;
        if (to->operand >= 0) {
            tgx_term store = t->at[term];
            store.op = TGX_T_STORE, store.a = (int16_t)term, store.b = to->operand;
            if (tgx_term_add(t, store) < 0) return TGX_REFUSED;
        }
    }
    return 0;
}

/* ---- registers ---------------------------------------------------------------------------------------------------- */

typedef struct {
    tgx_vectors v;
    tgx_terms terms;
    int nslots, nscalars, most;            /* on the stack: now, those of changing scalars, at most */
    int width;
    int npointers, pushed;
    int16_t pointers[POINTERS];            /* operands whose addresses are in registers */
    int16_t last[TGX_TERMS];               /* term that reads a term last */
    int16_t reg[TGX_TERMS], slot[TGX_TERMS], scalar_slot[TGX_TERMS];
    int16_t held[32];                      /* term in a register, or -1 */
    uint32_t locked;
} run_t;

/* Terms that a term reads. */
static int operands_of(const tgx_term *t, int16_t *out) {
    out[0] = t->a, out[1] = t->b, out[2] = t->c, out[3] = t->d;
    if (t->op <= TGX_T_SCALAR || t->op == TGX_T_DEAD) return 0;
    if (t->op == TGX_T_CHOOSE) return t->test ? 4 : 3;
    if (t->op == TGX_T_STORE || t->op == TGX_T_CONVERT || t->op == TGX_T_RESIZE) return 1;
    return t->op >= TGX_T_SQRT && t->op <= TGX_T_RINT ? 1 : 2;
}

/* Whether a term is loaded again rather than kept: its memory does not change. */
static int repeats(const tgx_term *t) { return t->op >= TGX_T_REPEAT && t->op <= TGX_T_SCALAR; }

/* Take out what nobody stores; find who reads a term last. */
static void find_lives(run_t *r) {
    int16_t in[4];
    for (int i = 0; i < r->terms.count; i++) r->last[i] = -1;
    for (int i = r->terms.count - 1; i >= 0; i--) {
        tgx_term *t = &r->terms.at[i];
        if (t->op != TGX_T_STORE && r->last[i] < 0) t->op = TGX_T_DEAD;
        for (int k = operands_of(t, in) - 1; k >= 0; k--)
            if (r->last[in[k]] < 0) r->last[in[k]] = (int16_t)i;
    }
}

static int next_use(const run_t *r, int term, int at) {
    int16_t in[4];
    for (int i = at; i <= r->last[term]; i++)
        for (int k = operands_of(&r->terms.at[i], in) - 1; k >= 0; k--)
            if (in[k] == term) return i;
    return TGX_TERMS;
}

static tgx_where stack(int slot) { return tgx_mem(TGX_RSP, SLOT * slot); }

static int free_register(run_t *r, int at) {
    int best = -1, latest = -1;
    const int n = tgx_registers(r->v.text);
    for (int i = 0; i < n; i++)
        if (r->held[i] < 0) return i;
    for (int i = 0; i < n; i++) {
        if (r->locked >> i & 1) continue;
        const int next = next_use(r, r->held[i], at);
        if (next > latest) latest = next, best = i;
    }
    const int term = r->held[best];
    if (!repeats(&r->terms.at[term]) && r->slot[term] < 0) {
        r->slot[term] = (int16_t)r->nslots++;
        if (r->nslots > r->most) r->most = r->nslots;
        tgx_emit_spill(&r->v, 1, best, stack(r->slot[term]));
    }
    r->reg[term] = -1;
    return best;
}

static void hold(run_t *r, int reg, int term) { r->held[reg] = (int16_t)term, r->reg[term] = (int16_t)reg; }

/* The place of an operand's elements. An address that has no register of its own goes through one: rax, or rdx where the
 * full vectors are done and rax holds truths that are loaded and stored one by one. */
static tgx_where place_of(run_t *r, int operand, int repeated, int scale) {
    const int passing = r->v.mode == TGX_SINGLE ? TGX_RDX : TGX_RAX;
    int base = passing;
    for (int i = 0; i < r->npointers; i++)
        if (r->pointers[i] == operand) base = pointer_registers[i];
    if (base == passing) tgx_integer(r->v.text, 1, 0x8B, passing, tgx_mem(TGX_RDI, 8 * operand));
    return repeated ? tgx_mem(base, 0) : tgx_element(base, scale);
}

static tgx_where memory_of(run_t *r, const tgx_term *t, int i) {
    const int scale = t->truth ? 0 : 2 + t->wide;
    switch (t->op) {
        case TGX_T_CONST: return tgx_constant(r->v.text, t->bits);
        case TGX_T_SCALAR: return stack(r->scalar_slot[i]);
        case TGX_T_REPEAT: return place_of(r, t->a, 1, 0);
        case TGX_T_LOAD: return place_of(r, t->a, 0, scale);
        case TGX_T_STORE: return place_of(r, t->b, 0, scale);
        default: return tgx_reg(0);
    }
}

/* The register of a term that is read now. */
static int brought(run_t *r, int term, int at) {
    if (r->reg[term] < 0) {
        const int reg = free_register(r, at);
        hold(r, reg, term);
        if (r->slot[term] >= 0) tgx_emit_spill(&r->v, 0, reg, stack(r->slot[term]));
        else tgx_emit_term(&r->v, &r->terms.at[term], reg, NULL, memory_of(r, &r->terms.at[term], term));
    }
    r->locked |= 1u << r->reg[term];
    return r->reg[term];
}

/* All terms for the elements at rcx. */
static void body(run_t *r, int mode) {
    r->v.mode = mode, r->nslots = r->nscalars;
    for (int i = 0; i < 32; i++) r->held[i] = -1;
    for (int i = 0; i < r->terms.count; i++) r->reg[i] = r->slot[i] = -1;
    for (int i = 0; i < r->terms.count; i++) {
        const tgx_term *t = &r->terms.at[i];
        int16_t in[4];
        int regs[4], to = 0;
        if (t->op == TGX_T_DEAD || repeats(t)) continue;
        r->locked = 0;
        const int n = operands_of(t, in);
        for (int k = 0; k < n; k++) regs[k] = brought(r, in[k], i);
        for (int k = 0; k < n; k++)
            if (r->last[in[k]] == i) r->held[r->reg[in[k]]] = -1;
        if (t->op != TGX_T_STORE) {
            to = free_register(r, i);
            hold(r, to, i);
        }
        tgx_emit_term(&r->v, t, to, regs, memory_of(r, t, i));
    }
}

/* ---- the loop around them ----------------------------------------------------------------------------------------- */

static void find_pointers(run_t *r) {
    for (int i = 0; i < r->terms.count && r->npointers < POINTERS; i++) {
        const tgx_term *t = &r->terms.at[i];
        const int operand = t->op == TGX_T_STORE ? t->b : t->a;
        int known = t->op != TGX_T_LOAD && t->op != TGX_T_REPEAT && t->op != TGX_T_STORE;
        for (int k = 0; k < r->npointers; k++) known |= r->pointers[k] == operand;
        if (!known) r->pointers[r->npointers++] = (int16_t)operand;
    }
    r->pushed = r->npointers > 4 ? r->npointers - 4 : 0;
}

static void push(tgx_text *t, int pop, int reg) {
    if (reg & 8) tgx_byte(t, 0x41);
    tgx_byte(t, (pop ? 0x58 : 0x50) | (reg & 7));
}

/* What runs once: registers are kept, the stack is aligned, addresses and changing scalars are loaded. Returns where the
 * size of the frame is to be set. */
static size_t begin(run_t *r) {
    tgx_text *t = r->v.text;
    tgx_bytes(t, "\x55\x48\x89\xE5", 4);                            /* push rbp; mov rbp, rsp */
    for (int i = 4; i < 4 + r->pushed; i++) push(t, 0, pointer_registers[i]);
    tgx_bytes(t, "\x48\x81\xEC", 3);                                /* sub rsp, size */
    const size_t size = t->n;
    tgx_int32(t, 0);
    tgx_bytes(t, "\x48\x83\xE4\xC0", 4);                            /* and rsp, -64 */
    for (int i = 0; i < r->npointers; i++) tgx_integer(t, 1, 0x8B, pointer_registers[i], tgx_mem(TGX_RDI, 8 * r->pointers[i]));
    for (int i = 0; i < r->terms.count; i++) {
        const tgx_term *s = &r->terms.at[i];
        if (s->op != TGX_T_SCALAR) continue;
        const uint64_t address = (uint64_t)(uintptr_t)s->scalar;
        r->scalar_slot[i] = (int16_t)r->nscalars++;
        tgx_bytes(t, "\x48\xB8", 2);                                /* mov rax, address */
        tgx_int32(t, (int64_t)(address & 0xffffffffu)), tgx_int32(t, (int64_t)(address >> 32));
        tgx_vex(t, TGX_INS(1, 3, 0, s->wide ? 0x10 : 0x5A), 0, 0, 0, tgx_mem(TGX_RAX, 0));
        tgx_vex(t, TGX_INS(1, 2 + s->wide, 0, 0x11), 0, 0, 0, stack(r->scalar_slot[i]));
    }
    r->most = r->nscalars;
    return size;
}

static void end(run_t *r) {
    tgx_text *t = r->v.text;
    tgx_bytes(t, "\xC5\xF8\x77\x48\x8D\x65", 6);                    /* vzeroupper; lea rsp, [rbp - ..] */
    tgx_byte(t, -8 * r->pushed & 255);
    for (int i = 3 + r->pushed; i >= 4; i--) push(t, 1, pointer_registers[i]);
    tgx_bytes(t, "\x5D\xC3", 2);                                    /* pop rbp; ret */
}

static void loops(run_t *r) {
    tgx_text *t = r->v.text;
    tgx_bytes(t, "\x31\xC9\x48\x8D\x56", 5);                        /* xor ecx, ecx; lea rdx, [rsi - width] */
    tgx_byte(t, -r->width & 255);
    tgx_bytes(t, "\x48\x85\xD2", 3);                                /* test rdx, rdx */
    const size_t few = tgx_jump(t, 0x8), top = t->n;                /* js */
    body(r, TGX_FULL);
    tgx_bytes(t, "\x48\x83\xC1", 3);                                /* add rcx, width */
    tgx_byte(t, r->width);
    tgx_bytes(t, "\x48\x39\xD1", 3);                                /* cmp rcx, rdx */
    tgx_jump_back(t, 0xE, top);                                     /* jle */
    tgx_land(t, few);
    tgx_bytes(t, "\x48\x39\xF1", 3);                                /* cmp rcx, rsi */
    const size_t done = tgx_jump(t, 0xD), rest = t->n;              /* jge */
    if (t->evex) {
        tgx_bytes(t, "\x48\x29\xCE\xB8\xFF\xFF\xFF\xFF", 8);        /* sub rsi, rcx; mov eax, -1 */
        tgx_bytes(t, "\xC4\xE2\x48\xF5\xC0\xC5\xF8\x92\xC8", 9);    /* bzhi eax, eax, esi; kmovw k1, eax */
        body(r, TGX_MASKED);
    } else {
        body(r, TGX_SINGLE);
        tgx_bytes(t, "\x48\xFF\xC1\x48\x39\xF1", 6);                /* inc rcx; cmp rcx, rsi */
        tgx_jump_back(t, 0xC, rest);                                /* jl */
    }
    tgx_land(t, done);
}

ptrdiff_t tgx_emit_run(tgx_text *text, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues) {
    run_t *r = malloc(sizeof(run_t));
    if (!r) return -1;
    const size_t start = text->n;
    r->v.text = text, r->nscalars = r->npointers = r->terms.count = r->terms.nconstants = 0;
    int code = run_terms(&r->terms, steps, nsteps, values, nvalues), wide = 0, narrow = 0;
    if (!code) {
        find_lives(r);
        for (int i = 0; i < r->terms.count; i++)
            if (r->terms.at[i].op != TGX_T_DEAD) *(r->terms.at[i].wide ? &wide : &narrow) = 1;
        r->v.mixed = wide && narrow, r->width = (text->evex ? 16 : 8) >> wide;
        find_pointers(r);
        const size_t size = begin(r);
        loops(r);
        end(r);
        for (int i = 0; i < 4 && !text->failed; i++) text->bytes[size + i] = (uint8_t)(SLOT * r->most >> 8 * i);
        tgx_text_close(text);
        if (text->failed) code = -1;
    }
    free(r);
    return code ? -1 : (ptrdiff_t)start;
}
