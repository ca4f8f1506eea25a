/* What kernels over matrices share. See lapack.h. */
#include "lapack.h"
#include "casts.h"
#include "lanes.h"
#include <stdio.h>

enum { PIECES = 16 };

int tgx_matrix_check(tgx_call *c, const tgx_tensor *t, const char *title, const char *which, int square) {
    if (t->rank < 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: The input tensor %s must have at least 2 dimensions. It has shape %s; give it more with unsqueeze",
                        title, which, tgx_shape_text(t));
    if (t->dtype == TGX_F16 || t->dtype == TGX_BF16)
        return tgx_fail(c, TGX_DTYPE_REFUSED, "\"%s\" not implemented for '%s': convert the input with .float()", title,
                        tgx_dtype_title(t->dtype));
    if (t->dtype != TGX_F32 && t->dtype != TGX_F64 && t->dtype != TGX_C64 && t->dtype != TGX_C128)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Expected a floating point or complex tensor as input. Got %s: convert it with .float()",
                        title, tgx_dtype_title(t->dtype));
    if (square && t->sizes[t->rank - 1] != t->sizes[t->rank - 2])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices", title, which,
                        (long long)t->sizes[t->rank - 2], (long long)t->sizes[t->rank - 1]);
    return 0;
}

void *tgx_routine_needed(tgx_call *c, const char *title, int routine, int dtype) {
    const tgx_blas *blas;
    if (c->meta) return c;
    if (!(blas = c->services->blas())) return NULL;
    void *found = blas->routine(routine, dtype);
    if (!found)
        tgx_fail(c, TGX_RUNTIME_ERROR, "%s: needs LAPACK, which the BLAS in use does not bring; install NumPy from a wheel, whose "
                 "OpenBLAS has it, and leave TINYGRAD_EXT_BLAS unset", title);
    return found;
}

int tgx_matrix_batch(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, int64_t *sizes, const char *title) {
    tgx_tensor one = *a, two = *b;
    int rank = 0;
    one.rank -= 2, two.rank -= 2;
    if (tgx_broadcast(sizes, &rank, &one) || tgx_broadcast(sizes, &rank, &two))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: the dimensions in front of the matrices must broadcast, but the tensors have the shapes %s and %s",
                        title, tgx_shape_text(a), tgx_shape_text(b));
    return rank;
}

int tgx_matrix_same_dtype(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, const char *title) {
    if (a->dtype == b->dtype) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead: convert one of "
                    "them with .to(dtype)", title, tgx_dtype_title(a->dtype), tgx_dtype_title(b->dtype));
}

int64_t tgx_matrix_count(const tgx_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank - 2; i++) n *= t->sizes[i];
    return n;
}

int64_t tgx_matrix_parts(int64_t count, double work) {
    int64_t most = (int64_t)((double)count * (work + 100) / 50000) + 1;
    most = most < PIECES ? most : PIECES;
    return most < count ? most : count ? count : 1;
}

int64_t tgx_matrix_scratch(tgx_call *c, int64_t parts, int64_t bytes) {
    bytes = tgx_round64(bytes);
    c->scratch_bytes = parts * bytes;
    c->notes[0] = parts, c->notes[1] = bytes;
    c->work = TGX_SMALL + 1; /* a matrix is more work than its elements */
    return bytes;
}

static int piece(void *context, ptrdiff_t lo, ptrdiff_t hi) {
    tgx_matrices *job = context;
    int inside = job->c->services->mark_region(1), entered = job->blas->enter();
    for (ptrdiff_t p = lo; p < hi; p++) {
        int64_t i = job->count * p / job->parts, end = job->count * (p + 1) / job->parts;
        char *scratch = (char *)job->c->scratch + p * job->bytes;
        if (job->lanes)
            for (int64_t step = job->lanes->lanes; i < end; i += step) job->some(job, i, end - i < step ? end - i : step, scratch);
        else
            for (; i < end; i++) job->one(job, i, scratch);
    }
    job->blas->leave(entered);
    job->c->services->mark_region(inside);
    return 0;
}

int tgx_matrix_run(tgx_matrices *job) {
    tgx_call *c = job->c;
    if (!(job->blas = c->services->blas())) return TGX_FAILED;
    job->parts = c->notes[0], job->bytes = c->notes[1];
    return tgx_range(c, piece, job, job->parts, 1);
}

void tgx_turn(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows, int64_t columns, int size) {
    char *both[2] = {to, (char *)from};
    const ptrdiff_t inner[2] = {size, from_step * size}, outer[2] = {to_step * size, size};
    tgx_copy_plane(size)(both, inner, outer, rows, columns);
}

int64_t tgx_work_wanted(const void *work, int dtype) {
    int single = dtype == TGX_F32 || dtype == TGX_C64;
    double wanted = single ? *(const float *)work : *(const double *)work;
    return (int64_t)(single ? wanted * 1.0000005 : wanted) + 1; /* a float may have been rounded down */
}

void tgx_matrix_result(tgx_call *c, int k, const tgx_tensor *t, int64_t rows, int64_t columns, int dtype) {
    tgx_output *o = tgx_fresh(c, k, t->rank, dtype);
    memcpy(o->dims, t->sizes, (size_t)t->rank * sizeof *t->sizes);
    o->dims[t->rank - 2] = rows, o->dims[t->rank - 1] = columns;
}

void tgx_batch_result(tgx_call *c, int k, const tgx_tensor *t, int64_t n, int dtype) {
    tgx_output *o = tgx_fresh(c, k, t->rank - 2 + (n >= 0), dtype);
    memcpy(o->dims, t->sizes, (size_t)(t->rank - 2) * sizeof *t->sizes);
    if (n >= 0) o->dims[t->rank - 2] = n;
}

int64_t tgx_first_failed(const tgx_tensor *info) {
    for (int64_t i = 0; i < info->count; i++)
        if (((const int32_t *)info->data)[i]) return i;
    return -1;
}

const char *tgx_batch_words(const tgx_tensor *info, int64_t i, char room[48]) {
    room[0] = 0;
    if (info->rank) snprintf(room, 48, "(Batch element %lld): ", (long long)i);
    return room;
}

int tgx_fail_zero(tgx_call *c, const char *title, const char *words, int64_t which) {
    return tgx_fail(c, TGX_LINALG_ERROR, "%s: %sThe diagonal element %lld is zero, the inversion could not be completed because the input "
                    "matrix is singular.", title, words, (long long)which);
}

int tgx_refuse_zeros(tgx_call *c, const tgx_tensor *a, const char *title) {
    const int64_t n = a->sizes[a->rank - 1], size = tgx_itemsize[a->dtype], step = a->strides[a->rank - 1] + a->strides[a->rank - 2];
    const tgx_loop load = tgx_cast_loop(a->dtype, TGX_C128);
    char words[48] = "";
    for (int64_t i = 0; i < a->count / (n ? n : 1); i++) {
        double number[2];
        load((char *[]){(char *)number, a->data + (i / n * n * n + i % n * step) * size}, (const ptrdiff_t[]){0, 0}, 1, NULL);
        if (number[0] || number[1]) continue;
        if (a->rank > 2) snprintf(words, sizeof words, "(Batch element %lld): ", (long long)(i / n));
        return tgx_fail_zero(c, title, words, i % n + 1);
    }
    return 0;
}
