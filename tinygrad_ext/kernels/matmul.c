/* Kernels of the matrix products: matmul and its special ranks, linear, and the add-and-multiply family.
 *
 * All fill a tgx_product from two operands seen as batches of matrices. Operands that BLAS cannot read in place are
 * copied; half precision is computed in float32, bfloat16 as it is where the processor multiplies it. */
#include "matmul_sizes.h"
#include "product.h"
#include "product_bf16.h"
#include "product_complex.h"

/* What is multiplied, and what is added to it. */
typedef struct {
    const tgx_tensor *a, *b, *start; /* start: NULL for nothing */
    int left;                  /* number of a's argument; b's follows */
    tgx_tensor turned;         /* the weight of linear, transposed */
    int64_t dims[4];
} operands_t;

static long long ll(int64_t n) { return (long long)n; }
/* ---- shape ------------------------------------------------------------------------------------------------------- */

enum { LEAST_TALL = 8 };       /* columns of a product that pay for a copy of the left operand */
enum { TINY_COUNT = 32 };      /* elements of operands that are surely multiplied without BLAS: their product is TGX_TINY_WORK */

/* The first time a BLAS is looked for Python runs, which may change any tensor: so it is done before a size is read for good. */
static int look_for_blas(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b) {
    int dtype = a->dtype, r = b->rank;
    if (a->count <= TINY_COUNT && b->count <= TINY_COUNT) return 0;
    if (c->meta || tgx_is_integral(dtype) || tgx_is_complex(dtype) || a->rank == 0 || r == 0) return 0;
    double of_b = r > 1 ? (double)b->sizes[r - 2] * (double)b->sizes[r - 1] : (double)b->sizes[0];
    if (of_b * (double)tgx_rows_of(a) <= TGX_TINY_WORK) return 0;
    return c->services->blas() ? 0 : TGX_FAILED;
}

/* Multiplications, which tell the caller whether other threads may run meanwhile. */
static int64_t work_of(int64_t depth, const tgx_output *o) {
    double n = (double)depth;
    for (int i = 0; i < o->rank; i++) n *= (double)o->dims[i];
    return n < 1e18 ? (int64_t)n + 1 : INT64_MAX;
}

/* Whether BLAS can read a tensor's matrices in place. */
static int readable(const tgx_tensor *t) {
    int r = t->rank;
    if (t->flags & TGX_CONTIGUOUS) return 1;
    if (r == 1) return t->strides[0] > 0;
    return tgx_blas_takes(t->sizes[r - 2], t->sizes[r - 1], t->strides[r - 2], t->strides[r - 1]);
}

/* Whether the batch and row dimensions of a, of which c has all (NULL: it has), are one run of m rows, evenly spaced by row. */
static int rows_collapse(const tgx_tensor *a, const tgx_tensor *c, int rank, int64_t *m, int64_t *row) {
    int found = 0;
    int64_t last = 0;
    if (rank != a->rank - 2) return 0;
    for (int i = a->rank - 2; i >= 0; i--) { /* a size of 1 has no meaningful stride */
        if (c && i < rank && a->sizes[i] != c->sizes[i]) return 0;
        if (a->sizes[i] == 1) continue;
        if (found && a->strides[i] != last) return 0;
        if (!found) found = 1, *row = a->strides[i];
        last = a->strides[i] * a->sizes[i];
        if (i < rank) *m *= a->sizes[i];
    }
    return tgx_is_integral(a->dtype) || tgx_blas_takes(*m, a->sizes[a->rank - 1], *row, a->strides[a->rank - 1]);
}

/* Whether a batch that meets one matrix is better copied to be one tall matrix, as each item lays out that matrix anew. A repeated
 * item is not: it may stand for more memory than there is. */
static int better_tall(const tgx_tensor *a, const tgx_tensor *b) {
    int64_t m = tgx_rows_of(a), row = 0;
    if (a->rank < 3 || b->rank != 2 || b->sizes[1] < LEAST_TALL || a->flags & TGX_CONTIGUOUS) return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->strides[i] == 0 && a->sizes[i] > 1) return 0;
    return !rows_collapse(a, NULL, a->rank - 2, &m, &row);
}

static void need_operands(tgx_call *c, const operands_t *x, int dtype) {
    for (int i = x->left; i < x->left + 2; i++) {
        if (!readable(c->args[i].tensor) || (i == x->left && better_tall(x->a, x->b))) tgx_need(c, i, dtype);
        else if (c->args[i].tensor->dtype != dtype) tgx_need_dtype(c, i, dtype);
    }
    /* the loops over integers run along the rows of b */
    if (tgx_is_integral(dtype) && x->b != &x->turned) tgx_need_dense(c, x->left + 1);
}

static int same_window(const tgx_tensor *t, const tgx_tensor *u) {
    if (t == u) return 1;
    if (t->data != u->data || !t->data || !tgx_same_sizes(t, u)) return 0;
    return !memcmp(t->strides, u->strides, (size_t)t->rank * sizeof *t->strides);
}

/* Whether the rows of t lie in one piece each. A BLAS would also write by columns: the transposed product, which rounds otherwise. */
static int lies_by_rows(const tgx_tensor *t) {
    const int64_t *size = t->sizes + t->rank - 2, *step = t->strides + t->rank - 2;
    return t->flags & TGX_CONTIGUOUS || (t->rank >= 2 && (step[1] == 1 || size[1] <= 1) && (step[0] >= size[1] || size[0] <= 1));
}

/* Another target gets its numbers by a copy; self in the in-place form is where the sum starts. */
static void use_target(tgx_call *c, const operands_t *x, tgx_output *o) {
    const tgx_tensor *t = c->target;
    if (!lies_by_rows(t)) {
        int64_t step = 1;
        o->strides = o->dims + o->rank;
        for (int i = o->rank - 1; i >= 0; i--) o->strides[i] = step, step *= o->dims[i] > 1 ? o->dims[i] : 1;
    } else if (x->start && o->via < 0 && same_window(t, x->start)) o->origin = TGX_OVER, o->of = 0;
}

static int has_work(const tgx_tensor *a, const tgx_output *o) {
    for (int i = 0; i < o->rank; i++)
        if (o->dims[i] == 0) return 0;
    return a->sizes[a->rank - 1] != 0;
}

static int is_bf16(const tgx_tensor *a, const tgx_tensor *b) {
    return a->dtype == TGX_BF16 && b->dtype == TGX_BF16 && tgx_is_bf16_product(tgx_rows_of(a), tgx_cols_of(b), tgx_depth_of(b));
}

/* The memory in which operands are laid out. Items of a batch that becomes one tall matrix are padded as if it did not. */
static int64_t room(const tgx_tensor *a, const tgx_tensor *b, const tgx_output *o) {
    const int64_t m = tgx_rows_of(a), n = tgx_cols_of(b), k = tgx_depth_of(b);
    int64_t items = 1;
    for (int i = 0; i < o->rank - (a->rank > 1) - (b->rank > 1); i++) items *= o->dims[i];     /* a vector has no dimension there */
    if (tgx_is_complex(a->dtype)) return tgx_complex_product_room(m, n, k, items, tgx_itemsize[a->dtype]);
    return tgx_bf16_product_room(m, n, k, items, tgx_is_one_matrix(b) ? 1 : items);
}

static int product_shape(tgx_call *c, const operands_t *x) {
    const tgx_tensor *a = x->a, *b = x->b;
    tgx_output *o = &c->outputs[0];
    if (tgx_product_sizes(c, a, b, x->start)) return TGX_FAILED;
    if (a->device != b->device || (x->start && x->start->device != a->device) || (c->target && c->target->device != a->device))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected all tensors to be on the same device, but %s() got tensors on cpu and on meta", c->title);
    if (a->dtype == TGX_BOOL && has_work(a, o))
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"addmm_impl_cpu_\" not implemented for 'Bool': %s() does not take bool; convert "
                        "first, for example with .float() or .long()", c->title);
    if (is_bf16(a, b) || tgx_is_complex(a->dtype)) {
        c->scratch_bytes = room(a, b, o);
        for (int i = x->left; i < x->left + 2; i++)
            if (c->args[i].tensor->dtype != a->dtype) tgx_need_dtype(c, i, a->dtype);
    } else {
        if (tgx_is_half(a->dtype)) o->via = TGX_F32;
        need_operands(c, x, o->via < 0 ? a->dtype : o->via);
        if (a->rank > 1 && b->rank > 1 && !tgx_is_integral(a->dtype)) c->scratch_bytes = tgx_product_room(o->via < 0 ? a->dtype : o->via, a, b, o);
    }
    if (a->count + b->count > TGX_SMALL / 32) c->work = work_of(a->sizes[a->rank - 1], o);
    if (c->target) use_target(c, x, o);
    return 0;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* Steps in bytes over the batch dimensions; 0 where t is repeated. */
static void steps(const tgx_tensor *t, int rank, int64_t *step) {
    int shift = rank - (t->rank > 2 ? t->rank - 2 : 0);
    for (int i = 0; i < rank; i++) {
        int k = i - shift;
        step[i] = k >= 0 && t->sizes[k] != 1 ? t->strides[k] * tgx_itemsize[t->dtype] : 0;
    }
}

/* A batch: one tall matrix where the right operand is the same for all, else item after item. */
static void set_batch(tgx_product *p, const tgx_tensor *a, const tgx_tensor *b, const tgx_tensor *c, int rank) {
    int64_t m = p->s.m, row = p->s.a_row;
    if (c->flags & TGX_CONTIGUOUS && tgx_is_one_matrix(b) && rows_collapse(a, c, rank, &m, &row)) {
        p->s.m = m, p->s.a_row = row, p->s.c_row = p->s.n;
        return;
    }
    p->rank = rank;
    for (int i = 0; i < rank; i++) {
        p->sizes[i] = c->sizes[i], p->batches *= c->sizes[i];
        p->c_step[i] = c->strides[i] * tgx_itemsize[c->dtype];
    }
    steps(a, rank, p->a_step);
    steps(b, rank, p->b_step);
}

static void set_matrices(tgx_product *p, const tgx_tensor *a, const tgx_tensor *b, const tgx_tensor *c) {
    int i = c->rank;
    tgx_shape *s = &p->s;
    p->dtype = c->dtype, p->a = a->data, p->b = b->data, p->c = c->data, p->rank = 0, p->batches = 1;
    s->m = tgx_rows_of(a), s->n = tgx_cols_of(b), s->k = a->sizes[a->rank - 1];
    s->a_col = a->strides[a->rank - 1], s->a_row = a->rank > 1 ? a->strides[a->rank - 2] : s->k;
    s->b_row = b->strides[b->rank > 1 ? b->rank - 2 : 0], s->b_col = b->rank > 1 ? b->strides[b->rank - 1] : 1;
    s->c_col = b->rank > 1 ? c->strides[--i] : 1;
    s->c_row = a->rank > 1 ? c->strides[--i] : s->n * s->c_col;
    if (i) set_batch(p, a, b, c, i);
}

static int is_zero(const tgx_scalar *n, int dtype) { return n->f == 0 && n->im == 0 && (!tgx_is_integral(dtype) || n->i == 0); }

/* out = what is added, which broadcasts; a short row by itself. */
static int put_start(tgx_call *c, const tgx_tensor *start, const tgx_tensor *out) {
    size_t bytes = (size_t)start->count * (size_t)tgx_itemsize[start->dtype];
    if (start->rank != 1 || out->count > TGX_SMALL || start->dtype != out->dtype || !(start->flags & out->flags & TGX_CONTIGUOUS)
        || start->count != out->sizes[out->rank - 1]) return c->services->copy(out, start);
    for (int64_t i = 0; i < out->count; i += start->count) memcpy(out->data + i * tgx_itemsize[out->dtype], start->data, bytes);
    return 0;
}

static const tgx_scalar none, one = {1, 0, 1, 1};
static int product_run(tgx_call *c, const operands_t *x, const tgx_scalar *alpha, const tgx_scalar *beta) {
    const tgx_tensor *out = tgx_out(c, 0);
    tgx_product p;
    int code;
    if (out->count == 0) return 0;
    p.alpha = *alpha, p.beta = none, p.room = c->scratch_bytes ? c->scratch : NULL;
    if (x->start && !is_zero(beta, x->start->dtype)) {
        if (out->data != x->start->data && (code = put_start(c, x->start, out))) return code;
        p.beta = *beta;
    }
    set_matrices(&p, x->a, x->b, out);
    if (is_bf16(x->a, x->b)) return tgx_bf16_product_run(c, &p, tgx_is_one_matrix(x->b));
    return tgx_is_complex(p.dtype) ? tgx_complex_product_run(c, &p, c->scratch) : tgx_product_run(c, &p);
}

/* ---- products of two --------------------------------------------------------------------------------------------- */

static operands_t pair(const tgx_call *c) {
    return (operands_t){.a = tgx_in(c, 0), .b = tgx_in(c, 1), .start = NULL, .left = 0};
}

/* A vector, or a matrix of one row, times a matrix, where the sums take hardly longer than any question; as small_matrices. */
static inline int small_row(const tgx_tensor *a, const tgx_tensor *b, int64_t n, int64_t b_row, int64_t b_col, const tgx_tensor *bias,
                            const tgx_tensor *c) {
    static tgx_row_product *const *products;
    int64_t k = a->count;
    if (c->count != n || ((n | k) >> 10) || !n || !k || n * k > TGX_TINY_WORK || !(c->flags & TGX_CONTIGUOUS)) return 0;
    if (a->sizes[a->rank - 1] != k || (c->dtype != TGX_F32 && c->dtype != TGX_F64) || a->dtype != c->dtype || b->dtype != c->dtype) return 0;
    if (bias && (bias->dtype != c->dtype || bias->count != n || !(bias->flags & TGX_CONTIGUOUS))) return 0;
    if (!products) products = tgx_row_products();
    products[c->dtype == TGX_F64](a->data, a->strides[a->rank - 1], b->data, b_row, b_col, n, k, bias ? bias->data : NULL, c->data);
    return 1;
}

/* Two matrices of so little work that finding out what to do would take longer than doing it, or some more; `bias` is added to
 * each row, or NULL. A vector on the left is one row. b_row, b_col: the steps of b as the product reads it, of n columns. */
static __attribute__((noinline)) int small_matrices(const tgx_call *call, const tgx_tensor *a, const tgx_tensor *b, int64_t n,
                                                    int64_t b_row, int64_t b_col, const tgx_tensor *bias) {
    const tgx_tensor *c = tgx_out(call, 0);
    int one = a->rank == 1, tiny;
    int64_t m = one ? 1 : a->sizes[0], k = a->sizes[!one];
    if (!c->count || !((tiny = tgx_is_tiny(m, n, k)) || tgx_is_middle(m, n, k))) return 0;
    if (c->dtype != TGX_F32 && c->dtype != TGX_F64) return 0;
    if (a->dtype != c->dtype || b->dtype != c->dtype || (bias && bias->dtype != c->dtype)) return 0;
    tgx_small p = {.s = {.m = m, .n = n, .k = k, .a_row = a->strides[0], .a_col = a->strides[!one], .b_row = b_row,
                        .b_col = b_col, .c_row = c->strides[0], .c_col = c->strides[!one]},
                  .a = a->data, .b = b->data, .c = c->data, .alpha = 1};
    if (bias) p.start = bias->data, p.start_col = bias->sizes[0] == 1 ? 0 : bias->strides[0], p.beta = 1;
    if (tiny) tgx_small_product(&p, c->dtype);
    else tgx_middle_product(call->services, &p, c->dtype);
    return 1;
}

/* A matrix times a vector is the vector times the matrix transposed: the sums are the same. */
static int small_pair(const tgx_call *call, const tgx_tensor *a, const tgx_tensor *b) {
    if (a->rank > 2 || b->rank > 2 || tgx_out(call, 0)->rank == 0) return 0;
    if (b->rank == 1) return small_row(b, a, a->sizes[0], a->strides[1], a->strides[0], NULL, tgx_out(call, 0))
                             || small_matrices(call, b, a, a->sizes[0], a->strides[1], a->strides[0], NULL);
    return small_row(a, b, b->sizes[1], b->strides[0], b->strides[1], NULL, tgx_out(call, 0))
           || small_matrices(call, a, b, b->sizes[1], b->strides[0], b->strides[1], NULL);
}

static int pair_run(tgx_call *c) {
    if (small_pair(c, tgx_in(c, 0), tgx_in(c, 1))) return 0;
    operands_t x = pair(c);
    return product_run(c, &x, &one, &none);
}

static int matmul_shape(tgx_call *c) {
    if (look_for_blas(c, tgx_in(c, 0), tgx_in(c, 1))) return TGX_FAILED;
    operands_t x = pair(c);
    return product_shape(c, &x);
}
TGX_KERNEL(matmul, matmul_shape, pair_run, TGX_ANY_LAYOUT)

/* PyTorch's wording for a tensor of the wrong rank. */
static int expect(tgx_call *c, const tgx_tensor *t, int rank, const char *name) {
    static const char *const what[] = {"a vector", "a matrix", "a 3D tensor"};
    if (t->rank == rank) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: %s must be %s: expected %d dimension%s, got shape %s. matmul() takes other ranks and "
                    "broadcasts.", c->title, name, what[rank - 1], rank, rank > 1 ? "s" : "", tgx_shape_text(t));
}

static int mm_shape(tgx_call *c) {
    return expect(c, tgx_in(c, 0), 2, "self") || expect(c, tgx_in(c, 1), 2, "mat2") ? TGX_FAILED : matmul_shape(c);
}
TGX_KERNEL(mm, mm_shape, pair_run, TGX_ANY_LAYOUT)

static int mv_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    if (a->rank == 2 && b->rank == 1) return matmul_shape(c);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "vector + matrix @ vector expected, got 1, %d, %d: mv() multiplies a matrix, here %s, by a vector, "
                    "here %s", a->rank, b->rank, tgx_shape_text(a), tgx_shape_text(b));
}
TGX_KERNEL(mv, mv_shape, pair_run, TGX_ANY_LAYOUT)

static int dot_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *b = tgx_in(c, 1);
    if (a->rank == 1 && b->rank == 1) return matmul_shape(c);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "1D tensors expected, but got %dD and %dD tensors: dot() takes two vectors; use matmul() or "
                    "inner() for other ranks", a->rank, b->rank);
}
TGX_KERNEL(dot, dot_shape, pair_run, TGX_ANY_LAYOUT)

static int check_batches(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b) {
    if (expect(c, a, 3, "batch1") || expect(c, b, 3, "batch2")) return TGX_FAILED;
    if (a->sizes[0] == b->sizes[0] && a->sizes[2] == b->sizes[1]) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld]. "
                    "%s() got %s and %s; matmul() broadcasts batches.", ll(a->sizes[0]), ll(a->sizes[2]), ll(b->sizes[0]), ll(b->sizes[1]),
                    c->title, tgx_shape_text(a), tgx_shape_text(b));
}

static int bmm_shape(tgx_call *c) { return check_batches(c, tgx_in(c, 0), tgx_in(c, 1)) ? TGX_FAILED : matmul_shape(c); }
TGX_KERNEL(bmm, bmm_shape, pair_run, TGX_ANY_LAYOUT)

/* ---- linear ------------------------------------------------------------------------------------------------------ */

/* (input, weight, bias): weight (out, in) is read transposed, the bias is where the sum starts. */
static void read_linear(const tgx_call *c, operands_t *x) {
    const tgx_tensor *w = tgx_in(c, 1);
    x->a = tgx_in(c, 0), x->b = w, x->start = tgx_given(c, 2) ? tgx_in(c, 2) : NULL, x->left = 0;
    if (w->rank != 2) return;
    x->turned = *w, x->turned.sizes = x->dims, x->turned.strides = x->dims + 2, x->turned.flags = 0;
    x->dims[0] = w->sizes[1], x->dims[1] = w->sizes[0], x->dims[2] = w->strides[1], x->dims[3] = w->strides[0];
    x->b = &x->turned;
}

static int linear_shape(tgx_call *c) {
    const tgx_tensor *w = tgx_in(c, 1);
    operands_t x;
    if (look_for_blas(c, tgx_in(c, 0), w)) return TGX_FAILED;
    if (w->rank != 1 && w->rank != 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "linear(): weight must have shape (out_features, in_features) or (in_features,), got %s",
                        tgx_shape_text(w));
    if (w->rank == 1 && tgx_given(c, 2))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "mat2 must be a matrix, got 1-D tensor: linear() takes a bias only with a weight of shape "
                        "(out_features, in_features), here weight is %s", tgx_shape_text(w));
    read_linear(c, &x);
    if (tgx_is_integral(w->dtype)) c->scratch_bytes = w->count * tgx_itemsize[w->dtype];
    return product_shape(c, &x);
}

/* Integers: the loops run along the rows of b, so it is turned in memory. */
static int turn(tgx_call *c, operands_t *x) {
    tgx_tensor laid = *x->b;
    int64_t strides[2] = {x->dims[1], 1};
    int code;
    laid.data = c->scratch, laid.strides = strides, laid.flags = TGX_CONTIGUOUS;
    if ((code = c->services->copy(&laid, &x->turned))) return code;
    x->turned.data = laid.data, x->dims[2] = strides[0], x->dims[3] = 1;
    return 0;
}

static int linear_run(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 0), *w = tgx_in(c, 1), *bias = tgx_given(c, 2) ? tgx_in(c, 2) : NULL;
    operands_t x;
    int code;
    if (a->rank <= 2 && w->rank == 2 && (!bias || bias->rank == 1)
        && (small_row(a, w, w->sizes[0], w->strides[1], w->strides[0], bias, tgx_out(c, 0))
            || small_matrices(c, a, w, w->sizes[0], w->strides[1], w->strides[0], bias))) return 0;
    read_linear(c, &x);
    if (tgx_is_integral(x.a->dtype) && tgx_in(c, 1)->rank == 2 && (code = turn(c, &x))) return code;
    return product_run(c, &x, &one, &one);
}
TGX_KERNEL(linear, linear_shape, linear_run, 0)

/* ---- beta self + alpha (a @ b): (self, a, b, beta, alpha) -------------------------------------------------------- */

static operands_t sum(const tgx_call *c) {
    operands_t x;
    x.a = tgx_in(c, 1), x.b = tgx_in(c, 2), x.start = tgx_in(c, 0), x.left = 1;
    return x;
}

static int sum_shape(tgx_call *c) {
    int dtype = tgx_in(c, 0)->dtype, wide = dtype == TGX_F16 || dtype == TGX_BF16 ? TGX_F32 : dtype; /* which halves are computed in */
    if (look_for_blas(c, tgx_in(c, 1), tgx_in(c, 2)) || tgx_check_number(c, &c->args[3], wide) || tgx_check_number(c, &c->args[4], wide))
        return TGX_FAILED;
    operands_t x = sum(c);
    return product_shape(c, &x);
}

static int sum_run(tgx_call *c) {
    operands_t x = sum(c);
    return product_run(c, &x, c->args[4].number, c->args[3].number);
}

static int addmm_shape(tgx_call *c) {
    return expect(c, tgx_in(c, 1), 2, "mat1") || expect(c, tgx_in(c, 2), 2, "mat2") ? TGX_FAILED : sum_shape(c);
}
TGX_KERNEL(addmm, addmm_shape, sum_run, TGX_ANY_LAYOUT)

static int addmv_shape(tgx_call *c) {
    const tgx_tensor *a = tgx_in(c, 1), *b = tgx_in(c, 2);
    if (a->rank == 2 && b->rank == 1) return sum_shape(c);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "vector + matrix @ vector expected, got %d, %d, %d: addmv() takes self (n,), mat (n, m), vec (m,)",
                    tgx_in(c, 0)->rank, a->rank, b->rank);
}
TGX_KERNEL(addmv, addmv_shape, sum_run, TGX_ANY_LAYOUT)

static int baddbmm_shape(tgx_call *c) { return check_batches(c, tgx_in(c, 1), tgx_in(c, 2)) ? TGX_FAILED : sum_shape(c); }
TGX_KERNEL(baddbmm, baddbmm_shape, sum_run, TGX_ANY_LAYOUT)
