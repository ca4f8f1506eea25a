/* Encodes the x86-64 instructions that the emitter uses (emit.h): VEX for AVX2, EVEX for AVX-512, and a few on integers.
 *
 * Bytes grow in memory of their own and are copied to where they run when all are known; nothing in them depends on the
 * place. Constants stand behind the code.
 *
 * Rejected: an assembler library (the smallest well-kept one is larger than all kernels' C); templates compiled beforehand
 * and patched together (registers would have to be fixed at each seam, which loads and stores what this keeps). */
#ifndef TGX_EMIT_X86_H
#define TGX_EMIT_X86_H
#include <stddef.h>
#include <stdint.h>

enum { TGX_RAX, TGX_RCX, TGX_RDX, TGX_RBX, TGX_RSP, TGX_RBP, TGX_RSI, TGX_RDI, TGX_R8 };

/* An instruction: map of opcodes (1: 0F, 2: 0F38, 3: 0F3A), prefix (0 none, 1: 66, 2: F3, 3: F2), W, opcode. */
#define TGX_INS(map, prefix, w, opcode) ((uint32_t)((map) | (prefix) << 4 | (w) << 8 | (opcode) << 12))

enum tgx_where_kind { TGX_IN_REGISTER, TGX_IN_MEMORY, TGX_AT_CONSTANT };

/* What an instruction reads or writes besides its registers. */
typedef struct {
    uint8_t kind, base, indexed, scale;     /* scale: log2 of what rcx is multiplied by */
    int32_t number;                         /* of the register or constant; displacement in memory */
} tgx_where;

enum { TGX_TEXT_CONSTANTS = 192, TGX_TEXT_LINKS = 4096 };

typedef struct {
    uint8_t *bytes;
    size_t n, room;
    int evex;                               /* AVX-512; else AVX2 */
    int failed;                             /* no memory, or too much code */
    int nconstants, nlinks;
    uint64_t constants[TGX_TEXT_CONSTANTS];
    struct { uint32_t at; int32_t constant; } links[TGX_TEXT_LINKS];
} tgx_text;

static inline tgx_where tgx_reg(int r) { return (tgx_where){TGX_IN_REGISTER, 0, 0, 0, r}; }
static inline tgx_where tgx_mem(int base, int32_t offset) { return (tgx_where){TGX_IN_MEMORY, (uint8_t)base, 0, 0, offset}; }
static inline tgx_where tgx_element(int base, int scale) { return (tgx_where){TGX_IN_MEMORY, (uint8_t)base, 1, (uint8_t)scale, 0}; }

void tgx_byte(tgx_text *t, int byte);
void tgx_bytes(tgx_text *t, const char *bytes, size_t n);
void tgx_int32(tgx_text *t, int64_t value);

/* A vector instruction reg, second, place. length: 0, 1, 2 for 16, 32, 64 bytes. mask: 0, or the mask register that
 * leaves elements of memory alone; those of a register that is loaded become zero. */
void tgx_vector(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where place, int mask);
/* The same with VEX whatever the text is, and with an EVEX mask that merges. */
void tgx_vex(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where place);
void tgx_evex(tgx_text *t, uint32_t ins, int length, int reg, int second, tgx_where place, int mask, int zeroing);
/* An instruction on integers: rex.w or not, opcode (0F.. where it is above 255). */
void tgx_integer(tgx_text *t, int wide, int opcode, int reg, tgx_where place);

/* Where eight bytes of a constant will stand. */
tgx_where tgx_constant(tgx_text *t, uint64_t bits);

/* A jump whose target is known (returns 0), or will be set by tgx_land. condition: as in opcode 0F 8x; -1: always. */
size_t tgx_jump(tgx_text *t, int condition);
void tgx_jump_back(tgx_text *t, int condition, size_t target);
void tgx_land(tgx_text *t, size_t jump);

/* Put the constants behind the code so far. */
void tgx_text_close(tgx_text *t);
#endif
