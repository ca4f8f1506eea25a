/* Kernels that order pixels and channels anew: pixel_shuffle, pixel_unshuffle, channel_shuffle. Each is one copy between windows
 * of input and result in which dimensions are cut in two.
 *
 * Rejected: composites of reshape, permute and clone, whose four calls took 2.3 us for a handful of elements. */
#include "channels.h"
#include "part.h"

/* Dimension `dim` as two, the second of `inner` elements. */
static void cut(tgx_part *p, int dim, int64_t inner) {
    tgx_part_insert(p, dim + 1);
    p->t.sizes[dim + 1] = inner, p->t.strides[dim + 1] = p->t.strides[dim];
    p->t.sizes[dim] /= inner, p->t.strides[dim] *= inner;
    p->t.flags = 0;
}

/* (self, factor), whose result has other sizes. */
static int resized(tgx_call *c, const char *factor, int rank) {
    const tgx_tensor *t = tgx_in(c, 0);
    if (rank < 3 || rank + 2 > TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s expects input to have at least 3 dimensions, but got input with %d dimension(s); %d "
                        "at most", c->title, rank, TGX_MAX_DIMS - 2);
    if (tgx_int(c, 1) <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s expects a positive %s, but got %lld", c->title, factor, (long long)tgx_int(c, 1));
    memcpy(tgx_fresh(c, 0, rank, t->dtype)->dims, t->sizes, (size_t)rank * sizeof(int64_t));
    return 0;
}

/* Images keep channels_last; a stack of them has five dimensions and is no volume. */
static int ordered(tgx_call *c) { return tgx_in(c, 0)->rank == 4 ? tgx_keep_channels(c, tgx_in(c, 0)) : 0; }

static int indivisible(tgx_call *c, const char *what, int dim, int64_t size, int64_t by) {
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s expects its input's %s, but input.size(%d)=%lld is not divisible by %lld", c->title, what,
                    dim, (long long)size, (long long)by);
}

static int times(tgx_call *c, int64_t *size, int64_t r) {
    if (!__builtin_mul_overflow(*size, r, size)) return 0;
    return tgx_fail(c, TGX_RUNTIME_ERROR, "%s: a result of %s by %lld has too many elements: give a smaller factor", c->title,
                    tgx_shape_text(tgx_in(c, 0)), (long long)r);
}

static int pixel_shuffle_shape(tgx_call *c) {
    const int rank = tgx_in(c, 0)->rank;
    if (resized(c, "upscale_factor", rank)) return TGX_FAILED;
    int64_t r = tgx_int(c, 1), *sizes = c->outputs[0].dims + rank - 3, square;
    if (__builtin_mul_overflow(r, r, &square)) square = INT64_MAX;
    if (sizes[0] % square)
        return indivisible(c, "'channel' dimension to be divisible by the square of upscale_factor", -3, sizes[0], square);
    sizes[0] /= square;
    return times(c, sizes + 1, r) || times(c, sizes + 2, r) ? TGX_FAILED : ordered(c);
}

static int pixel_unshuffle_shape(tgx_call *c) {
    const int rank = tgx_in(c, 0)->rank;
    if (resized(c, "downscale_factor", rank)) return TGX_FAILED;
    int64_t r = tgx_int(c, 1), *sizes = c->outputs[0].dims + rank - 3;
    for (int i = 1; i < 3; sizes[i++] /= r)
        if (sizes[i] % r)
            return indivisible(c, i == 1 ? "height to be divisible by downscale_factor" : "width to be divisible by downscale_factor",
                               i - 3, sizes[i], r);
    return times(c, sizes, r) || times(c, sizes, r) ? TGX_FAILED : ordered(c);
}

/* Between channels (.., C r r, H, W) and pixels (.., C, H r, W r), both seen as (.., C, H, r, W, r). */
static int pixels(tgx_call *c, const tgx_tensor *channels, const tgx_tensor *pixels, int back) {
    const int64_t r = tgx_int(c, 1);
    const int n = channels->rank - 3;
    tgx_part a, b;
    if (channels->count == 0) return 0;
    tgx_part_of(&a, channels), tgx_part_of(&b, pixels);
    cut(&b, n + 2, r), cut(&b, n + 1, r);
    cut(&a, n, r), cut(&a, n, r);                             /* C, r, r, H, W */
    tgx_part_swap(&a, n + 1, n + 3), tgx_part_swap(&a, n + 2, n + 3); /* C, H, r, r, W, first the first r */
    tgx_part_swap(&a, n + 3, n + 4);
    return back ? c->services->copy(&a.t, &b.t) : c->services->copy(&b.t, &a.t);
}
static int pixel_shuffle_run(tgx_call *c) { return pixels(c, tgx_in(c, 0), tgx_out(c, 0), 0); }
static int pixel_unshuffle_run(tgx_call *c) { return pixels(c, tgx_out(c, 0), tgx_in(c, 0), 1); }
TGX_KERNEL(pixel_shuffle, pixel_shuffle_shape, pixel_shuffle_run, TGX_NATURAL)
TGX_KERNEL(pixel_unshuffle, pixel_unshuffle_shape, pixel_unshuffle_run, TGX_NATURAL)

static int channel_shuffle_shape(tgx_call *c) {
    const tgx_tensor *t = tgx_in(c, 0);
    const int64_t groups = tgx_int(c, 1);
    if (t->rank < 3 || t->rank == TGX_MAX_DIMS)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "%s expects input with > 2 dims and less than %d, but got input with sizes %s", c->title,
                        TGX_MAX_DIMS, tgx_shape_text(t));
    if (groups <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Number of groups to divide channels in must be positive. Value of groups:%lld",
                        (long long)groups);
    if (t->sizes[1] % groups)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
                        (long long)t->sizes[1], (long long)groups);
    tgx_like(c, 0, t, t->dtype);
    return tgx_keep_channels(c, t);
}

static int channel_shuffle_run(tgx_call *c) {
    const int64_t groups = tgx_int(c, 1);
    tgx_part from, to;
    if (tgx_in(c, 0)->count == 0) return 0;
    tgx_part_of(&from, tgx_in(c, 0)), tgx_part_of(&to, tgx_out(c, 0));
    cut(&to, 1, groups), cut(&from, 1, from.t.sizes[1] / groups);
    return c->services->copy(&to.t, tgx_part_swap(&from, 1, 2));
}
TGX_KERNEL(channel_shuffle, channel_shuffle_shape, channel_shuffle_run, TGX_NATURAL)
