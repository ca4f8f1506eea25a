/* Eigenvalues and vectors of a small complex matrix with parts of T. Included by eigen.c behind eigen_vectors.h.
 *
 * Real and imaginary parts are matrices of their own, whose rows are a multiple of four numbers long, with zeros at the end. Of the
 * unitary factor the columns are kept as rows. */

typedef struct {
    T re[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER], im[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER];        /* becomes the Schur form, a triangle */
    T z_re[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER], z_im[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER];    /* its vectors */
    T scale[TGX_EIGEN_ORDER];
    int n, wide, vectors;
} NAME(unitary);

INLINE NAME(number) NAME(at)(const NAME(unitary) *s, int row, int column) {
    return (NAME(number)){s->re[row * s->wide + column], s->im[row * s->wide + column]};
}
INLINE void NAME(put)(NAME(unitary) *s, int row, int column, NAME(number) x) {
    s->re[row * s->wide + column] = x.re, s->im[row * s->wide + column] = x.im;
}
INLINE NAME(number) NAME(less)(NAME(number) x, NAME(number) y) { return (NAME(number)){x.re - y.re, x.im - y.im}; }
INLINE NAME(number) NAME(times)(NAME(number) x, NAME(number) y) {
    return (NAME(number)){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
INLINE T NAME(length)(NAME(number) x) { return ROOT(x.re * x.re + x.im * x.im); }

/* The absolute value, whose square may be too small to have all digits, and the number divided by it. */
INLINE T NAME(polar)(NAME(number) x, NAME(number) *phase) {
    const T size = NAME(extent)(x), re = size > 0 ? x.re / size : 1, im = size > 0 ? x.im / size : 0, own = ROOT(re * re + im * im);
    *phase = (NAME(number)){re / own, im / own};
    return own * size;
}

/* Of the two roots that which is nearer to `like`. */
static NAME(number) NAME(root)(NAME(number) x, NAME(number) like) {
    const T size = NAME(length)(x), big = ROOT((size + ABS(x.re)) / 2);
    NAME(number) y = {0, 0};
    if (big > 0) y = x.re >= 0 ? (NAME(number)){big, x.im / (2 * big)} : (NAME(number)){ABS(x.im) / (2 * big), SIGN(big, x.im)};
    return y.re * like.re + y.im * like.im < 0 ? (NAME(number)){-y.re, -y.im} : y;
}

/* Rows and columns brought to norms alike, as eigen_schur.h does. Returns 0 where one has nothing beside the diagonal. */
static int NAME(balanced_complex)(NAME(unitary) *s) {
    const int n = s->n, wide = s->wide;
    for (int i = 0; i < n; i++) s->scale[i] = 1;
    for (int sweep = 0, changed = 1; changed && sweep < SWEEPS; sweep++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            T row = 0, column = 0, f = 1;
            for (int j = 0; j < n; j++) {
                const NAME(number) x = NAME(at)(s, i, j), y = NAME(at)(s, j, i);
                if (j != i) row += x.re * x.re + x.im * x.im, column += y.re * y.re + y.im * y.im;
            }
            if (row == 0 || column == 0) return 0;
            const NAME(number) own = NAME(at)(s, i, i);
            const T square = own.re * own.re + own.im * own.im, c = ROOT(column + square), r = ROOT(row + square);
            while (c * f < r / f / 2 && f < 1 / EPSILON) f *= 2;
            while (r / f < c * f / 2 && f > EPSILON) f /= 2;
            if (f == 1 || c * f + r / f >= (T)0.95 * (c + r)) continue;
            changed = 1, s->scale[i] *= f;
            for (int j = 0; j < wide; j++) s->re[i * wide + j] /= f, s->im[i * wide + j] /= f;
            for (int j = 0; j < n; j++) s->re[j * wide + i] *= f, s->im[j * wide + i] *= f;
        }
    }
    return 1;
}

/* Reflects rows from `first` on of a matrix: x -= tau v (v^H x). */
INLINE void NAME(reflect)(T *re, T *im, int wide, int first, int n, T tau, const T *v, const T *u) {
    T x[TGX_EIGEN_ORDER] = {0}, y[TGX_EIGEN_ORDER] = {0};
    for (int i = first; i < n; i++)
        for (int j = 0; j < wide; j++) {
            x[j] += v[i] * re[i * wide + j] + u[i] * im[i * wide + j];
            y[j] += v[i] * im[i * wide + j] - u[i] * re[i * wide + j];
        }
    for (int i = first; i < n; i++) {
        const T a = tau * v[i], b = tau * u[i];
        for (int j = 0; j < wide; j++) re[i * wide + j] -= a * x[j] - b * y[j], im[i * wide + j] -= a * y[j] + b * x[j];
    }
}

/* By reflectors that are their own inverse. */
static void NAME(hessenberg_complex)(NAME(unitary) *s) {
    const int n = s->n, wide = s->wide;
    for (int k = 0; k < n - 2; k++) {
        T v[TGX_EIGEN_ORDER] = {0}, u[TGX_EIGEN_ORDER] = {0}, back[TGX_EIGEN_ORDER], size = 0, below = 0;
        for (int i = k + 1; i < n; i++) size = NAME(extent)(NAME(at)(s, i, k)) > size ? NAME(extent)(NAME(at)(s, i, k)) : size;
        size = size > 0 ? size : 1; /* so that the squares of small numbers are none that have lost digits */
        for (int i = k + 1; i < n; i++) v[i] = s->re[i * wide + k] / size, u[i] = s->im[i * wide + k] / size;
        for (int i = k + 2; i < n; i++) below += v[i] * v[i] + u[i] * u[i];
        if (below > 0) {
            NAME(number) phase;
            const T own = NAME(polar)((NAME(number)){v[k + 1], u[k + 1]}, &phase), length = ROOT(own * own + below);
            const T tau = 1 / (length * (length + own));
            v[k + 1] += phase.re * length, u[k + 1] += phase.im * length;
            NAME(reflect)(s->re, s->im, wide, k + 1, n, tau, v, u);
            NAME(put)(s, k + 1, k, (NAME(number)){-phase.re * length * size, -phase.im * length * size});
            for (int i = 0; i < wide; i++) back[i] = -u[i];
            for (int i = 0; i < n; i++) {
                T *re = s->re + i * wide, *im = s->im + i * wide, x = 0, y = 0;
                for (int j = k + 1; j < n; j++) x += re[j] * v[j] - im[j] * u[j], y += re[j] * u[j] + im[j] * v[j];
                x *= tau, y *= tau;
                for (int j = 0; j < wide; j++) re[j] -= x * v[j] + y * u[j], im[j] -= y * v[j] - x * u[j];
            }
            if (s->vectors) NAME(reflect)(s->z_re, s->z_im, wide, k + 1, n, tau, v, back);
        }
        for (int i = k + 2; i < n; i++) NAME(put)(s, i, k, (NAME(number)){0, 0});
    }
}

/* The first of rows 0 to hi from which the last block stands alone (eigen_schur.h). */
static int NAME(alone_complex)(NAME(unitary) *s, int hi) {
    int k = hi;
    for (; k > 0; k--) {
        const NAME(number) own = NAME(at)(s, k, k), other = NAME(at)(s, k - 1, k - 1);
        const T beside = NAME(extent)(NAME(at)(s, k, k - 1)), across = NAME(extent)(NAME(at)(s, k - 1, k));
        T size = NAME(extent)(own) + NAME(extent)(other);
        if (beside <= TINY / EPSILON) break;
        if (size == 0) {
            if (k > 1) size += NAME(extent)(NAME(at)(s, k - 1, k - 2));
            if (k < hi) size += NAME(extent)(NAME(at)(s, k + 1, k));
        }
        if (beside > EPSILON * size) continue;
        const T gap = NAME(extent)(NAME(less)(other, own)), mine = NAME(extent)(own), most = beside > across ? beside : across;
        const T least = beside > across ? across : beside, far = mine > gap ? mine : gap, near = mine > gap ? gap : mine;
        const T sum = far + most, limit = EPSILON * (near * (far / sum));
        if (least * (most / sum) <= (limit > TINY / EPSILON ? limit : TINY / EPSILON)) break;
    }
    if (k > 0) NAME(put)(s, k, k - 1, (NAME(number)){0, 0});
    return k;
}

/* x becomes c x + s y, and y c y - conj(s) x. */
INLINE void NAME(rotate)(T *x_re, T *x_im, T *y_re, T *y_im, int count, int step, T c, NAME(number) s) {
    for (int j = 0; j < count * step; j += step) {
        const T a = x_re[j], b = x_im[j], d = y_re[j], e = y_im[j];
        x_re[j] = c * a + (s.re * d - s.im * e), x_im[j] = c * b + (s.re * e + s.im * d);
        y_re[j] = c * d - (s.re * a + s.im * b), y_im[j] = c * e - (s.re * b - s.im * a);
    }
}

/* The value of the last two rows that is nearer to the last element (Wilkinson). */
static NAME(number) NAME(shift)(const NAME(unitary) *s, int hi) {
    const NAME(number) last = NAME(at)(s, hi, hi), across = NAME(times)(NAME(at)(s, hi - 1, hi), NAME(at)(s, hi, hi - 1));
    NAME(number) half = NAME(less)(NAME(at)(s, hi - 1, hi - 1), last);
    half.re /= 2, half.im /= 2;
    NAME(number) root = NAME(times)(half, half);
    root = NAME(root)((NAME(number)){root.re + across.re, root.im + across.im}, half);
    root.re += half.re, root.im += half.im;
    return NAME(extent)(root) == 0 ? last : NAME(less)(last, NAME(over)(across, root));
}

/* One step on rows lo to hi: a bulge, made by the shift, goes down the diagonal. */
static void NAME(step_complex)(NAME(unitary) *s, int lo, int hi, int count) {
    const int wide = s->wide;
    NAME(number) shift = NAME(shift)(s, hi);
    if (count % 10 == 0) { /* one that has no part in a cycle */
        const int at = count % 20 ? lo : hi - 1;
        shift = NAME(at)(s, count % 20 ? lo : hi, count % 20 ? lo : hi);
        shift.re += (T)0.75 * NAME(extent)(NAME(at)(s, at + 1, at));
    }
    for (int k = lo; k < hi; k++) {
        const NAME(number) x = k > lo ? NAME(at)(s, k, k - 1) : NAME(less)(NAME(at)(s, lo, lo), shift);
        NAME(number) phase, y = NAME(at)(s, k + 1, k > lo ? k - 1 : lo);
        const T size = NAME(extent)(x) + NAME(extent)(y), own = NAME(polar)(x, &phase) / size;
        if (size == 0) continue;
        y.re /= size, y.im /= size;
        const T both = ROOT(own * own + y.re * y.re + y.im * y.im);
        const NAME(number) sine = NAME(times)(phase, (NAME(number)){y.re / both, -y.im / both}), back = {sine.re, -sine.im};
        const T cosine = own / both;
        T *re = s->re + k * wide, *im = s->im + k * wide, *z_re = s->z_re + k * wide, *z_im = s->z_im + k * wide;
        const int from = (k > lo ? k - 1 : k) & ~3;
        NAME(rotate)(re + from, im + from, re + wide + from, im + wide + from, wide - from, 1, cosine, sine);
        if (k > lo) {
            NAME(put)(s, k, k - 1, (NAME(number)){phase.re * both * size, phase.im * both * size});
            NAME(put)(s, k + 1, k - 1, (NAME(number)){0, 0});
        }
        NAME(rotate)(s->re + k, s->im + k, s->re + k + 1, s->im + k + 1, (k + 2 < hi ? k + 2 : hi) + 1, wide, cosine, back);
        if (s->vectors) NAME(rotate)(z_re, z_im, z_re + wide, z_im + wide, wide, 1, cosine, back);
    }
}

/* Each vector has the norm one and a largest element that is real. */
static void NAME(vectors_complex)(const NAME(unitary) *s, NAME(number) *to) {
    const int n = s->n, wide = s->wide;
    T size = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) size = NAME(extent)(NAME(at)(s, i, j)) > size ? NAME(extent)(NAME(at)(s, i, j)) : size;
    const T least = EPSILON * size > TINY / EPSILON ? EPSILON * size : TINY / EPSILON;
    for (int k = n - 1; k >= 0; k--) {
        NAME(number) x[TGX_EIGEN_ORDER] = {{0}};
        const NAME(number) value = NAME(at)(s, k, k);
        T re[TGX_EIGEN_ORDER] = {0}, im[TGX_EIGEN_ORDER] = {0}, most = 0, sum = 0;
        x[k].re = 1;
        for (int j = k - 1; j >= 0; j--) {
            NAME(number) right = {0, 0};
            for (int c = j + 1; c <= k; c++) right = NAME(less_product)(right, NAME(at)(s, j, c), x[c]);
            x[j] = NAME(over)(right, NAME(no_zero)(NAME(less)(NAME(at)(s, j, j), value), least));
            const T large = NAME(extent)(x[j]);
            if (large > 1 / (EPSILON * (T)16)) /* another step might overflow */
                for (int c = j; c <= k; c++) x[c].re /= large, x[c].im /= large;
        }
        for (int m = 0; m <= k; m++)
            for (int i = 0; i < wide; i++) {
                const T a = s->z_re[m * wide + i], b = s->z_im[m * wide + i];
                re[i] += a * x[m].re - b * x[m].im, im[i] += a * x[m].im + b * x[m].re;
            }
        for (int i = 0; i < n; i++) {
            re[i] *= s->scale[i], im[i] *= s->scale[i];
            const T own = ABS(re[i]) > ABS(im[i]) ? ABS(re[i]) : ABS(im[i]);
            most = own > most ? own : most;
        }
        int at = 0;
        for (int i = 0; i < n; i++) re[i] /= most, im[i] /= most, sum += re[i] * re[i] + im[i] * im[i];
        for (int i = 1; i < n; i++) at = re[i] * re[i] + im[i] * im[i] > re[at] * re[at] + im[at] * im[at] ? i : at;
        const T length = ROOT(re[at] * re[at] + im[at] * im[at]), by = 1 / (ROOT(sum) * length), c = re[at] * by, d = -im[at] * by;
        for (int i = 0; i < n; i++) to[i * n + k] = (NAME(number)){re[i] * c - im[i] * d, i == at ? 0 : re[i] * d + im[i] * c};
    }
}

static int NAME(eigen_complex)(const NAME(number) *a, int n, NAME(number) *values, NAME(number) *to) {
    const int wide = (n + 3) & ~3;
    NAME(unitary) s;
    T most = 0;
    int power;
    s.n = n, s.wide = wide, s.vectors = to != NULL;
    for (int i = 0; i < n * n; i++) most = ABS(a[i].re) > most ? ABS(a[i].re) : most, most = ABS(a[i].im) > most ? ABS(a[i].im) : most;
    if (most < 4 * TINY) return 0;
    FREXP(most, &power); /* numbers near one, whose squares neither overflow nor lose what counts */
    const T by = LDEXP(1, -power), back = LDEXP(1, power - 1) * 2;
    const size_t bytes = (size_t)(wide * wide) * sizeof(T);
    memset(s.re, 0, bytes), memset(s.im, 0, bytes);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) NAME(put)(&s, i, j, (NAME(number)){a[i * n + j].re * by, a[i * n + j].im * by});
    if (!NAME(balanced_complex)(&s)) return 0;
    if (to) {
        memset(s.z_re, 0, bytes), memset(s.z_im, 0, bytes);
        for (int i = 0; i < n; i++) s.z_re[i * (wide + 1)] = 1;
    }
    NAME(hessenberg_complex)(&s);
    for (int hi = n - 1, count = 0; hi >= 0;) {
        const int lo = NAME(alone_complex)(&s, hi);
        if (lo == hi) hi--, count = 0;
        else if (++count > MOST_STEPS * n) return 0;
        else NAME(step_complex)(&s, lo, hi, count);
    }
    for (int i = 0; i < n; i++) values[i] = (NAME(number)){s.re[i * (wide + 1)] * back, s.im[i * (wide + 1)] * back};
    if (to) NAME(vectors_complex)(&s, to);
    return 1;
}
