/* Included by class_loss.c with T float and double. */

/* Weight of the targets that count. */
static double NAME(total_weight)(const classes *k) {
    const T *w = (const T *)k->weight;
    double total = 0;
    for (int64_t i = 0; i < k->outer * k->inner; i++) {
        int64_t t = target_at(k, i);
        if (t >= 0) total += w ? w[t] : 1;
    }
    return total;
}

/* weight * (lse - x[target]) for each target, into `to` (may be NULL); their sum. */
static double NAME(picked)(const classes *k, const void *x, const void *lse, void *to) {
    const T *w = (const T *)k->weight, *from = x, *l = lse;
    T *out = to;
    double total = 0;
    int64_t i = 0;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t n = 0; n < k->inner; n++, i++) {
            int64_t t = target_at(k, i);
            T v = 0;
            if (t >= 0) {
                v = -from[k->chosen ? i : (o * k->classes + t) * k->inner + n];
                if (l) v += l[i];
                if (w) v *= w[t];
            }
            if (out) out[i] = v;
            total += v;
        }
    return total;
}

/* Factor of each target's row in the derivative: gradient times weight, divided by the total for a mean. */
static void NAME(scales)(const classes *k, const void *gradient, int64_t how, void *to) {
    const T *w = (const T *)k->weight, *g = gradient;
    T *out = to, all = 0;
    if (how != TGX_LOSS_NONE) all = how == TGX_LOSS_MEAN ? g[0] / (T)NAME(total_weight)(k) : g[0];
    for (int64_t i = 0; i < k->outer * k->inner; i++) {
        int64_t t = target_at(k, i);
        if (t < 0) {
            out[i] = 0;
            continue;
        }
        out[i] = how == TGX_LOSS_NONE ? g[i] : all;
        if (w) out[i] *= w[t];
    }
}

/* out[target] -= scale. */
static void NAME(subtract)(const classes *k, void *to, const void *scale) {
    const T *s = scale;
    T *out = to;
    int64_t i = 0;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t n = 0; n < k->inner; n++, i++) {
            int64_t t = target_at(k, i);
            if (t >= 0) out[(o * k->classes + t) * k->inner + n] -= s[i];
        }
}
