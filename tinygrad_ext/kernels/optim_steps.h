/* Included by optim_isa.h with T float and double. The operations and their order are those of the update in ops
 * (optim/_fused.py), so both give the same values to rounding. */

#define EACH _Pragma("omp simd") for (ptrdiff_t i = lo; i < hi; i++)

static int NAME(sgd)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_sgd_job *job = ctx;
    T *p = (T *)job->param, *m = (T *)job->buf;
    const T *grad = (const T *)job->grad;
    const T lr = (T)job->lr, momentum = (T)job->momentum, fresh = (T)(1.0 - job->dampening);
    const T decay = (T)job->weight_decay, sign = job->maximize ? -1 : 1;
    if (!m) {
        if (decay == 0) EACH p[i] -= lr * (sign * grad[i]);
        else EACH p[i] -= lr * (sign * grad[i] + decay * p[i]);
        return 0;
    }
    if (job->nesterov) {
        EACH {
            T g = sign * grad[i] + decay * p[i];
            m[i] = momentum * m[i] + fresh * g;
            p[i] -= lr * (g + momentum * m[i]);
        }
    } else {
        EACH {
            m[i] = momentum * m[i] + fresh * (sign * grad[i] + decay * p[i]);
            p[i] -= lr * m[i];
        }
    }
    return 0;
}

static int NAME(adam)(void *ctx, ptrdiff_t lo, ptrdiff_t hi) {
    const tgx_adam_job *job = ctx;
    T *p = (T *)job->param, *mean = (T *)job->mean, *square = (T *)job->square, *largest = (T *)job->largest;
    const T *grad = (const T *)job->grad;
    const T new1 = (T)(1.0 - job->beta1), beta2 = (T)job->beta2, new2 = (T)(1.0 - job->beta2), eps = (T)job->eps;
    const T decay = (T)job->weight_decay, sign = job->maximize ? -1 : 1, keep = (T)job->keep;
    const T step = (T)job->step_size, root = (T)job->root;
    /* as lerp is computed, from the nearer end */
    const T old1 = 1 - new1;
    const int near = new1 < (T)0.5;
#define LERP(mean, g) (near ? (mean) + new1 * ((g) - (mean)) : (g) - ((g) - (mean)) * old1)
    if (largest) {
        EACH {
            T x = p[i] * keep, g = sign * grad[i] + decay * x;
            mean[i] = LERP(mean[i], g);
            square[i] = beta2 * square[i] + new2 * (g * g);
            /* a NaN stays, as in maximum */
            largest[i] = (square[i] > largest[i]) | (square[i] != square[i]) ? square[i] : largest[i];
            p[i] = x - step * (mean[i] / (SQRT(largest[i]) / root + eps));
        }
    } else {
        EACH {
            T x = p[i] * keep, g = sign * grad[i] + decay * x;
            mean[i] = LERP(mean[i], g);
            square[i] = beta2 * square[i] + new2 * (g * g);
            p[i] = x - step * (mean[i] / (SQRT(square[i]) / root + eps));
        }
    }
    return 0;
}
#undef LERP
#undef EACH
