/* Singular values, and eigenvalues of Hermitian and of general matrices, by LAPACK, small ones of a batch by rotations (lanes.h).
 *
 * What is not finite is refused before LAPACK sees it: its iterations may not end on a NaN. */
#include <math.h>
#include "eigen.h"
#include "lanes.h"

/* Columns of a matrix that LAPACK changes are so far apart. */
static int64_t apart(const tgx_matrices *job, int64_t n) { return tgx_apart(n, tgx_itemsize[job->dtype]); }
static int64_t room_of(int64_t n, int64_t count, int size) { return tgx_round64(tgx_apart(n, size) * count * size); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t rows(const tgx_tensor *t) { return t->sizes[t->rank - 2]; }
static int64_t columns(const tgx_tensor *t) { return t->sizes[t->rank - 1]; }
static int is_complex(int dtype) { return dtype == TGX_C64 || dtype == TGX_C128; }
static int is_single(int dtype) { return dtype == TGX_F32 || dtype == TGX_C64; }

static int all_finite(const tgx_tensor *t, int64_t i, int64_t count) {
    int64_t n = count * (1 + is_complex(t->dtype));
    if (is_single(t->dtype)) {
        const float *x = (const float *)t->data + i * n;
        float sum = 0;
        for (int64_t k = 0; k < n; k++) sum += x[k] * 0;
        return sum == 0;
    }
    const double *x = (const double *)t->data + i * n;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += x[k] * 0;
    return sum == 0;
}


/* Rotations pay only where more than one matrix turns. */
static const tgx_lane_ops *rotations(const tgx_tensor *a) {
    return tgx_matrix_count(a) > 1 ? tgx_lanes_for(tgx_matrix_count(a), rows(a), columns(a), a->dtype) : NULL;
}
/* And where no vectors are wanted besides those that values have. */
static const tgx_lane_ops *pair_rotations(const tgx_call *c, const tgx_tensor *a) {
    return tgx_int(c, 2) && tgx_int(c, 1) && rows(a) != columns(a) ? NULL : rotations(a);
}

static void give_values(tgx_matrices *job, const tgx_tensor *out, const char *values, int64_t i, int64_t count, int64_t n) {
    int dtype = tgx_real_of(job->dtype);
    tgx_lanes_give(tgx_lanes_for(count, n, n, dtype), out->data, values, i, count, n, dtype);
}
/* Those of a group that did not end, one by one. */
static void again(tgx_matrices *job, int64_t i, int64_t count, char *scratch, uint32_t left) {
    for (int64_t l = 0; l < count; l++)
        if (left >> l & 1) job->one(job, i + l, scratch);
}

/* Of run: `one` for all matrices, whose info goes into a row at the end of each piece's scratch. any: matrices of no symmetry. */
static int run(tgx_call *c, tgx_matrices *job, const char *title, const char *trouble, int any) {
    const tgx_tensor *a = tgx_in(c, 0);
    int64_t size = rows(a) * columns(a);
    job->c = c, job->count = tgx_matrix_count(a), job->dtype = a->dtype, job->m = rows(a), job->n = columns(a), job->more = c->notes + 2;
    c->notes[2] = -1;
    for (int64_t i = 0; i < job->count; i++)
        if (!all_finite(a, i, size))
            return tgx_fail(c, any ? TGX_RUNTIME_ERROR : TGX_LINALG_ERROR, any ? "torch.%s: input tensor should not contain infs or NaNs; matrix %lld does: "
                            "look for them with isfinite()" : "%s: (Batch element %lld): The algorithm failed to converge because the input "
                            "matrix contained non-finite values: look for them with isfinite()", title, (long long)i);
    if (tgx_matrix_run(job)) return TGX_FAILED;
    if (c->notes[2] >= 0)
        return tgx_fail(c, TGX_LINALG_ERROR, "%s: (Batch element %lld): The algorithm failed to converge because the input matrix is ill-conditioned "
                        "or has too many repeated %s", title, (long long)c->notes[2], trouble);
    return 0;
}
static void note(tgx_matrices *job, int64_t i, int64_t info) {
    if (info) __atomic_store_n((int64_t *)job->more, i, __ATOMIC_RELAXED);
}

/* ---- singular values: (A, full_matrices, compute_uv) -> U, S, Vh ------------------------------------------------- */

static void gesdd(tgx_matrices *job, const char *how, char *a, char *s, char *u, char *vt, int64_t k, void *work, int64_t length, void *real, void *ints,
                  int64_t *info) {
    void *f = job->blas->routine(TGX_GESDD, job->dtype);
    int64_t m = job->n, n = job->m, ldu = m ? m : 1, lda = apart(job, ldu), ldvt = *how == 'A' ? n : k;
    ldvt = ldvt ? ldvt : 1;
    if (is_complex(job->dtype)) TGX_CALL(f, 16, how, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &length, real, ints, info, TGX_LENGTH);
    else TGX_CALL(f, 15, how, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &length, ints, info, TGX_LENGTH);
}

static const char *how(const tgx_call *c) { return !tgx_int(c, 2) ? "N" : tgx_int(c, 1) ? "A" : "S"; }

/* A's rows are columns of A turned, whose left vectors are the rows of Vh, and the right ones those of U: nothing is turned. */
static void svd_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n), info = 0, mn = m * n;
    int size = tgx_itemsize[job->dtype], real = tgx_itemsize[tgx_real_of(job->dtype)], vectors = (int)tgx_int(c, 2), full = (int)tgx_int(c, 1);
    char *real_room = scratch + room_of(n, m, size), *ints = real_room + job->k, *work = ints + tgx_round64(8 * k * 8);
    char *u = vectors ? tgx_out(c, 0)->data + i * m * (full ? m : k) * size : NULL, *s = tgx_out(c, 1)->data + i * k * real;
    char *vh = vectors ? tgx_out(c, 2)->data + i * (full ? n : k) * n * size : NULL;
    const int64_t step = apart(job, n);
    for (int64_t r = 0; r < m; r++) memcpy(scratch + r * step * size, tgx_in(c, 0)->data + (i * mn + r * n) * size, (size_t)(n * size));
    if (k) gesdd(job, how(c), scratch, s, vh ? vh : scratch, u ? u : scratch, k, work, c->notes[3], real_room, ints, &info);
    note(job, i, tgx_lapack_int(job->blas, &info, 0));
    if (k || !full) return;
    for (int which = 0; which < 2 && vectors; which++) { /* without elements: any orthonormal vectors */
        int64_t order = which ? n : m;
        char *to = which ? vh : u;
        memset(to, 0, (size_t)(order * order * size));
        for (int64_t r = 0; r < order; r++) {
            if (is_single(job->dtype)) *(float *)(to + (r * order + r) * size) = 1;
            else *(double *)(to + (r * order + r) * size) = 1;
        }
    }
}

static void svd_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t m = job->m, n = job->n, k = least(m, n), vectors = tgx_int(c, 2);
    char *values = scratch + tgx_lanes_bytes(m * n), *other = vectors ? values + tgx_lanes_bytes(k) : NULL;
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, m * n, job->dtype);
    uint32_t left = job->lanes->singular(scratch, m, n, values, other, count);
    give_values(job, tgx_out(c, 1), values, i, count, k);
    if (vectors) {
        tgx_lanes_give(job->lanes, tgx_out(c, m < n ? 2 : 0)->data, scratch, i, count, m * n, job->dtype);
        tgx_lanes_give(job->lanes, tgx_out(c, m < n ? 0 : 2)->data, other, i, count, k * k, job->dtype);
    }
    again(job, i, count, scratch, left);
}

static int64_t svd_real_bytes(const tgx_call *c, int64_t m, int64_t n, int dtype) {
    int64_t mn = least(m, n), mx = m + n - mn;
    if (!is_complex(dtype)) return 0;
    if (!tgx_int(c, 2)) return tgx_round64(7 * mn * 8);
    int64_t one = 5 * mn * mn + 5 * mn, two = 2 * mx * mn + 2 * mn * mn + mn;
    return tgx_round64((one > two ? one : two) * 8);
}

static int svd_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (tgx_matrix_check(c, a, "linalg.svd", "A", 0)) return TGX_FAILED;
    if (!tgx_routine_needed(c, "linalg.svd", TGX_GESDD, a->dtype)) return TGX_FAILED;
    int64_t m = rows(a), n = columns(a), k = least(m, n), full = tgx_int(c, 1), length = 1;
    int vectors = (int)tgx_int(c, 2), size = tgx_itemsize[a->dtype];
    tgx_need_dense(c, 0);
    if (vectors) {
        tgx_matrix_result(c, 0, a, m, full ? m : k, a->dtype);
        tgx_matrix_result(c, 2, a, full ? n : k, n, a->dtype);
    } else {
        tgx_fresh(c, 0, 1, a->dtype)->dims[0] = 0;
        tgx_fresh(c, 2, 1, a->dtype)->dims[0] = 0;
    }
    tgx_batch_result(c, 1, a, k, tgx_real_of(a->dtype));
    if (!c->meta && k) {
        double wanted[2] = {0, 0};
        int64_t info, ask = -1;
        tgx_matrices job = {.blas = c->services->blas(), .dtype = a->dtype, .m = m, .n = n};
        gesdd(&job, how(c), (char *)wanted, (char *)wanted, (char *)wanted, (char *)wanted, k, wanted, ask, wanted, &info, &info);
        length = tgx_work_wanted(wanted, a->dtype);
    }
    int64_t bytes = room_of(n, m, size) + svd_real_bytes(c, m, n, a->dtype) + tgx_round64(8 * k * 8) + length * size;
    if (pair_rotations(c, a)) bytes += tgx_lanes_bytes(m * n + k + k * k);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 8.0 * (double)m * (double)n * (double)(k + 8)), bytes);
    c->notes[3] = length;
    return 0;
}

static int svd_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.one = svd_one, .some = svd_some, .k = svd_real_bytes(c, rows(a), columns(a), a->dtype)};
    job.lanes = pair_rotations(c, a);
    return run(c, &job, "linalg.svd", "singular values", 0);
}
TGX_KERNEL(_svd, svd_shape, svd_run, 0)

/* ---- Hermitian: (A, UPLO, compute_v) -> eigenvalues, eigenvectors ------------------------------------------------ */

static void heevd(tgx_matrices *job, int vectors, int upper, char *a, char *values, void *work, int64_t length, void *real, int64_t reals, void *ints,
                  int64_t integers, int64_t *info) {
    void *f = job->blas->routine(TGX_SYEVD, job->dtype);
    const char *jobz = vectors ? "V" : "N", *uplo = upper ? "U" : "L";
    int64_t n = job->n, lda = apart(job, n);
    if (is_complex(job->dtype))
        TGX_CALL(f, 15, jobz, uplo, &n, a, &lda, values, work, &length, real, &reals, ints, &integers, info, TGX_LENGTH, TGX_LENGTH);
    else TGX_CALL(f, 13, jobz, uplo, &n, a, &lda, values, work, &length, ints, &integers, info, TGX_LENGTH, TGX_LENGTH);
}
static int64_t eigh_reals(int64_t n, int vectors, int dtype) { return !is_complex(dtype) ? 0 : vectors ? 1 + 5 * n + 2 * n * n : n > 1 ? n : 1; }

static void eigh_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n, info = 0, reals = eigh_reals(n, (int)tgx_int(c, 2), job->dtype), integers = 3 + 5 * n;
    int size = tgx_itemsize[job->dtype], vectors = (int)tgx_int(c, 2);
    char *real = scratch + room_of(n, n, size), *ints = real + tgx_round64(reals * 8), *work = ints + tgx_round64(integers * 8);
    const char *uplo = c->args[1].text;
    tgx_turn(scratch, apart(job, n), tgx_in(c, 0)->data + i * n * n * size, n, n, n, size);
    if (n) heevd(job, vectors, *uplo == 'U' || *uplo == 'u', scratch, tgx_out(c, 0)->data + i * n * tgx_itemsize[tgx_real_of(job->dtype)], work,
                 c->notes[3], real, reals, ints, integers, &info);
    note(job, i, tgx_lapack_int(job->blas, &info, 0));
    if (vectors) tgx_turn(tgx_out(c, 1)->data + i * n * n * size, n, scratch, apart(job, n), n, n, size);
}

static void eigh_some(tgx_matrices *job, int64_t i, int64_t count, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n;
    const char *uplo = c->args[1].text;
    char *values = scratch + tgx_lanes_bytes(n * n), *vectors = tgx_int(c, 2) ? values + tgx_lanes_bytes(n) : NULL;
    tgx_lanes_take(job->lanes, scratch, tgx_in(c, 0)->data, i, count, n * n, job->dtype);
    uint32_t left = job->lanes->eigenvalues(scratch, n, *uplo == 'U' || *uplo == 'u', values, vectors, count);
    give_values(job, tgx_out(c, 0), values, i, count, n);
    if (vectors) tgx_lanes_give(job->lanes, tgx_out(c, 1)->data, vectors, i, count, n * n, job->dtype);
    again(job, i, count, scratch, left);
}

static int eigh_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    const char *uplo = c->args[1].text;
    if (tgx_matrix_check(c, a, "linalg.eigh", "A", 1)) return TGX_FAILED;
    if (strlen(uplo) != 1 || !strchr("LUlu", *uplo))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got %s", uplo);
    if (!tgx_routine_needed(c, "linalg.eigh", TGX_SYEVD, a->dtype)) return TGX_FAILED;
    int64_t n = rows(a), length = 1, integers = 3 + 5 * n;
    int vectors = (int)tgx_int(c, 2), size = tgx_itemsize[a->dtype];
    tgx_need_dense(c, 0);
    tgx_batch_result(c, 0, a, n, tgx_real_of(a->dtype));
    if (vectors) tgx_matrix_result(c, 1, a, n, n, a->dtype);
    else tgx_fresh(c, 1, 1, a->dtype)->dims[0] = 0;
    if (!c->meta && n) {
        double wanted[2] = {0, 0}, reals[1];
        int64_t info, ints;
        tgx_matrices job = {.blas = c->services->blas(), .dtype = a->dtype, .n = n};
        heevd(&job, vectors, 0, (char *)wanted, (char *)wanted, wanted, -1, reals, -1, &ints, -1, &info);
        length = tgx_work_wanted(wanted, a->dtype);
    }
    int64_t bytes = room_of(n, n, size) + tgx_round64(eigh_reals(n, vectors, a->dtype) * 8) + tgx_round64(integers * 8) + length * size;
    if (rotations(a)) bytes += tgx_lanes_bytes((2 * n + 1) * n);
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 9.0 * (double)n * (double)n * (double)(n + 8)), bytes);
    c->notes[3] = length;
    return 0;
}
static int eigh_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    tgx_matrices job = {.one = eigh_one, .some = eigh_some};
    job.lanes = rotations(a);
    return run(c, &job, "linalg.eigh", "eigenvalues", 0);
}
TGX_KERNEL(_eigh, eigh_shape, eigh_run, 0)

/* ---- general: (A, compute_v) -> eigenvalues, eigenvectors, both complex ------------------------------------------ */

static int complex_of(int dtype) { return is_single(dtype) ? TGX_C64 : TGX_C128; }

static void geev(tgx_matrices *job, int vectors, char *a, char *values, char *vr, void *work, int64_t length, void *real, int64_t *info) {
    void *f = job->blas->routine(TGX_GEEV, job->dtype);
    const char *jobvr = vectors ? "V" : "N";
    int64_t n = job->n, one = 1, step = apart(job, n);
    if (is_complex(job->dtype))
        TGX_CALL(f, 16, "N", jobvr, &n, a, &step, values, values, &one, vr, &step, work, &length, real, info, TGX_LENGTH, TGX_LENGTH);
    else
        TGX_CALL(f, 16, "N", jobvr, &n, a, &step, real, (char *)real + n * tgx_itemsize[job->dtype], values, &one, vr, &step, work, &length, info,
                 TGX_LENGTH, TGX_LENGTH);
}

/* Of a pair of conjugate values a column holds the real, the next one the imaginary part of the vectors. */
#define JOIN(name, R, C)                                                                                     \
    static void name(int64_t n, int64_t step, const R *re, const R *im, const R *vr, C *values, C *vectors) { \
        for (int64_t k = 0; k < n; k++) values[k] = __builtin_complex(re[k], im[k]);                         \
        for (int64_t k = 0; vectors && k < n; k++) {                                                         \
            int pair = im[k] != 0 && k + 1 < n;                                                              \
            for (int64_t r = 0; r < n; r++) {                                                                \
                R x = vr[k * step + r], y = pair ? vr[(k + 1) * step + r] : 0;                               \
                vectors[r * n + k] = __builtin_complex(x, y);                                                \
                if (pair) vectors[r * n + k + 1] = __builtin_complex(x, -y);                                 \
            }                                                                                                \
            k += pair;                                                                                       \
        }                                                                                                    \
    }
JOIN(join_f, float, tgx_c64)
JOIN(join_d, double, tgx_c128)

static void eig_one(tgx_matrices *job, int64_t i, char *scratch) {
    tgx_call *c = job->c;
    int64_t n = job->n, info = 0, out = complex_of(job->dtype);
    int size = tgx_itemsize[job->dtype], wide = tgx_itemsize[out], vectors = (int)tgx_int(c, 1);
    const int64_t step = apart(job, n);
    char *vr = scratch + room_of(n, n, size), *real = vr + room_of(n, n, size), *work = real + tgx_round64(2 * n * 8);
    char *values = tgx_out(c, 0)->data + i * n * wide, *to = vectors ? tgx_out(c, 1)->data + i * n * n * wide : NULL;
    const char *from = tgx_in(c, 0)->data + i * n * n * size;
    if (tgx_small_eigen(job->dtype, from, n, values, to)) return;
    tgx_turn(scratch, step, from, n, n, n, size);
    if (n) geev(job, vectors, scratch, values, vr, work, c->notes[3], real, &info);
    note(job, i, tgx_lapack_int(job->blas, &info, 0));
    if (is_complex(job->dtype)) {
        if (to) tgx_turn(to, n, vr, step, n, n, size);
    } else if (job->dtype == TGX_F32)
        join_f(n, step, (float *)real, (float *)real + n, (float *)vr, (tgx_c64 *)values, (tgx_c64 *)to);
    else join_d(n, step, (double *)real, (double *)real + n, (double *)vr, (tgx_c128 *)values, (tgx_c128 *)to);
}

static int eig_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0);
    if (tgx_matrix_check(c, a, "linalg.eig", "A", 1) || !tgx_routine_needed(c, "linalg.eig", TGX_GEEV, a->dtype)) return TGX_FAILED;
    int64_t n = rows(a), length = 1;
    int vectors = (int)tgx_int(c, 1), size = tgx_itemsize[a->dtype];
    tgx_need_dense(c, 0);
    tgx_batch_result(c, 0, a, n, complex_of(a->dtype));
    if (vectors) tgx_matrix_result(c, 1, a, n, n, complex_of(a->dtype));
    else tgx_fresh(c, 1, 1, complex_of(a->dtype))->dims[0] = 0;
    if (!c->meta && n) {
        double wanted[2] = {0, 0};
        int64_t info;
        tgx_matrices job = {.blas = c->services->blas(), .dtype = a->dtype, .n = n};
        geev(&job, vectors, (char *)wanted, (char *)wanted, (char *)wanted, wanted, -1, wanted, &info);
        length = tgx_work_wanted(wanted, a->dtype);
        if (n <= TGX_EIGEN_ORDER) length = 4 * n; /* enough; with more it turns vectors in blocks, which takes longer */
    }
    tgx_matrix_scratch(c, tgx_matrix_parts(tgx_matrix_count(a), 25.0 * (double)n * (double)n * (double)(n + 8)),
                       2 * room_of(n, n, size) + tgx_round64(2 * n * 8) + length * size);
    c->notes[3] = length;
    return 0;
}
static int eig_run(tgx_call *c) {
    tgx_matrices job = {.one = eig_one};
    return run(c, &job, "linalg.eig", "eigenvalues", 1);
}
TGX_KERNEL(_eig, eig_shape, eig_run, 0)

/* ---- phases: (self, other, title) -> self, refused where a result hangs on the phase of complex vectors ---------- */

static int phase_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *other = tgx_given(c, 1) ? tgx_in(c, 1) : NULL;
    int fits = !other || (other->rank == t->rank && other->dtype == t->dtype);
    if (tgx_matrix_check(c, t, c->args[2].text, "self", 0)) return TGX_FAILED;
    for (int i = 0; fits && other && i < t->rank; i++) fits = other->sizes[i] == t->sizes[i];
    if (!fits)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: self %s and other %s must have one shape and dtype", c->args[2].text, tgx_shape_text(t),
                        tgx_shape_text(other));
    tgx_need_dense(c, 0);
    if (tgx_given(c, 1)) tgx_need_dense(c, 1);
    tgx_like(c, 0, tgx_in(c, 0), tgx_in(c, 0)->dtype);
    return 0;
}
static double imaginary(const tgx_tensor *t, int64_t at) {
    return t->dtype == TGX_C64 ? (double)((const float *)t->data)[2 * at + 1] : ((const double *)t->data)[2 * at + 1];
}
/* The imaginary part of a diagonal, which a change of phases alone would change, is zero in gradients of what does not see phases. */
static int phase_run(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0), *other = tgx_given(c, 1) ? tgx_in(c, 1) : NULL;
    int64_t n = columns(t), m = rows(t), count = tgx_matrix_count(t);
    memcpy(tgx_out(c, 0)->data, t->data, (size_t)(t->count * tgx_itemsize[t->dtype]));
    for (int64_t i = 0; is_complex(t->dtype) && i < count; i++)
        for (int64_t r = 0; r < least(m, n); r++) {
            int64_t at = (i * m + r) * n + r;
            double x = imaginary(t, at), y = other ? -imaginary(other, at) : 0;
            if (fabs(x - y) > 1e-2 + 1e-2 * fabs(y))
                return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: The vectors in the complex case are specified up to multiplication by e^{i phi}. The "
                                "specified loss function depends on this phase term, making it ill-defined: let it see products such as "
                                "x * x.conj() or magnitudes alone", c->args[2].text);
        }
    return 0;
}
TGX_KERNEL(_same_phase, phase_shape, phase_run, 0)
