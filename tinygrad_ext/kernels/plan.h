/* A plan: a graph made ready to run for inputs of known dtypes, sizes and strides. A flat array of instructions over
 * memory laid out before; nothing in it is an object of Python, and running it allocates nothing.
 *
 * Whoever makes a plan fills these structs and keeps their memory (graph/routine.pyx does). What differs from call to call is a row of
 * base addresses: of the inputs, and of memory for the results, which the caller finds anew for each call. Patches say
 * which pointers follow from them; all others point into the plan's arena and stay.
 *
 * A group of pointwise loops runs tile by tile: all loops over the first elements, then all over the next, so that what
 * one makes for another stays in a scratch of the size of the first cache and is never written to memory. The loops are
 * those of eager mode, each element is computed alone, hence the same bits.
 *
 * Rejected: virtual registers of a vector's width with an interpreter of single operations (five times slower than loops
 * over a tile: the branch for each operation is not paid for by eight elements); static memory for results (a caller that
 * keeps one finds it overwritten by the next call); an instruction that makes its own threads for a whole run of tiles
 * and raw kernels (raw kernels cut their work themselves, by shape alone, which keeps their bits). */
#ifndef TGX_PLAN_H
#define TGX_PLAN_H
#include "isa.h"
#include "program.h"
#include "stacks.h"
#include "tgx.h"

enum {
    TGX_GROUP_OPERANDS = 128,      /* that a group may have */
    TGX_TILE_SCRATCH = 32768,      /* bytes: two thirds to all of a first cache */
    TGX_LOOK = 1 << 22,            /* elements between two looks for an interrupt: some milliseconds */
    TGX_LINE = 64,                 /* bytes of a line of the cache */
    TGX_FEW_WORDS = 16,            /* of four bytes: a vector */
};

enum tgx_plan_code {
    TGX_PLAN_RAW,                  /* a kernel pair's run */
    TGX_PLAN_TILE,                 /* a group of pointwise loops */
    TGX_PLAN_SMALL,                /* one of a few elements: its scratch is the plan's, so all pointers stand still */
    TGX_PLAN_COPY,                 /* with conversion and broadcasting */
    TGX_PLAN_ZERO,                 /* fill with zeros, row-major */
    TGX_PLAN_MOVE,                 /* bytes: the state of a generator that is drawn from next */
};

typedef struct tgx_operand tgx_operand;
typedef void (*tgx_spread)(uint32_t *to, const tgx_operand *o);
void tgx_spread_base(uint32_t *to, const tgx_operand *o);
void tgx_spread_avx2(uint32_t *to, const tgx_operand *o);
void tgx_spread_avx512(uint32_t *to, const tgx_operand *o);

/* Where the elements of a group's operand lie: in memory with one step between neighbours, in the scratch, or somewhere
 * with rank dimensions from where each tile is first brought into the scratch. */
struct tgx_operand {
    ptrdiff_t step;                /* bytes between neighbours, in the order in which the group runs */
    int32_t scratch;               /* bytes from its start; -1: the loops read and write where the elements lie */
    int32_t size;                  /* bytes of an element */
    int32_t rank;                  /* 0, or of what is brought in; outermost first */
    int64_t *sizes;
    ptrdiff_t *strides;            /* bytes */
    const char *from;              /* where that lies */
    tgx_spread spread;             /* of a small group, where all of that is a few words: brings it, or NULL */
    const uint8_t *index;          /* word of `from` for each word of the group, up to whole vectors */
    int32_t reach, words;          /* how many those are, how many it makes */
};

/* Machine code in place of several loops (emit.h): elements 0 .. n of the operands that begin at these addresses. */
typedef void (*tgx_emitted)(char *const *at, int64_t n);

typedef struct {
    tgx_loop loop;
    const tgx_scalar *aux;
    tgx_emitted code;              /* or NULL; it knows its operands */
    int16_t n;                     /* operands of a loop: the result, then what is read */
    int16_t operand[TGX_MAX_OPERANDS];
    ptrdiff_t strides[TGX_MAX_OPERANDS];
} tgx_tile_op;

typedef struct {
    int64_t count;                 /* elements */
    int32_t tile;                  /* elements at a time */
    int32_t nops, noperands;
    int32_t nbrought;              /* of a small group: operands that are brought in */
    int16_t *brought;
    tgx_tile_op *ops;
    tgx_operand *operands;
    char **at;                     /* of each operand where its elements begin; the scratch of a small group included */
} tgx_tile;

typedef struct {
    uint8_t code;
    int64_t work;                  /* elements, for how often interrupts are looked for */
    int64_t nanoseconds;           /* when the plan is profiled: all runs together */
    union {
        struct { const tgx_kernel *kernel; tgx_call *call; } raw;
        tgx_tile *tile;
        struct { const tgx_tensor *to, *from; } copy;
        struct { void *to; const void *from; size_t bytes; } move;
    };
} tgx_instruction;

/* A pointer that follows from a base of the call. */
typedef struct {
    char **where;
    int64_t offset;
    int32_t base;
} tgx_patch;

typedef struct {
    const tgx_services *services;
    tgx_instruction *instructions;
    tgx_patch *patches;
    char **bases;                  /* to be set before each run */
    int (*interrupted)(void);      /* whether to stop; asked between instructions of long plans; or NULL */
    const tgx_code *program;       /* the order in which instructions run; or NULL: one after the other */
    tgx_number *numbers;           /* registers */
    tgx_cell **places;
    tgx_window **windows;
    tgx_row **rows;
    tgx_pile **piles;              /* to be set before each run */
    int (*grow)(tgx_pile *pile);   /* finds room for more rows: 0, or TGX_NO_MEMORY */
    int (*call)(void *context, int which);  /* functions of whoever made the plan */
    void *context;
    int64_t since;                 /* elements since the last look for an interrupt */
    int32_t fuel;                  /* jumps back until the next */
    int32_t ninstructions, npatches, nbases;
    int32_t profiled;
    void (*seen)(void *watcher, int32_t which, int64_t begin, int64_t end);  /* an instruction has run, of a profiled plan; or NULL */
    void *watcher;
    int32_t at;                    /* after an error: the instruction, or -1 */
} tgx_plan;

/* 0, or the code of the loop or kernel that failed: `at` says where; TGX_INTERRUPTED. */
int tgx_plan_run(tgx_plan *plan);

/* The function for `spread` on this machine. */
static inline tgx_spread tgx_spread_here(void) {
    return TGX_PICK(tgx_spread);
}

/* Its parts: one instruction, a small group, a look for an interrupt where one is due, the program. */
int tgx_instruction_run(tgx_plan *plan, int32_t which);
int tgx_small_run(const tgx_tile *g);
int tgx_plan_look(tgx_plan *plan);
int tgx_program_run(tgx_plan *plan);
#endif
