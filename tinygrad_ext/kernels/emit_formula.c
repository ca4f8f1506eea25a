/* See emit_formula.h. A stack machine whose values are terms; what follows from constants alone is decided here, so that
 * of an op's cases only the one that holds is emitted. Numbers are not added or multiplied here: the machine that
 * rounds them is the one that runs. */
#include "emit_formula.h"
#include <math.h>

enum { DEPTH = 32 };

static uint64_t bits_of(double x, int wide) {
    uint64_t bits = 0;
    float single = (float)x;
    if (wide) memcpy(&bits, &x, 8);
    else memcpy(&bits, &single, 4);
    return bits;
}

int tgx_term_add(tgx_terms *t, tgx_term term) {
    if (t->count == TGX_TERMS) return TGX_REFUSED;
    t->at[t->count] = term;
    return t->count++;
}

static int add(tgx_terms *t, int op, int wide, int truth, int a, int b) {
    const tgx_term made = {.op = (uint8_t)op, .wide = (uint8_t)wide, .truth = (uint8_t)truth, .a = (int16_t)a, .b = (int16_t)b};
    return tgx_term_add(t, made);
}

int tgx_term_constant(tgx_terms *t, int wide, uint64_t bits) {
    for (int i = 0; i < t->nconstants; i++)
        if (t->at[t->constants[i]].bits == bits && t->at[t->constants[i]].wide == wide) return t->constants[i];
    int made = tgx_term_add(t, (tgx_term){.op = TGX_T_CONST, .wide = (uint8_t)wide, .bits = bits});
    if (made >= 0 && t->nconstants < TGX_CONSTANTS) t->constants[t->nconstants++] = (int16_t)made;
    return made;
}

int tgx_term_number(tgx_terms *t, int m) {
    const int wide = t->at[m].wide, one = tgx_term_constant(t, wide, bits_of(1, wide));
    return one < 0 ? one : add(t, TGX_T_AND, wide, 0, m, one);
}

int tgx_term_truth(tgx_terms *t, int a) {
    const int wide = t->at[a].wide, zero = tgx_term_constant(t, wide, 0);
    return zero < 0 ? zero : add(t, TGX_T_NE, wide, 1, a, zero);
}

int tgx_term_sized(tgx_terms *t, int m, int wide) {
    return t->at[m].wide == wide ? m : add(t, TGX_T_RESIZE, wide, 1, m, 0);
}

/* A value of the stack: a term, a number that is no term yet, a truth that is known, or what cannot be emitted. */
typedef struct {
    enum { TERM, NUMBER, KNOWN, NONE } kind;
    int term;
    double number;
} value_t;

typedef struct {
    tgx_terms *t;
    int wide, top;
    value_t stack[DEPTH];
} machine_t;

static value_t of_term(int term) { return term < 0 ? (value_t){NONE, 0, 0} : (value_t){TERM, term, 0}; }

static int is_truth(const machine_t *m, value_t v) { return v.kind == KNOWN || (v.kind == TERM && m->t->at[v.term].truth); }

/* The term of a value as a number; TGX_REFUSED. */
static int numeric(machine_t *m, value_t v) {
    if (v.kind == NONE) return TGX_REFUSED;
    if (v.kind != TERM) return tgx_term_constant(m->t, m->wide, bits_of(v.number, m->wide));
    return is_truth(m, v) ? tgx_term_number(m->t, v.term) : v.term;
}

static value_t truth(machine_t *m, value_t v) {
    if (v.kind == NUMBER) return (value_t){KNOWN, 0, v.number != 0};
    return v.kind != TERM || is_truth(m, v) ? v : of_term(tgx_term_truth(m->t, v.term));
}

static value_t bitwise(machine_t *m, int op, value_t v, uint64_t narrow, uint64_t wide) {
    const int a = numeric(m, v), b = tgx_term_constant(m->t, m->wide, m->wide ? wide : narrow);
    return a < 0 || b < 0 ? of_term(TGX_REFUSED) : of_term(add(m->t, op, m->wide, 0, a, b));
}

static value_t unary(machine_t *m, int code, value_t v) {
    if (code == TGX_F_NOT) {
        v = truth(m, v);
        if (v.kind != TERM) return (value_t){v.kind, 0, !v.number};
        const int ones = tgx_term_constant(m->t, m->wide, m->wide ? ~(uint64_t)0 : 0xffffffffu);
        return ones < 0 ? of_term(ones) : of_term(add(m->t, TGX_T_XOR, m->wide, 1, v.term, ones));
    }
    if (code == TGX_F_NEG)
        return v.kind == NUMBER ? (value_t){NUMBER, 0, -v.number} : bitwise(m, TGX_T_XOR, v, 0x80000000u, (uint64_t)1 << 63);
    if (code == TGX_F_ABS)
        return v.kind == NUMBER ? (value_t){NUMBER, 0, fabs(v.number)} : bitwise(m, TGX_T_AND, v, 0x7fffffffu, ~(uint64_t)0 >> 1);
    const int a = numeric(m, v);
    return a < 0 ? of_term(a) : of_term(add(m->t, code - TGX_F_SQRT + TGX_T_SQRT, m->wide, 0, a, 0));
}

static value_t logical(machine_t *m, int code, value_t a, value_t b) {
    a = truth(m, a), b = truth(m, b);
    if (a.kind == TERM && b.kind == TERM) return of_term(add(m->t, code - TGX_F_AND + TGX_T_AND, m->wide, 1, a.term, b.term));
    if (a.kind == TERM) return logical(m, code, b, a);
    if (a.kind == NONE) return a;
    if (code == TGX_F_AND) return a.number ? b : a;
    if (code == TGX_F_OR) return a.number ? a : b;
    return a.number ? unary(m, TGX_F_NOT, b) : b;
}

static int compare(int code, double a, double b) {
    switch (code) {
        case TGX_F_EQ: return a == b;
        case TGX_F_NE: return a != b;
        case TGX_F_LT: return a < b;
        case TGX_F_LE: return a <= b;
        case TGX_F_GT: return a > b;
        default: return a >= b;
    }
}

static value_t binary(machine_t *m, int code, value_t a, value_t b) {
    if (code >= TGX_F_AND) return logical(m, code, a, b);
    if (code >= TGX_F_EQ && a.kind == NUMBER && b.kind == NUMBER) return (value_t){KNOWN, 0, compare(code, a.number, b.number)};
    if (code == TGX_F_COPYSIGN) {
        a = bitwise(m, TGX_T_AND, a, 0x7fffffffu, ~(uint64_t)0 >> 1);
        b = bitwise(m, TGX_T_AND, b, 0x80000000u, (uint64_t)1 << 63);
    }
    const int x = numeric(m, a), y = numeric(m, b);
    if (x < 0 || y < 0) return of_term(TGX_REFUSED);
    if (code == TGX_F_COPYSIGN) return of_term(add(m->t, TGX_T_OR, m->wide, 0, x, y));
    const int compares = code >= TGX_F_EQ;
    return of_term(add(m->t, compares ? code - TGX_F_EQ + TGX_T_EQ : code - TGX_F_ADD + TGX_T_ADD, m->wide, compares, x, y));
}

/* A comparison is done again by the choice, which needs no truth in a register for it. */
static value_t choose(machine_t *m, value_t condition, value_t a, value_t b) {
    condition = truth(m, condition);
    if (condition.kind == KNOWN) return condition.number ? a : b;
    const int x = numeric(m, a), y = numeric(m, b);
    if (x < 0 || y < 0 || condition.kind == NONE) return of_term(TGX_REFUSED);
    const tgx_term c = m->t->at[condition.term];
    tgx_term made = {.op = TGX_T_CHOOSE, .wide = (uint8_t)m->wide, .a = (int16_t)x, .b = (int16_t)y, .c = (int16_t)condition.term};
    if (c.op >= TGX_T_EQ && c.op <= TGX_T_GE) made.test = c.op, made.c = c.a, made.d = c.b;
    return of_term(tgx_term_add(m->t, made));
}

static value_t scalar(machine_t *m, const tgx_scalar *aux, int varies) {
    if (!varies) return (value_t){NUMBER, 0, m->wide ? aux->f : (double)(float)aux->f};
    return of_term(tgx_term_add(m->t, (tgx_term){.op = TGX_T_SCALAR, .wide = (uint8_t)m->wide, .scalar = &aux->f}));
}

int tgx_formula_terms(tgx_terms *t, const tgx_formula *f, int wide, const int16_t *operands, const tgx_scalar *aux, uint32_t varying) {
    machine_t m = {.t = t, .wide = wide};
    for (const uint8_t *c = f->codes; *c; c++) {
        value_t v;
        if (m.top == DEPTH) return TGX_REFUSED;
        if (*c <= TGX_F_Z) v = of_term(operands[*c - TGX_F_X]);
        else if (*c == TGX_F_NUMBER) v = (value_t){NUMBER, 0, wide ? f->numbers[c[1]] : (double)(float)f->numbers[c[1]]}, c++;
        else if (*c == TGX_F_SCALAR) c++, v = scalar(&m, &aux[*c], varying >> *c & 1);
        else if (*c == TGX_F_GIVEN) c++, v = (value_t){KNOWN, 0, aux[*c].given != 0};
        else if (*c == TGX_F_INTEGER) c++, v = varying >> *c & 1 ? of_term(TGX_REFUSED) : (value_t){NUMBER, 0, (double)aux[*c].i};
        else if (*c == TGX_F_REFUSED) v = of_term(TGX_REFUSED);
        else if (*c == TGX_F_CHOOSE) m.top -= 3, v = choose(&m, m.stack[m.top], m.stack[m.top + 1], m.stack[m.top + 2]);
        else if (*c == TGX_F_NOT || (*c >= TGX_F_SQRT && *c <= TGX_F_ABS)) m.top--, v = unary(&m, *c, m.stack[m.top]);
        else m.top -= 2, v = binary(&m, *c, m.stack[m.top], m.stack[m.top + 1]);
        m.stack[m.top++] = v;
    }
    const value_t v = m.stack[0];
    if (v.kind == KNOWN) return TGX_REFUSED;
    return is_truth(&m, v) ? v.term : numeric(&m, v);
}
