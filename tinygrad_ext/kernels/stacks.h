/* Stacks in plans: what a loop keeps of each turn, for the loop that goes back over it.
 *
 * A stack is the number of its last row, -1 the empty one; each row begins with the number of the row before, so a stack
 * never changes: who pushes to it has another, who pops has the one before, and any number may share rows. Rows of one
 * form lie in a pile, which grows by chunks and moves nothing, hence what is popped is read where it lies. A pile belongs
 * to the run that pushes to it and to the stacks which that returns; runs that only pop may share it.
 *
 * Rejected: one memory that is moved when it is full (pointers into it would have to be found anew, and a stack of half
 * the machine's memory could not grow); a height alone without the row before (an archive may push twice to one stack). */
#ifndef TGX_STACKS_H
#define TGX_STACKS_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char **chunks;
    int64_t count, room;           /* rows there are, and that the chunks can hold */
    size_t row_bytes;
    int32_t shift;                 /* a chunk holds 1 << shift rows */
    void *owner;
} tgx_pile;

typedef struct {
    int64_t offset;                /* in a row */
    int32_t slot;                  /* register */
    int32_t size;                  /* bytes of it that are kept */
} tgx_row_number;

typedef struct {
    int64_t offset;
    size_t bytes;                  /* of a push: from data */
    const char *data;
    char **where;                  /* of a pop: this points to the place in the row from then on */
} tgx_row_part;

/* What one push or one pop does with a row. */
typedef struct {
    int32_t pile, nnumbers, nparts;
    tgx_row_number *numbers;
    tgx_row_part *parts;
} tgx_row;

static inline char *tgx_row_of(const tgx_pile *pile, int64_t which) {
    return pile->chunks[which >> pile->shift] + (size_t)(which & ((INT64_C(1) << pile->shift) - 1)) * pile->row_bytes;
}
#endif
