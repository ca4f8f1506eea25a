/* Images (N, C, H, W) and volumes (N, C, D, H, W) at the points of a grid (N, ..., 2 or 3), x before y before z: the elements
 * read, what arrives for them given back to the elements, and to the points. The loops are in grid_sample_body.h.
 *
 * Of a block of points the corners and their weights are worked out once, for all channels. Rejected: a composite that gathers
 * each corner of all channels into a tensor, six times as long; corners for each channel anew, twice as long for three. */
#include "grid_sample.h"
#include "isa.h"

static const tgx_grid_table *loops(void) {
    static const tgx_grid_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_grid);
    return chosen;
}

static int mode_of(const char *word) {
    return !strcmp(word, "bilinear") ? TGX_BILINEAR : !strcmp(word, "nearest") ? TGX_NEAREST : !strcmp(word, "bicubic") ? TGX_BICUBIC : -1;
}

static int padding_of(const char *word) {
    return !strcmp(word, "zeros") ? TGX_ZEROS : !strcmp(word, "border") ? TGX_BORDER : !strcmp(word, "reflection") ? TGX_REFLECTION : -1;
}

/* Tensors a and b count images, channels and sizes, the grid points; `first` is where (mode, padding_mode, align) begin. */
static int check(tgx_call *c, int a, int grid, int first) {
    const tgx_tensor *x = tgx_in(c, a), *g = tgx_in(c, grid);
    const int mode = mode_of(c->args[first].text);
    if (x->dtype != TGX_F32 && x->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"grid_sampler\" not implemented for '%s': give floating tensors", tgx_dtype_title(x->dtype));
    if (x->dtype != g->dtype)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected input and grid to have same dtype, but input has %s and grid has %s: "
                        "convert one of them", tgx_dtype_name(x->dtype), tgx_dtype_name(g->dtype));
    if ((x->rank != 4 && x->rank != 5) || g->rank != x->rank || g->sizes[g->rank - 1] != x->rank - 2 || g->sizes[0] != x->sizes[0])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch size, "
                        "and a grid whose last dimension counts the spatial ones, but got input with sizes %s and grid with sizes %s",
                        tgx_shape_text(x), tgx_shape_text(g));
    if (mode < 0 || padding_of(c->args[first + 1].text) < 0)
        return tgx_fail(c, TGX_VALUE_ERROR, "grid_sampler(): expected mode bilinear, nearest or bicubic and padding_mode zeros, border or reflection, "
                        "but got '%s' and '%s'", c->args[first].text, c->args[first + 1].text);
    if (mode == TGX_BICUBIC && x->rank == 5)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): bicubic interpolation only supports 4D input, but got sizes %s", tgx_shape_text(x));
    tgx_need_dense(c, a);
    tgx_need_dense(c, grid);
    return 0;
}

static int check_space(tgx_call *c, const int64_t *sizes, int dims) {
    for (int i = 0; i < dims; i++)
        if (sizes[i] <= 0)
            return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected input to have non-empty spatial dimensions, but got sizes %s",
                            tgx_sizes_text(sizes, dims));
    return 0;
}

static int run(tgx_call *c, tgx_grid_job *job, const int64_t *sizes, int grid, int first, const tgx_grid_fn fn[2][2], int by_plane) {
    const tgx_tensor *g = tgx_in(c, grid);
    const int wide = g->dtype == TGX_F64;
    job->to = tgx_out(c, 0)->data, job->grid = g->data, job->dims = g->rank - 2;
    job->mode = mode_of(c->args[first].text), job->padding = padding_of(c->args[first + 1].text), job->align = (int)tgx_int(c, first + 2);
    job->points = job->plane = 1;
    for (int i = job->dims - 1; i >= 0; i--) job->size[i] = sizes[i], job->stride[i] = job->plane, job->plane *= sizes[i];
    for (int i = 1; i <= job->dims; i++) job->points *= g->sizes[i];
    if (!tgx_out(c, 0)->count) return 0;
    job->blocks = (job->points + TGX_GRID_BLOCK - 1) / TGX_GRID_BLOCK;
    const tgx_grid_fn loop = fn[wide][job->plane > INT32_MAX];
    if (by_plane) return tgx_range(c, loop, job, g->sizes[0] * job->channels, 1 + TGX_SMALL / (2 * (job->points + job->plane)));
    return tgx_range(c, loop, job, g->sizes[0] * job->blocks, 1 + TGX_SMALL / (TGX_GRID_BLOCK * (job->channels + 4)));
}

/* (input, grid, mode, padding_mode, align) */
static int read_shape(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0), *g = tgx_in(c, 1);
    if (check(c, 0, 1, 2) || check_space(c, x->sizes + 2, x->rank - 2)) return TGX_FAILED;
    tgx_output *o = tgx_fresh(c, 0, x->rank, x->dtype);
    memcpy(o->dims, x->sizes, 2 * sizeof(int64_t));
    memcpy(o->dims + 2, g->sizes + 1, (size_t)(x->rank - 2) * sizeof(int64_t));
    return tgx_check_sizes(c, o->dims, x->rank, "grid_sampler()");
}
static int read_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 0);
    tgx_grid_job job = {.x = x->data, .channels = x->sizes[1]};
    return run(c, &job, x->sizes + 2, 1, 2, loops()->read, 0);
}
TGX_KERNEL(grid_sample, read_shape, read_run, 0)

/* What arrived, (N, C, points), against the points of the grid. */
static int check_grad(tgx_call *c, int grid) {
    const tgx_tensor *grad = tgx_in(c, 0), *g = tgx_in(c, grid);
    for (int i = 1; i < g->rank - 1; i++)
        if (grad->sizes[i + 1] != g->sizes[i])
            return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected a gradient for each point of the grid %s, got sizes %s",
                            tgx_shape_text(g), tgx_shape_text(grad));
    return 0;
}

/* (grad_output, grid, size, mode, padding_mode, align): by input, whose planes have `size`. */
static int spread_shape(tgx_call *c) {
    const tgx_tensor *grad = tgx_in(c, 0);
    const tgx_value *size = &c->args[2];
    if (check(c, 0, 1, 3) || check_grad(c, 1)) return TGX_FAILED;
    if (size->n != grad->rank - 2)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected %d sizes of the input, got %d", grad->rank - 2, size->n);
    if (check_space(c, size->ints, size->n)) return TGX_FAILED;
    tgx_output *o = tgx_fresh(c, 0, grad->rank, grad->dtype);
    memcpy(o->dims, grad->sizes, 2 * sizeof(int64_t));
    memcpy(o->dims + 2, size->ints, (size_t)size->n * sizeof(int64_t));
    return tgx_check_sizes(c, o->dims, grad->rank, "grid_sampler()");
}
static int spread_run(tgx_call *c) {
    const tgx_tensor *grad = tgx_in(c, 0);
    tgx_grid_job job = {.grad = grad->data, .channels = grad->sizes[1]};
    return run(c, &job, c->args[2].ints, 1, 3, loops()->spread, 1);
}
TGX_KERNEL(grid_sample_to_input, spread_shape, spread_run, 0)

/* (grad_output, input, grid, mode, padding_mode, align): by grid. */
static int slopes_shape(tgx_call *c) {
    const tgx_tensor *grad = tgx_in(c, 0), *x = tgx_in(c, 1);
    if (check(c, 0, 2, 3) || check(c, 1, 2, 3) || check_grad(c, 2) || check_space(c, x->sizes + 2, x->rank - 2)) return TGX_FAILED;
    if (grad->sizes[1] != x->sizes[1])
        return tgx_fail(c, TGX_RUNTIME_ERROR, "grid_sampler(): expected a gradient for each channel of input %s, got sizes %s",
                        tgx_shape_text(x), tgx_shape_text(grad));
    tgx_like(c, 0, tgx_in(c, 2), grad->dtype);
    return 0;
}
static int slopes_run(tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, 1);
    tgx_grid_job job = {.grad = tgx_in(c, 0)->data, .x = x->data, .channels = x->sizes[1]};
    return run(c, &job, x->sizes + 2, 2, 3, loops()->slopes, 0);
}
TGX_KERNEL(grid_sample_to_grid, slopes_shape, slopes_run, 0)
