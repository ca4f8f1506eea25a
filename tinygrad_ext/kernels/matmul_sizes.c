/* Sizes of products, and the words for operands that do not fit. See matmul_sizes.h. PyTorch words them differently for each
 * op, so the texts stand apart from the products, which share everything. */
#include "matmul_sizes.h"
#include "product_blocks.h"

static long long ll(int64_t n) { return (long long)n; }

static const char *const cpp_names[TGX_NTYPES] = {
    [TGX_BOOL] = "bool", [TGX_U8] = "unsigned char", [TGX_I8] = "signed char", [TGX_I16] = "short", [TGX_I32] = "int",
    [TGX_I64] = "long long", [TGX_F16] = "c10::Half", [TGX_BF16] = "c10::BFloat16", [TGX_F32] = "float", [TGX_F64] = "double",
    [TGX_C64] = "c10::complex<float>", [TGX_C128] = "c10::complex<double>"};

static int is_named(const tgx_call *c, const char *name) { return !strcmp(c->title, name); }

#define DTYPE_HINT ". %s() got torch.%s and torch.%s: convert one, for example with .to(other.dtype)."
static int other_dtype(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b) {
    const char *op = c->title, *x = tgx_dtype_title(a->dtype), *y = tgx_dtype_title(b->dtype);
    const char *own = tgx_dtype_name(a->dtype), *other = tgx_dtype_name(b->dtype);
    if (is_named(c, "bmm") || is_named(c, "baddbmm"))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "expected scalar type %s but found %s" DTYPE_HINT, x, y, op, own, other);
    if (is_named(c, "mv") || is_named(c, "addmv"))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s input tensors must have the same dtype, but got %s and %s" DTYPE_HINT, op, x, y, op, own,
                        other);
    if (is_named(c, "dot"))
        return tgx_fail(c, TGX_RUNTIME_ERROR, "dot : expected both vectors to have same dtype, but found %s and %s" DTYPE_HINT, x, y, op,
                        own, other);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "expected m1 and m2 to have the same dtype, but got: %s != %s" DTYPE_HINT, cpp_names[a->dtype],
                    cpp_names[b->dtype], op, own, other);
}

/* Sizes that do not fit each other. */
#define DEPTH_HINT ". %s() got %s and %s: the last size of the first must equal the second's size in dimension %d.%s"
static int bad_depth(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b) {
    const char *op = c->title, *x = tgx_shape_text(a), *y = tgx_shape_text(b);
    int64_t depth = a->sizes[a->rank - 1], rows = a->rank > 2 ? a->count / (depth > 1 ? depth : 1) : tgx_rows_of(a);
    const char *more = b->rank > 1 && depth == b->sizes[b->rank - 1] ? " Rows of weights are multiplied with other.mT." : "";
    int dim = b->rank > 1 ? -2 : -1;
    if (a->rank == 1 && b->rank == 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "inconsistent tensor size, expected tensor %s and src %s to have the same number of elements, "
                        "but got %lld and %lld elements respectively" DEPTH_HINT, x, y, ll(a->count), ll(b->count), op, x, y, dim, more);
    if (a->rank == 2 && b->rank == 1)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)" DEPTH_HINT, ll(a->sizes[0]),
                        ll(a->sizes[0]), ll(a->sizes[1]), ll(b->sizes[0]), op, x, y, dim, more);
    if (a->rank > 2 && b->rank > 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: "
                        "[%lld, %lld]" DEPTH_HINT, ll(b->sizes[0]), ll(depth), ll(b->sizes[0]), ll(tgx_depth_of(b)), op, x, y, dim, more);
    return tgx_fail(c, TGX_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)" DEPTH_HINT, ll(rows),
                    ll(depth), ll(tgx_depth_of(b)), ll(tgx_cols_of(b)), op, x, y, dim, more);
}

/* The batch dimensions, broadcast; how many, or TGX_FAILED. */
static int batch_shape(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, int64_t *sizes) {
    int na = a->rank > 2 ? a->rank - 2 : 0, nb = b->rank > 2 ? b->rank - 2 : 0, n = na > nb ? na : nb;
    if (n + 2 > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "tensor has too many (>%d) dims: %d", TGX_MAX_DIMS, n + 2);
    for (int i = 0; i < n; i++) {
        int64_t x = i >= n - na ? a->sizes[i - (n - na)] : 1, y = i >= n - nb ? b->sizes[i - (n - nb)] : 1;
        if (x != y && x != 1 && y != 1)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
                            "dimension %d: matmul() got %s and %s; the dimensions before the last two broadcast", ll(x), ll(y), i,
                            tgx_shape_text(a), tgx_shape_text(b));
        sizes[i] = x == 1 ? y : x;
    }
    return n;
}

/* What is added must have the product's dtype and expand to its shape. */
static int check_start(tgx_call *c, const tgx_tensor *start, const tgx_tensor *b, const tgx_output *o) {
    int shift = o->rank - start->rank;
    if (start->dtype != b->dtype) {
        if (is_named(c, "baddbmm"))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                            cpp_names[start->dtype], cpp_names[b->dtype], cpp_names[b->dtype]);
        return tgx_fail(c, TGX_RUNTIME_ERROR, "self and mat2 must have the same dtype, but got %s and %s: %s() needs one dtype for all its "
                        "tensors", tgx_dtype_title(start->dtype), tgx_dtype_title(b->dtype), c->title);
    }
    for (int i = start->rank - 1; i >= 0; i--) {
        int64_t wanted = i + shift >= 0 ? o->dims[i + shift] : 1;
        if (shift < 0 || (start->sizes[i] != wanted && start->sizes[i] != 1))
            return tgx_fail(c, TGX_RUNTIME_ERROR, "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
                            "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s: what %s() adds must expand to the shape of "
                            "the product", ll(shift >= 0 ? wanted : 1), ll(start->sizes[i]),
                            i + shift > 0 ? i + shift : 0, tgx_sizes_text(o->dims, o->rank), tgx_shape_text(start), c->title);
    }
    return 0;
}

int tgx_product_sizes(tgx_call *c, const tgx_tensor *a, const tgx_tensor *b, const tgx_tensor *start) {
    tgx_output *o = &c->outputs[0];
    int n = 0;
    if (a->dtype != b->dtype) return other_dtype(c, a, b);
    if (a->rank == 0 || b->rank == 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "both arguments to %s need to be at least 1D, but they are %dD and %dD. Use mul() for a product "
                        "with a number.", c->title, a->rank, b->rank);
    if (a->sizes[a->rank - 1] != tgx_depth_of(b)) return bad_depth(c, a, b);
    if ((a->rank > 2 || b->rank > 2) && (n = batch_shape(c, a, b, o->dims)) < 0) return TGX_FAILED;
    if (a->rank > 1) o->dims[n++] = tgx_rows_of(a);
    if (b->rank > 1) o->dims[n++] = tgx_cols_of(b);
    tgx_fresh(c, 0, n, a->dtype);
    return start ? check_start(c, start, b, o) : 0;
}

int64_t tgx_product_room(int dtype, const tgx_tensor *a, const tgx_tensor *b, const tgx_output *o) {
    int64_t m = 1;
    for (int i = 0; i < o->rank - 1; i++) m *= o->dims[i];
    return tgx_block_product_room(dtype, tgx_is_one_matrix(b) ? m : tgx_rows_of(a), tgx_cols_of(b), tgx_depth_of(b));
}
