/* LAPACK as kernels call it, and the loop over a batch of matrices.
 *
 * The routines are those of the BLAS that was loaded, called as Fortran's: every argument is a pointer, matrices stand column
 * by column, and behind the arguments come the lengths of texts. An integer is handed over as the address of one of 64
 * bits, of which a library with 32 reads the lower half (the processors that this runs on are little endian); what a
 * routine answers is read with tgx_lapack_int.
 *
 * A batch is cut by its shape alone, and LAPACK runs on one thread, so results do not depend on the number of threads.
 * Rejected: LAPACKE, which copies matrices in memory of its own, and is not in every library. */
#ifndef TGX_LAPACK_H
#define TGX_LAPACK_H
#include "blas.h"
#include "tgx.h"

enum tgx_routine { TGX_POTRF, TGX_GETRF, TGX_GETRI, TGX_GETRS, TGX_TRSM, TGX_GEQRF, TGX_ORGQR, TGX_ORMQR, TGX_GESDD, TGX_SYEVD,
                   TGX_GEEV, TGX_SYTRF, TGX_SYTRS, TGX_HETRF, TGX_HETRS, TGX_GELSY, TGX_GELSD, TGX_GELSS, TGX_GELS, TGX_TRSV,
                   TGX_GEQP3, TGX_LAQPS, TGX_LAIC1, TGX_TZRZF, TGX_ORMRZ, TGX_POTRI, TGX_ROUTINES };

/* A matrix is not of the kind that is needed: behind the kinds of tgx.h, which most kernels share. */
enum { TGX_LINALG_ERROR = TGX_MEMORY_ERROR + 1, TGX_DTYPE_REFUSED /* NotImplementedError, also where a wider dtype would do */ };

#define TGX_P1 const void *
#define TGX_P2 TGX_P1, const void *
#define TGX_P3 TGX_P2, const void *
#define TGX_P4 TGX_P3, const void *
#define TGX_P5 TGX_P4, const void *
#define TGX_P6 TGX_P5, const void *
#define TGX_P7 TGX_P6, const void *
#define TGX_P8 TGX_P7, const void *
#define TGX_P9 TGX_P8, const void *
#define TGX_P10 TGX_P9, const void *
#define TGX_P11 TGX_P10, const void *
#define TGX_P12 TGX_P11, const void *
#define TGX_P13 TGX_P12, const void *
#define TGX_P14 TGX_P13, const void *
#define TGX_P15 TGX_P14, const void *
#define TGX_P16 TGX_P15, const void *
/* Call a routine with n pointers, lengths of texts among them. */
#define TGX_CALL(f, n, ...) ((void (*)(TGX_P##n))(f))(__VA_ARGS__)
#define TGX_LENGTH ((const void *)1)   /* of a text of one letter */

/* A kernel over matrices in the last two dimensions. */
typedef struct tgx_matrices {
    tgx_call *c;
    const tgx_blas *blas;
    void (*one)(struct tgx_matrices *job, int64_t i, char *scratch);   /* what is done with matrix i */
    void (*some)(struct tgx_matrices *job, int64_t i, int64_t count, char *scratch);   /* or with so many from i on, by `lanes` */
    const struct tgx_lane_ops *lanes;  /* see lanes.h; NULL: one by one */
    int64_t count, parts;              /* matrices, pieces that the batch is cut into */
    int64_t bytes;                     /* scratch of a piece */
    int dtype;
    int64_t m, n, k;                   /* sizes, for `one` */
    void *more;                        /* what else it needs */
} tgx_matrices;

/* Refuses what is no matrix (named in messages) of floating or complex numbers in 32 or 64 bits; and, if square, others. */
int tgx_matrix_check(tgx_call *c, const tgx_tensor *t, const char *title, const char *which, int square);
/* Of shape: lets the kernel have a routine, NULL with an error where there is none. On meta some address. */
void *tgx_routine_needed(tgx_call *c, const char *title, int routine, int dtype);
/* How many matrices a tensor holds, and how they are cut: `work` is about the multiplications for one. */
int64_t tgx_matrix_count(const tgx_tensor *t);
/* Sizes of the batch in which matrices of both stand, which broadcast; its rank or TGX_FAILED. */
int tgx_matrix_batch(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, int64_t *sizes, const char *title);
int tgx_matrix_same_dtype(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, const char *title);
int64_t tgx_matrix_parts(int64_t count, double work);
/* Of shape: scratch for so many pieces of so many bytes, rounded up. Returns the bytes of a piece. */
int64_t tgx_matrix_scratch(tgx_call *c, int64_t parts, int64_t bytes);
int tgx_matrix_run(tgx_matrices *job);

/* to (columns x rows) = from (rows x columns) turned; elements of `size` bytes, rows so many elements apart. */
void tgx_turn(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows, int64_t columns, int size);

static inline int64_t tgx_lapack_int(const tgx_blas *blas, const void *p, int64_t i) {
    return blas->wide ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}
static inline void tgx_lapack_put(const tgx_blas *blas, void *p, int64_t i, int64_t value) {
    if (blas->wide) ((int64_t *)p)[i] = value;
    else ((int32_t *)p)[i] = (int32_t)value;
}
static inline int64_t tgx_round64(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
/* Steps between columns of a matrix of so many rows: where these are a multiple of 512 bytes, all columns begin in few places of a
 * cache, and a line more between them spares LAPACK a tenth to a third of its time. */
static inline int64_t tgx_apart(int64_t rows, int size) { return rows > 64 && rows * size % 512 == 0 ? rows + 64 / size : rows; }
/* The first number of a workspace, in which a routine says how long it wants it. */
int64_t tgx_work_wanted(const void *work, int dtype);
static inline int tgx_real_of(int dtype) { return dtype == TGX_C64 ? TGX_F32 : dtype == TGX_C128 ? TGX_F64 : dtype; }
/* The result k: matrices in the batch of t. */
void tgx_matrix_result(tgx_call *c, int k, const tgx_tensor *t, int64_t rows, int64_t columns, int dtype);
/* The result k: a vector for each matrix of t; one number for n = -1. */
void tgx_batch_result(tgx_call *c, int k, const tgx_tensor *t, int64_t n, int dtype);
/* The first matrix whose number in `info` is not 0, or -1; "(Batch element 3): " in words, empty where there is no batch. */
int64_t tgx_first_failed(const tgx_tensor *info);
/* LinAlgError: no inverse, because of a diagonal element, counted from 1. */
int tgx_fail_zero(tgx_call *c, const char *title, const char *words, int64_t which);
/* The same for the first zero on the diagonals of triangular matrices, which are dense or by columns. */
int tgx_refuse_zeros(tgx_call *c, const tgx_tensor *a, const char *title);
const char *tgx_batch_words(const tgx_tensor *info, int64_t i, char room[48]);
#endif
