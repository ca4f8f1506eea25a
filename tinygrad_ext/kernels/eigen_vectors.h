/* Vectors of a Schur form, and the whole for a small matrix of numbers T. Included by eigen.c. */

typedef struct { T re, im; } NAME(number);

INLINE NAME(number) NAME(over)(NAME(number) x, NAME(number) y) {
    if (ABS(y.re) >= ABS(y.im)) {
        const T ratio = y.im / y.re, by = 1 / (y.re + y.im * ratio);
        return (NAME(number)){(x.re + x.im * ratio) * by, (x.im - x.re * ratio) * by};
    }
    const T ratio = y.re / y.im, by = 1 / (y.re * ratio + y.im);
    return (NAME(number)){(x.re * ratio + x.im) * by, (x.im * ratio - x.re) * by};
}
INLINE NAME(number) NAME(less_product)(NAME(number) x, NAME(number) y, NAME(number) z) {
    return (NAME(number)){x.re - (y.re * z.re - y.im * z.im), x.im - (y.re * z.im + y.im * z.re)};
}
INLINE T NAME(extent)(NAME(number) x) { return ABS(x.re) + ABS(x.im); }
/* What would be divided by zero, or nearly, is divided by so small a number. */
INLINE NAME(number) NAME(no_zero)(NAME(number) x, T least) { return NAME(extent)(x) < least ? (NAME(number)){least, 0} : x; }

/* x of (H - value) x = 0 in elements 0 to k, of which those from `end` on are there: block by block from below. */
static void NAME(backward)(const NAME(schur) *s, int wide, int end, NAME(number) value, T least, NAME(number) *x, int k) {
    const T *h = s->h;
    for (int j = end - 1; j >= 0; j--) {
        const int two = j > 0 && h[j * wide + j - 1] != 0, first = j - two;
        NAME(number) right[2];
        for (int i = first; i <= j; i++) {
            T re = 0, im = 0;
            for (int c = j + 1; c <= k; c++) re -= h[i * wide + c] * x[c].re, im -= h[i * wide + c] * x[c].im;
            right[i - first] = (NAME(number)){re, im};
        }
        if (!two) x[j] = NAME(over)(right[0], NAME(no_zero)((NAME(number)){h[j * (wide + 1)] - value.re, -value.im}, least));
        else { /* by elimination with the larger of the first column */
            const NAME(number) a = {h[first * (wide + 1)] - value.re, -value.im}, d = {h[j * (wide + 1)] - value.re, -value.im};
            const NAME(number) b = {h[first * wide + j], 0}, c = {h[j * wide + first], 0};
            const int own = NAME(extent)(a) >= NAME(extent)(c);
            const NAME(number) pivot = own ? a : c, beside = own ? b : d, below = own ? c : a, last = own ? d : b;
            const NAME(number) by = NAME(over)(below, pivot), upper = right[!own], lower = right[own];
            x[j] = NAME(over)(NAME(less_product)(lower, by, upper), NAME(no_zero)(NAME(less_product)(last, by, beside), least));
            x[first] = NAME(over)(NAME(less_product)(upper, beside, x[j]), pivot);
        }
        T most = NAME(extent)(x[j]) + NAME(extent)(x[first]);
        if (most > 1 / (EPSILON * (T)16)) /* another step might overflow */
            for (int c = first; c <= k; c++) x[c].re /= most, x[c].im /= most;
        j = first;
    }
}

/* Each vector has the norm one, and of complex ones the largest element is real. */
static void NAME(vectors)(const NAME(schur) *s, int wide, NAME(number) *to) {
    const int n = s->n;
    T size = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) size = ABS(s->h[i * wide + j]) > size ? ABS(s->h[i * wide + j]) : size;
    const T least = EPSILON * size > TINY / EPSILON ? EPSILON * size : TINY / EPSILON;
    for (int k = n - 1; k >= 0; k--) {
        NAME(number) x[TGX_EIGEN_ORDER] = {{0}}, value = {s->re[k], 0};
        int end = k;
        if (s->im[k] == 0) x[k].re = 1;
        else { /* the pair's first value */
            const T b = s->h[(k - 1) * wide + k], c = s->h[k * wide + k - 1];
            end = k - 1, value.im = s->im[k - 1];
            if (ABS(b) >= ABS(c)) x[k - 1].re = 1, x[k].im = value.im / b;
            else x[k - 1].re = b / value.im, x[k].im = 1;
        }
        NAME(backward)(s, wide, end, value, least, x, k);
        T re[TGX_EIGEN_ORDER] = {0}, im[TGX_EIGEN_ORDER] = {0}, sum = 0, most = 0;
        for (int m = 0; m <= k; m++)
            for (int i = 0; i < wide; i++) re[i] += s->z[m * wide + i] * x[m].re, im[i] += s->z[m * wide + i] * x[m].im;
        for (int i = 0; i < n; i++) {
            re[i] *= s->scale[i], im[i] *= s->scale[i];
            const T own = ABS(re[i]) > ABS(im[i]) ? ABS(re[i]) : ABS(im[i]);
            most = own > most ? own : most;
        }
        for (int i = 0; i < n; i++) re[i] /= most, im[i] /= most, sum += re[i] * re[i] + im[i] * im[i];
        T by = 1 / ROOT(sum), turn = 0;
        if (s->im[k] != 0) {
            int at = 0;
            for (int i = 1; i < n; i++) at = re[i] * re[i] + im[i] * im[i] > re[at] * re[at] + im[at] * im[at] ? i : at;
            const T length = ROOT(re[at] * re[at] + im[at] * im[at]);
            turn = -im[at] / length * by, by = re[at] / length * by;
            for (int i = 0; i < n; i++) {
                const T x = re[i] * by - im[i] * turn, y = i == at ? 0 : im[i] * by + re[i] * turn;
                to[i * n + k - 1] = (NAME(number)){x, y}, to[i * n + k] = (NAME(number)){x, -y};
            }
            k--;
        } else
            for (int i = 0; i < n; i++) to[i * n + k] = (NAME(number)){re[i] * by, 0};
    }
}

static int NAME(eigen)(const T *a, int n, NAME(number) *values, NAME(number) *to) {
    const int wide = (n + 3) & ~3;
    NAME(schur) s;
    T most = 0;
    int power;
    s.n = n, s.vectors = to != NULL;
    for (int i = 0; i < n * n; i++) most = ABS(a[i]) > most ? ABS(a[i]) : most;
    if (most < 4 * TINY) return 0;
    FREXP(most, &power); /* numbers near one, whose squares neither overflow nor lose what counts */
    const T by = LDEXP(1, -power), back = LDEXP(1, power - 1) * 2;
    memset(s.h, 0, (size_t)(wide * wide) * sizeof(T));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) s.h[i * wide + j] = a[i * n + j] * by;
    if (!NAME(balanced)(&s, wide)) return 0;
    if (to) {
        memset(s.z, 0, (size_t)(wide * wide) * sizeof(T));
        for (int i = 0; i < n; i++) s.z[i * (wide + 1)] = 1;
    }
    NAME(hessenberg)(&s, wide);
    if (!NAME(iterated)(&s, wide)) return 0;
    for (int i = 0; i < n; i++) values[i] = (NAME(number)){s.re[i] * back, s.im[i] * back};
    if (to) NAME(vectors)(&s, wide, to);
    return 1;
}
