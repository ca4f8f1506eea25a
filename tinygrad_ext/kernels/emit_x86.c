/* See emit_x86.h. Prefixes always in their longest form: which is shorter does not show in time. */
#include "emit_x86.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };                /* bytes of code in a plan */

void tgx_byte(tgx_text *t, int byte) {
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 2048;
        uint8_t *more = t->failed || room > MOST ? NULL : realloc(t->bytes, room);
        if (!more) {
            t->failed = 1, t->n = 0;    /* what is written from now on is for nothing */
            if (!t->room) return;
        } else t->bytes = more, t->room = room;
    }
    t->bytes[t->n++] = (uint8_t)byte;
}

void tgx_bytes(tgx_text *t, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) tgx_byte(t, bytes[i]);
}

void tgx_int32(tgx_text *t, int64_t value) {
    for (int i = 0; i < 4; i++) tgx_byte(t, (int)(value >> 8 * i & 255));
}

static void set_int32(tgx_text *t, size_t at, int64_t value) {
    for (int i = 0; i < 4 && at + 4 <= t->n; i++) t->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

/* ModRM and what follows it: a register, [base + disp32], [base + rcx * scale], or [rip + disp32]. */
static void place_bytes(tgx_text *t, int reg, tgx_where p) {
    const int r = (reg & 7) << 3;
    if (p.kind == TGX_IN_REGISTER) {
        tgx_byte(t, 0xC0 | r | (p.number & 7));
    } else if (p.kind == TGX_AT_CONSTANT) {
        tgx_byte(t, 0x05 | r);
        if (t->nlinks == TGX_TEXT_LINKS) t->failed = 1;
        else t->links[t->nlinks].at = (uint32_t)t->n, t->links[t->nlinks++].constant = p.number;
        tgx_int32(t, 0);
    } else {                            /* always with a second byte: rsp and r12 have no other form */
        tgx_byte(t, (p.indexed ? 0x04 : 0x84) | r | ((p.base & 7) == 5 && p.indexed ? 0x40 : 0));
        tgx_byte(t, (p.scale << 6) | (p.indexed ? TGX_RCX : 4) << 3 | (p.base & 7));
        if (!p.indexed) tgx_int32(t, p.number);
        else if ((p.base & 7) == 5) tgx_byte(t, 0);
    }
}

/* The bits of a prefix that extend the place: those of an index are never needed. */
static int base_bit(tgx_where p) { return p.kind == TGX_IN_REGISTER ? p.number >> 3 & 1 : p.kind == TGX_IN_MEMORY ? p.base >> 3 & 1 : 0; }

void tgx_vex(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where p) {
    const int map = ins & 15, prefix = ins >> 4 & 15, w = ins >> 8 & 1;
    tgx_byte(t, 0xC4);
    tgx_byte(t, (reg & 8 ? 0 : 0x80) | 0x40 | (base_bit(p) ? 0 : 0x20) | map);
    tgx_byte(t, w << 7 | (~second & 15) << 3 | length << 2 | prefix);
    tgx_byte(t, (int)(ins >> 12));
    place_bytes(t, reg, p);
}

void tgx_evex(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where p, int mask, int zeroing) {
    const int map = ins & 15, prefix = ins >> 4 & 15, w = ins >> 8 & 1;
    const int fourth = p.kind == TGX_IN_REGISTER && p.number & 16;
    tgx_byte(t, 0x62);
    tgx_byte(t, (reg & 8 ? 0 : 0x80) | (fourth ? 0 : 0x40) | (base_bit(p) ? 0 : 0x20) | (reg & 16 ? 0 : 0x10) | map);
    tgx_byte(t, w << 7 | (~second & 15) << 3 | 4 | prefix);
    tgx_byte(t, zeroing << 7 | length << 5 | (second & 16 ? 0 : 8) | mask);
    tgx_byte(t, (int)(ins >> 12));
    place_bytes(t, reg, p);
}

void tgx_vector(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where p, int mask) {
    if (t->evex) tgx_evex(t, ins, length, reg, second, p, mask, mask && p.kind != TGX_IN_REGISTER);
    else tgx_vex(t, ins, length, reg, second, p);
}

void tgx_integer(tgx_text *t, int wide, int opcode, int reg, tgx_where p) {
    tgx_byte(t, 0x40 | wide << 3 | (reg & 8 ? 4 : 0) | base_bit(p));
    if (opcode > 255) tgx_byte(t, 0x0F);
    tgx_byte(t, opcode & 255);
    place_bytes(t, reg, p);
}

tgx_where tgx_constant(tgx_text *t, uint64_t bits) {
    int k = 0;
    while (k < t->nconstants && t->constants[k] != bits) k++;
    if (k == TGX_TEXT_CONSTANTS) t->failed = 1, k = 0;
    else if (k == t->nconstants) t->constants[t->nconstants++] = bits;
    return (tgx_where){TGX_AT_CONSTANT, 0, 0, 0, k};
}

size_t tgx_jump(tgx_text *t, int condition) {
    if (condition < 0) tgx_byte(t, 0xE9);
    else tgx_byte(t, 0x0F), tgx_byte(t, 0x80 | condition);
    tgx_int32(t, 0);
    return t->n;
}

void tgx_jump_back(tgx_text *t, int condition, size_t target) {
    const size_t from = tgx_jump(t, condition);
    set_int32(t, from - 4, (int64_t)target - (int64_t)from);
}

void tgx_land(tgx_text *t, size_t jump) { set_int32(t, jump - 4, (int64_t)t->n - (int64_t)jump); }

void tgx_text_close(tgx_text *t) {
    while (t->n & 15) tgx_byte(t, 0xCC);
    for (int i = 0; i < t->nlinks; i++) {
        const size_t at = t->links[i].at;
        set_int32(t, at, (int64_t)(t->n + 8 * (size_t)t->links[i].constant) - (int64_t)(at + 4));
    }
    for (int k = 0; k < t->nconstants; k++)
        for (int i = 0; i < 8; i++) tgx_byte(t, (int)(t->constants[k] >> 8 * i & 255));
    while (t->n & 63) tgx_byte(t, 0xCC);
    t->nconstants = t->nlinks = 0;
}
