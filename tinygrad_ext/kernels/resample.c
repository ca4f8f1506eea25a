/* Images of another size, one dimension at a time: nearest elements, linear and cubic sums, windows, and the transpose of each. The loops
 * are in resample_isa.h.
 *
 * Where each place reads, and by which weights, is worked out once for the dimension, in the dtype of the elements. Rejected:
 * index_select for each tap and sums of whole tensors, two to four times the memory and up to 2.6 of PyTorch's time; all
 * dimensions in one loop, which for images that grow reads 4 or 8 elements for each of the result instead of 2. */
#include "resample.h"
#include <math.h>
#include "channels.h"
#include "isa.h"

static const tgx_resample_table *loops(void) {
    static const tgx_resample_table *chosen;
    if (!chosen) chosen = TGX_PICK(tgx_resample);
    return chosen;
}

enum { X, DIM, SIZE, FACTOR, MODE, ALIGN };
enum { NEAREST, EXACT, LINEAR, CUBIC, TRIANGLE, KEYS, LANCZOS };

static int mode_of(const char *word) {
    return !strcmp(word, "nearest") ? NEAREST : !strcmp(word, "nearest-exact") ? EXACT : !strcmp(word, "linear") ? LINEAR
           : !strcmp(word, "cubic") ? CUBIC : !strcmp(word, "triangle") ? TRIANGLE : !strcmp(word, "keys") ? KEYS
           : !strcmp(word, "lanczos") ? LANCZOS : -1;
}

static int taps_of(int mode) { return mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1; }

/* How far apart two neighbouring places lie. */
static double step_of(const tgx_call *c, int64_t size, int64_t places) {
    if (tgx_int(c, ALIGN)) return places > 1 ? (double)(size - 1) / (double)(places - 1) : 0;
    return tgx_given(c, FACTOR) ? 1 / tgx_float(c, FACTOR) : (double)size / (double)places;
}

/* Half a window: one, two or three elements, or as many steps where these are longer. */
static double reach_of(int mode, double step) { return (mode - TRIANGLE + 1) * (step > 1 ? step : 1); }

/* Elements of the largest window, none for the other modes. */
static int64_t window_of(int mode, double step, int64_t size) {
    if (mode < TRIANGLE) return 0;
    const double most = 2 * ceil(reach_of(mode, step)) + 1;
    return most < (double)size ? (int64_t)most : size;
}

static int64_t within(int64_t i, int64_t size) { return i < 0 ? 0 : i < size ? i : size - 1; }

/* Keys 1981, with -3/4: weights of the elements at -1, 0, 1 and 2 for a point t behind 0. */
#define PLACES(T, FLOOR) \
static void places_##T(int mode, int align, double given, int64_t size, int64_t n, int64_t *at, T *weight) { \
    const T step = (T)given, a = (T)-0.75; \
    for (int64_t i = 0; i < n; i++) { \
        if (mode <= EXACT) { \
            at[i] = within((int64_t)floorf((mode == EXACT ? (float)i + 0.5f : (float)i) * (float)given), size); \
            continue; \
        } \
        T x = align ? (T)i * step : ((T)i + (T)0.5) * step - (T)0.5; \
        if (mode == LINEAR) { \
            x = x < 0 ? 0 : x; \
            const int64_t low = within((int64_t)x, size); \
            const T t = x - (T)low; \
            at[i] = low, at[n + i] = within(low + 1, size), weight[i] = 1 - t, weight[n + i] = t; \
            continue; \
        } \
        const T low = FLOOR(x), t = x - low, u = 1 - t, far = t + 1, rest = 2 - t; \
        for (int k = 0; k < 4; k++) at[k * n + i] = within((int64_t)low + k - 1, size); \
        weight[i] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a; \
        weight[n + i] = ((a + 2) * t - (a + 3)) * t * t + 1; \
        weight[2 * n + i] = ((a + 2) * u - (a + 3)) * u * u + 1; \
        weight[3 * n + i] = ((a * rest - 5 * a) * rest + 8 * a) * rest - 4 * a; \
    } \
}
PLACES(float, floorf)
PLACES(double, floor)

static int64_t cut(double x, int64_t size) { return !(x > 0) ? 0 : x < (double)size ? (int64_t)x : size; }

/* A triangle, Keys's cubic with -1/2 or Lanczos's window of sinc, at t >= 0. */
static double height(int mode, double t) {
    const double pi = 3.14159265358979323846;
    if (mode == TRIANGLE) return t < 1 ? 1 - t : 0;
    if (mode == KEYS) return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : t < 2 ? (((t - 5) * t + 8) * t - 4) * -0.5 : 0;
    return t == 0 ? 1 : t < 3 ? sin(pi * t) * sin(pi * t / 3) * 3 / (pi * pi * t * t) : 0;
}

#define WINDOWS(T) \
static void windows_##T(int mode, double given, int64_t size, int64_t n, int64_t window, int64_t *at, T *weight) { \
    const T step = (T)given, reach = (T)reach_of(mode, step), width = step > 1 ? step : 1; \
    for (int64_t i = 0; i < n; i++, weight += window) { \
        const T center = ((T)i + (T)0.5) * step; \
        const int64_t first = cut(center - reach + (T)0.5, size), last = cut(center + reach + (T)0.5, size); \
        const int64_t count = last - first < window ? last - first : window; \
        T sum = 0; \
        for (int64_t k = 0; k < count; k++) { \
            const T t = ((T)(first + k) - center + (T)0.5) / width; \
            sum += weight[k] = (T)height(mode, t < 0 ? -t : t); \
        } \
        for (int64_t k = 0; k < count; k++) weight[k] /= sum; \
        at[i] = first < size ? first : 0, at[n + i] = count, at[2 * n + i] = i * window; \
    } \
} \
/* The windows by which the transpose reads: of element j the places whose windows have it, which follow one another. */ \
static void turned_##T(int64_t size, int64_t n, const int64_t *at, const T *weight, int64_t *to, T *w) { \
    int64_t *first = to, *count = to + size, *start = to + 2 * size, total = 0; \
    memset(to, 0, (size_t)(3 * size) * sizeof *to); \
    for (int64_t i = 0; i < n; i++) for (int64_t k = 0; k < at[n + i]; k++) if (!count[at[i] + k]++) first[at[i] + k] = i; \
    for (int64_t j = 0; j < size; j++) start[j] = total, total += count[j]; \
    for (int64_t i = 0; i < n; i++) \
        for (int64_t k = 0; k < at[n + i]; k++) w[start[at[i] + k] + i - first[at[i] + k]] = weight[at[2 * n + i] + k]; \
}
WINDOWS(float)
WINDOWS(double)

/* Whether images are read as they lie, channels innermost: only what counts as `inner` is another. */
static int in_channels(const tgx_call *c) {
    const tgx_tensor *x = tgx_in(c, X);
    return !(x->flags & TGX_CONTIGUOUS) && !c->target && tgx_channels_dense(x);
}

/* Whether the slices that are read are brought together, where x lies otherwise than in order: few of many, so that the others are
 * not copied. */
static int brings_slices(const tgx_tensor *x, int64_t size, int64_t places, int mode) {
    return !(x->flags & TGX_CONTIGUOUS) && mode < TRIANGLE && places <= size / (4 * taps_of(mode));
}

/* Those slices, a tap's after another's, in dense memory, where the job reads from then on. */
static int bring_slices(tgx_call *c, const tgx_tensor *x, int dim, tgx_resample_job *job, int64_t *at, char *room) {
    const int64_t n = job->places * job->taps, item = tgx_itemsize[x->dtype];
    int64_t sizes[TGX_MAX_DIMS], strides[TGX_MAX_DIMS], step = 1;
    tgx_tensor from = *x, to = {.sizes = sizes, .strides = strides, .rank = x->rank, .dtype = x->dtype};
    for (int i = x->rank - 1; i >= 0; i--) {
        sizes[i] = i == dim ? 1 : x->sizes[i];
        strides[i] = step, step *= i == dim ? n : sizes[i];
    }
    from.sizes = sizes, from.count = to.count = x->count / x->sizes[dim];
    for (int64_t i = 0; i < n; i++) {
        from.data = x->data + at[i] * x->strides[dim] * item, to.data = room + i * job->inner * item;
        if (c->services->copy(&to, &from)) return TGX_FAILED;
        at[i] = i;
    }
    job->from = room, job->size = n;
    return 0;
}

/* (self, dim, size, factor, mode, align): the places read, or with `back` what they were read from. */
static int shape(tgx_call *c, int back) {
    const tgx_tensor *x = tgx_in(c, X);
    const int mode = mode_of(c->args[MODE].text);
    if (x->dtype != TGX_F32 && x->dtype != TGX_F64)
        return tgx_fail(c, TGX_NOT_IMPLEMENTED_ERROR, "\"interpolate\" not implemented for '%s': give floating tensors", tgx_dtype_title(x->dtype));
    if (mode < 0)
        return tgx_fail(c, TGX_VALUE_ERROR, "interpolate: one dimension is read by nearest, nearest-exact, linear, cubic, triangle, keys or lanczos, got '%s'",
                        c->args[MODE].text);
    if (!x->rank || tgx_wrap_arg(c, DIM, x->rank))
        return x->rank ? TGX_FAILED : tgx_fail(c, TGX_RUNTIME_ERROR, "interpolate: there is no dimension to read in a tensor without any");
    const int64_t size = x->sizes[tgx_int(c, DIM)], wanted = tgx_int(c, SIZE), places = back ? size : wanted;
    if (size <= 0 || wanted <= 0)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "Input and output sizes should be greater than 0, but got input %s and output size %lld",
                        tgx_shape_text(x), (long long)wanted);
    const int inside = in_channels(c), slices = !back && !inside && brings_slices(x, size, wanted, mode);
    if (!slices && !inside) tgx_need_dense(c, X);
    tgx_output *o = tgx_fresh(c, 0, x->rank, x->dtype);
    memcpy(o->dims, x->sizes, (size_t)x->rank * sizeof(int64_t));
    o->dims[tgx_int(c, DIM)] = wanted;
    if (places >> 40) return tgx_check_sizes(c, o->dims, x->rank, "interpolate");
    const int64_t window = window_of(mode, step_of(c, back ? wanted : size, places), back ? wanted : size);
    if ((double)places * (double)window > 1e15)
        return tgx_fail(c, TGX_RUNTIME_ERROR, "interpolate: %lld places with windows of %lld elements are too many; give a larger scale_factor",
                        (long long)places, (long long)window);
    const int64_t windows = places * (3 * (int64_t)sizeof(int64_t) + window * (int64_t)sizeof(double));
    c->scratch_bytes = window ? (back ? 2 * windows + 3 * wanted * (int64_t)sizeof(int64_t) : windows)
                              : places * taps_of(mode) * (int64_t)(sizeof(int64_t) + sizeof(double));
    if (slices) c->scratch_bytes += x->count / size * places * taps_of(mode) * tgx_itemsize[x->dtype];
    if (tgx_check_sizes(c, o->dims, x->rank, "interpolate")) return TGX_FAILED;
    return inside ? tgx_keep_channels(c, x) : tgx_keep_channels_by_copy(c, x);
}

static int run(tgx_call *c, int back) {
    const tgx_tensor *x = tgx_in(c, X);
    const int inside = in_channels(c);
    tgx_tensor *out = tgx_out(c, 0);
    const int dim = (int)tgx_int(c, DIM), mode = mode_of(c->args[MODE].text), align = (int)tgx_int(c, ALIGN), wide = x->dtype == TGX_F64;
    const int64_t size = back ? tgx_int(c, SIZE) : x->sizes[dim], places = back ? x->sizes[dim] : tgx_int(c, SIZE);
    tgx_resample_job job = {.to = out->data, .from = x->data, .places = places, .size = size, .inner = 1, .taps = taps_of(mode)};
    const double step = step_of(c, size, places);
    job.window = window_of(mode, step, size);
    if (job.window) job.taps = 3;
    int64_t *at = c->scratch;
    char *weight = (char *)(at + places * job.taps);
    if (!out->count) return 0;
    if (inside) {
        int64_t strides[5];
        tgx_channels_strides(x->sizes, x->rank, strides);
        job.inner = strides[dim];
    } else
        for (int i = dim + 1; i < x->rank; i++) job.inner *= x->sizes[i];
    for (int k = 0; k < TGX_TAPS; k++) {
        const int own = k < job.taps ? k : 0;
        job.at[k] = at + own * places, job.weight[k] = weight + own * places * tgx_itemsize[x->dtype];
    }
    if (job.window && wide) windows_double(mode, step, size, places, job.window, at, (double *)weight);
    else if (job.window) windows_float(mode, step, size, places, job.window, at, (float *)weight);
    else if (wide) places_double(mode, align, step, size, places, at, (double *)weight);
    else places_float(mode, align, step, size, places, at, (float *)weight);
    if (job.window && back) {
        int64_t *turned = (int64_t *)(weight + places * job.window * (int64_t)sizeof(double));
        char *own = (char *)(turned + 3 * size);
        if (wide) turned_double(size, places, at, (double *)weight, turned, (double *)own);
        else turned_float(size, places, at, (float *)weight, turned, (float *)own);
        for (int k = 0; k < 3; k++) job.at[k] = turned + k * size;
        job.weight[0] = own, job.places = size, job.size = places, back = 0;
    }
    if (!back && !inside && brings_slices(x, size, places, mode)
        && bring_slices(c, x, dim, &job, at, (char *)c->scratch + places * job.taps * (int64_t)(sizeof(int64_t) + sizeof(double))))
        return TGX_FAILED;
    const ptrdiff_t plane = (size > places ? size : places) * job.inner;
    return tgx_range(c, (back ? loops()->spread : loops()->read)[wide], &job, out->count / (out->sizes[dim] * job.inner), 1 + TGX_SMALL / plane);
}

static int resample_shape(tgx_call *c) { return shape(c, 0); }
static int resample_rows(tgx_call *c) { return run(c, 0); }
static int resample_run(tgx_call *c) { return in_channels(c) ? run(c, 0) : tgx_run_rows(c, resample_rows); }
TGX_KERNEL(resample, resample_shape, resample_run, 0)

static int resample_backward_shape(tgx_call *c) { return shape(c, 1); }
static int resample_backward_rows(tgx_call *c) { return run(c, 1); }
static int resample_backward_run(tgx_call *c) { return in_channels(c) ? run(c, 1) : tgx_run_rows(c, resample_backward_rows); }
TGX_KERNEL(resample_backward, resample_backward_shape, resample_backward_run, 0)
