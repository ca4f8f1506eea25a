/* See emit_vector.h. With AVX2 a comparison leaves its truth in a register, with AVX-512 in a mask register: what is not
 * used at once is brought to a register there too, so that truths are kept, spilled and combined in one way. The last
 * elements go one by one with AVX2, on whole registers of which one lane is loaded and stored. */
#include "emit_vector.h"

enum { MASK = 1, TEST = 2 };           /* mask registers: elements that are there; what was compared last */

static int length(const tgx_vectors *v, int wide) { return v->text->evex + (wide || !v->mixed); }
static int temporary(const tgx_vectors *v, int which) { return tgx_registers(v->text) + which; }

static void put(const tgx_vectors *v, uint32_t ins, int wide, int reg, int second, tgx_where place) {
    tgx_vector(v->text, ins, length(v, wide), reg, second, place, 0);
}

static void put_number(const tgx_vectors *v, uint32_t ins, int wide, int reg, int second, tgx_where place, int number) {
    put(v, ins, wide, reg, second, place);
    tgx_byte(v->text, number);
}

/* An instruction on packed floats or doubles of opcode map 1. */
static uint32_t packed(int wide, int opcode) { return TGX_INS(1, wide, wide, opcode); }

/* ---- truths ------------------------------------------------------------------------------------------------------- */

/* Predicates of vcmp, in the order of the terms: quiet, false for NaN but of `not equal`. */
static const uint8_t predicates[] = {0x00, 0x04, 0x11, 0x12, 0x1E, 0x1D};

/* Compare into mask register TEST or, with AVX2, into register `to`. */
static void compare(const tgx_vectors *v, int op, int wide, int to, int a, int b) {
    put_number(v, packed(wide, 0xC2), wide, v->text->evex ? TEST : to, a, tgx_reg(b), predicates[op - TGX_T_EQ]);
}

static void truth_from_mask(const tgx_vectors *v, int wide, int to) { put(v, TGX_INS(2, 2, wide, 0x38), wide, to, 0, tgx_reg(TEST)); }

/* Bytes, none of which need be 1, to lanes of all bits or none. */
static void load_truth(const tgx_vectors *v, int wide, int to, tgx_where place) {
    tgx_text *t = v->text;
    const int zero = temporary(v, 0), equal = wide ? TGX_INS(2, 1, 0, 0x29) : TGX_INS(1, 1, 0, 0x76);
    const uint32_t load = TGX_INS(2, 1, 0, 0x31 + wide);
    if (t->evex) {
        tgx_vector(t, load, length(v, wide), to, 0, place, v->mode == TGX_MASKED ? MASK : 0);
        put(v, TGX_INS(2, 1, wide, 0x27), wide, TEST, to, tgx_reg(to));
        truth_from_mask(v, wide, to);
        return;
    }
    if (v->mode == TGX_FULL) {
        put(v, load, wide, to, 0, place);
    } else {
        tgx_integer(t, 0, 0x1B6, TGX_RAX, place);
        tgx_vex(t, TGX_INS(1, 1, 0, 0x6E), 0, to, 0, tgx_reg(TGX_RAX));
    }
    put(v, packed(0, 0x57), wide, zero, zero, tgx_reg(zero));
    put(v, equal, wide, to, to, tgx_reg(zero));
    put(v, TGX_INS(1, 1, 0, 0x76), wide, zero, zero, tgx_reg(zero));
    put(v, packed(0, 0x57), wide, to, to, tgx_reg(zero));
}

/* Four wide lanes of AVX2 to the four narrow ones of half a register. */
static void halve(const tgx_vectors *v, int to, int from) {
    const int high = temporary(v, 1);
    tgx_vex(v->text, TGX_INS(3, 1, 0, 0x39), 1, from, 0, tgx_reg(high));
    tgx_byte(v->text, 1);
    tgx_vex(v->text, packed(0, 0xC6), 0, to, from, tgx_reg(high));
    tgx_byte(v->text, 0x88);
}

/* Lanes of all bits or none to bytes of 1 or 0. */
static void store_truth(const tgx_vectors *v, int wide, int from, tgx_where place) {
    tgx_text *t = v->text;
    const int bytes = temporary(v, 0), high = temporary(v, 1);
    const uint32_t shift = TGX_INS(1, 1, t->evex && wide, wide ? 0x73 : 0x72);
    if (v->mode == TGX_SINGLE) {
        tgx_vex(t, TGX_INS(1, 1, 0, 0x7E), 0, from, 0, tgx_reg(TGX_RAX));
        tgx_bytes(t, "\x83\xE0\x01", 3);                    /* and eax, 1 */
        tgx_integer(t, 0, 0x88, TGX_RAX, place);
        return;
    }
    put_number(v, shift, wide, 2, bytes, tgx_reg(from), wide ? 63 : 31);
    if (t->evex) {
        tgx_evex(t, TGX_INS(2, 2, 0, wide ? 0x32 : 0x31), length(v, wide), bytes, 0, place, v->mode == TGX_MASKED ? MASK : 0, 0);
        return;
    }
    if (wide) {
        halve(v, bytes, bytes);
        tgx_vex(t, TGX_INS(1, 1, 0, 0x6B), 0, bytes, bytes, tgx_reg(bytes));
    } else if (v->mixed) {
        tgx_vex(t, TGX_INS(1, 1, 0, 0x6B), 0, bytes, bytes, tgx_reg(bytes));
    } else {
        tgx_vex(t, TGX_INS(3, 1, 0, 0x39), 1, bytes, 0, tgx_reg(high));
        tgx_byte(t, 1);
        tgx_vex(t, TGX_INS(1, 1, 0, 0x6B), 0, bytes, bytes, tgx_reg(high));
    }
    tgx_vex(t, TGX_INS(1, 1, 0, 0x63), 0, bytes, bytes, tgx_reg(bytes));
    tgx_vex(t, TGX_INS(1, 1, 0, wide || v->mixed ? 0x7E : 0xD6), 0, bytes, 0, place);     /* four bytes or eight */
}

static void resize(const tgx_vectors *v, int wide, int to, int from) {
    if (wide) put(v, TGX_INS(2, 1, 0, 0x25), 1, to, 0, tgx_reg(from));
    else if (v->text->evex) put(v, TGX_INS(2, 2, 0, 0x35), 1, from, 0, tgx_reg(to));
    else halve(v, to, from);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

static void load_number(const tgx_vectors *v, int wide, int to, tgx_where place) {
    if (v->mode == TGX_SINGLE) tgx_vex(v->text, TGX_INS(1, 2 + wide, 0, 0x10), 0, to, 0, place);
    else tgx_vector(v->text, packed(wide, 0x10), length(v, wide), to, 0, place, v->mode == TGX_MASKED ? MASK : 0);
}

static void store_number(const tgx_vectors *v, int wide, int from, tgx_where place) {
    if (v->mode == TGX_SINGLE) tgx_vex(v->text, TGX_INS(1, 2 + wide, 0, 0x11), 0, from, 0, place);
    else if (v->text->evex) tgx_evex(v->text, packed(wide, 0x11), length(v, wide), from, 0, place, v->mode == TGX_MASKED ? MASK : 0, 0);
    else put(v, packed(wide, 0x11), wide, from, 0, place);
}

static void choose(const tgx_vectors *v, const tgx_term *t, int to, const int *in) {
    int truth = in[2];
    if (t->test) compare(v, t->test, t->wide, truth = temporary(v, 0), in[2], in[3]);
    else if (v->text->evex) put(v, TGX_INS(2, 2, t->wide, 0x39), t->wide, TEST, 0, tgx_reg(truth));
    if (v->text->evex) tgx_evex(v->text, TGX_INS(2, 1, t->wide, 0x65), length(v, t->wide), to, in[1], tgx_reg(in[0]), TEST, 0);
    else put_number(v, TGX_INS(3, 1, 0, 0x4A + t->wide), t->wide, to, in[1], tgx_reg(in[0]), truth << 4);
}

void tgx_emit_spill(const tgx_vectors *v, int store, int reg, tgx_where place) {
    tgx_vector(v->text, packed(0, 0x10 + store), v->text->evex + 1, reg, 0, place, 0);
}

void tgx_emit_term(const tgx_vectors *v, const tgx_term *t, int to, const int *in, tgx_where place) {
    static const uint8_t arithmetic[] = {0x58, 0x5C, 0x59, 0x5E}, bits[] = {0x54, 0x56, 0x57};
    static const uint8_t rounding[] = {9, 10, 11, 8};       /* down, up, to zero, to even; without the inexact flag */
    const int wide = t->wide;
    switch (t->op) {
        case TGX_T_LOAD:
            if (t->truth) load_truth(v, wide, to, place);
            else load_number(v, wide, to, place);
            break;
        case TGX_T_STORE:
            if (t->truth) store_truth(v, wide, in[0], place);
            else store_number(v, wide, in[0], place);
            break;
        case TGX_T_REPEAT: case TGX_T_CONST: case TGX_T_SCALAR:
            put(v, TGX_INS(2, 1, wide && v->text->evex, 0x18 + wide), wide, to, 0, place);
            break;
        case TGX_T_ADD: case TGX_T_SUB: case TGX_T_MUL: case TGX_T_DIV:
            put(v, packed(wide, arithmetic[t->op - TGX_T_ADD]), wide, to, in[0], tgx_reg(in[1]));
            break;
        case TGX_T_AND: case TGX_T_OR: case TGX_T_XOR:
            put(v, packed(wide, bits[t->op - TGX_T_AND]), wide, to, in[0], tgx_reg(in[1]));
            break;
        case TGX_T_SQRT: put(v, packed(wide, 0x51), wide, to, 0, tgx_reg(in[0])); break;
        case TGX_T_FLOOR: case TGX_T_CEIL: case TGX_T_TRUNC: case TGX_T_RINT:
            put_number(v, TGX_INS(3, 1, wide, 0x08 + wide), wide, to, 0, tgx_reg(in[0]), rounding[t->op - TGX_T_FLOOR]);
            break;
        case TGX_T_CHOOSE: choose(v, t, to, in); break;
        case TGX_T_CONVERT: put(v, packed(!wide, 0x5A), 1, to, 0, tgx_reg(in[0])); break;
        case TGX_T_RESIZE: resize(v, wide, to, in[0]); break;
        default:
            compare(v, t->op, wide, to, in[0], in[1]);
            if (v->text->evex) truth_from_mask(v, wide, to);
    }
}
