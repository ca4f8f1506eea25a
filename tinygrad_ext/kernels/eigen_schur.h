/* The real Schur form of a small matrix of numbers T. Included by eigen.c.
 *
 * Rows are a multiple of four numbers long, with zeros at the end. Of the orthogonal factor the columns are kept as rows, so that
 * each of its changes, and half of the matrix's, is one of whole rows. */

typedef struct {
    T h[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER], z[TGX_EIGEN_ORDER * TGX_EIGEN_ORDER]; /* Schur form by rows, its vectors */
    T scale[TGX_EIGEN_ORDER], re[TGX_EIGEN_ORDER], im[TGX_EIGEN_ORDER];
    int n, vectors;
} NAME(schur);

/* Rows and columns brought to norms alike, which count the diagonal too: else scales would part further than they gain (James, Langou
 * and Lowery 2014). Returns 0 where one of them has nothing beside it. */
static int NAME(balanced)(NAME(schur) *s, int wide) {
    T *h = s->h;
    for (int i = 0; i < s->n; i++) s->scale[i] = 1;
    for (int sweep = 0, changed = 1; changed && sweep < SWEEPS; sweep++) {
        changed = 0;
        for (int i = 0; i < s->n; i++) {
            T row = 0, column = 0, f = 1;
            for (int j = 0; j < s->n; j++) {
                const T x = j == i ? 0 : h[i * wide + j], y = j == i ? 0 : h[j * wide + i];
                row += x * x, column += y * y;
            }
            if (row == 0 || column == 0) return 0;
            const T own = h[i * (wide + 1)], c = ROOT(column + own * own), r = ROOT(row + own * own);
            while (c * f < r / f / 2 && f < 1 / EPSILON) f *= 2;
            while (r / f < c * f / 2 && f > EPSILON) f /= 2;
            if (f == 1 || c * f + r / f >= (T)0.95 * (c + r)) continue;
            changed = 1, s->scale[i] *= f;
            for (int j = 0; j < wide; j++) h[i * wide + j] /= f;
            for (int j = 0; j < s->n; j++) h[j * wide + i] *= f;
        }
    }
    return 1;
}

static void NAME(hessenberg)(NAME(schur) *s, int wide) {
    const int n = s->n;
    T *h = s->h, *z = s->z;
    for (int k = 0; k < n - 2; k++) {
        T v[TGX_EIGEN_ORDER] = {0}, w[TGX_EIGEN_ORDER] = {0}, below = 0;
        T size = 0;
        for (int i = k + 1; i < n; i++) size = ABS(h[i * wide + k]) > size ? ABS(h[i * wide + k]) : size;
        size = size > 0 ? size : 1; /* so that the squares of small numbers are none that have lost digits */
        for (int i = k + 1; i < n; i++) v[i] = h[i * wide + k] / size;
        for (int i = k + 2; i < n; i++) below += v[i] * v[i];
        const T first = v[k + 1], length = -SIGN(ROOT(first * first + below), first);
        if (below > 0) {
            const T tau = (length - first) / length;
            for (int i = k + 2; i < n; i++) v[i] /= first - length;
            v[k + 1] = 1;
            for (int i = k + 1; i < n; i++)
                for (int j = 0; j < wide; j++) w[j] += v[i] * h[i * wide + j];
            for (int i = k + 1; i < n; i++)
                for (int j = 0; j < wide; j++) h[i * wide + j] -= tau * v[i] * w[j];
            h[(k + 1) * wide + k] = length * size;
            for (int i = 0; i < n; i++) {
                T sum = 0;
                for (int j = k + 1; j < n; j++) sum += h[i * wide + j] * v[j];
                for (int j = 0; j < wide; j++) h[i * wide + j] -= tau * sum * v[j];
            }
            memset(w, 0, sizeof w);
            for (int i = k + 1; s->vectors && i < n; i++)
                for (int j = 0; j < wide; j++) w[j] += v[i] * z[i * wide + j];
            for (int i = k + 1; s->vectors && i < n; i++)
                for (int j = 0; j < wide; j++) z[i * wide + j] -= tau * v[i] * w[j];
        }
        for (int i = k + 2; i < n; i++) h[i * wide + k] = 0;
    }
}

/* The first of rows lo to hi from which the last block stands alone; the element beside it becomes zero (Ahues and Tisseur 1997). */
static int NAME(alone)(T *h, int wide, int lo, int hi) {
    int k = hi;
    for (; k > lo; k--) {
        const T beside = ABS(h[k * wide + k - 1]), across = ABS(h[(k - 1) * wide + k]);
        const T own = h[k * (wide + 1)], other = h[(k - 1) * (wide + 1)];
        T size = ABS(own) + ABS(other);
        if (beside <= TINY / EPSILON) break;
        if (size == 0) {
            if (k > lo + 1) size += ABS(h[(k - 1) * wide + k - 2]);
            if (k < hi) size += ABS(h[(k + 1) * wide + k]);
        }
        if (beside > EPSILON * size) continue;
        const T gap = ABS(other - own), most = beside > across ? beside : across, least = beside > across ? across : beside;
        const T far = ABS(own) > gap ? ABS(own) : gap, near = ABS(own) > gap ? gap : ABS(own), sum = far + most;
        const T limit = EPSILON * (near * (far / sum));
        if (least * (most / sum) <= (limit > TINY / EPSILON ? limit : TINY / EPSILON)) break;
    }
    if (k > lo) h[k * wide + k - 1] = 0;
    return k;
}

/* Rows and columns i and i + 1 turned so that the block is a triangle, or has equal numbers on the diagonal and two of unlike signs
 * beside it; its values. */
static void NAME(split)(NAME(schur) *s, int wide, int i) {
    T *h = s->h, *top = h + i * wide, *low = top + wide, a = top[i], b = top[i + 1], c = low[i], d = low[i + 1], cosine = 1, sine = 0;
    if (c != 0 && b == 0) {
        const T kept = a;
        cosine = 0, sine = 1, a = d, d = kept, b = -c, c = 0;
    } else if (c != 0 && (a != d || (b > 0) == (c > 0))) {
        const T half = (a - d) / 2, most = ABS(b) > ABS(c) ? ABS(b) : ABS(c), least = ABS(b) > ABS(c) ? ABS(c) : ABS(b);
        const T product = (b > 0) == (c > 0) ? least : -least, size = ABS(half) > most ? ABS(half) : most;
        const T root = half / size * half + most / size * product;
        if (root >= 4 * EPSILON) {
            const T step = half + SIGN(ROOT(size) * ROOT(root), half), length = HYPOT(c, step);
            a = d + step, d = d - most / step * product, cosine = step / length, sine = c / length, b = b - c, c = 0;
        } else {
            const T sum = b + c, length = HYPOT(sum, a - d);
            cosine = ROOT((1 + ABS(sum) / length) / 2), sine = -(half / (length * cosine)) * SIGN((T)1, sum);
            const T aa = a * cosine + b * sine, bb = b * cosine - a * sine, cc = c * cosine + d * sine, dd = d * cosine - c * sine;
            const T one = aa * cosine + cc * sine, two = dd * cosine - bb * sine;
            b = bb * cosine + dd * sine, c = cc * cosine - aa * sine, a = d = (one + two) / 2;
            if (c != 0 && b == 0) {
                const T kept = cosine;
                b = -c, c = 0, cosine = -sine, sine = kept;
            } else if (c != 0 && (b > 0) == (c > 0)) {
                const T x = ROOT(ABS(b)), y = ROOT(ABS(c)), by = 1 / ROOT(ABS(b + c)), apart = SIGN(x * y, c);
                const T more = x * by, turn = y * by;
                const T kept = cosine * more - sine * turn;
                a += apart, d -= apart, b = b - c, c = 0, sine = cosine * turn + sine * more, cosine = kept;
            }
        }
    }
    for (int j = 0; j < wide; j++) {
        const T x = top[j], y = low[j];
        top[j] = cosine * x + sine * y, low[j] = cosine * y - sine * x;
    }
    for (int r = 0; r < i; r++) {
        const T x = h[r * wide + i], y = h[r * wide + i + 1];
        h[r * wide + i] = cosine * x + sine * y, h[r * wide + i + 1] = cosine * y - sine * x;
    }
    for (int j = 0; s->vectors && j < wide; j++) {
        T *z = s->z + i * wide + j;
        const T x = z[0], y = z[wide];
        z[0] = cosine * x + sine * y, z[wide] = cosine * y - sine * x;
    }
    top[i] = a, top[i + 1] = b, low[i] = c, low[i + 1] = d;
    s->re[i] = a, s->re[i + 1] = d, s->im[i] = c == 0 ? 0 : ROOT(ABS(b)) * ROOT(ABS(c)), s->im[i + 1] = -s->im[i];
}

/* One step on rows lo to hi: a bulge, made by the two shifts, goes down the diagonal. */
static void NAME(step)(NAME(schur) *s, int wide, int lo, int hi, int count) {
    T *h = s->h, x[3];
    T a = h[(hi - 1) * wide + hi - 1], b = h[(hi - 1) * wide + hi], c = h[hi * wide + hi - 1], d = h[hi * wide + hi];
    if (count % 10 == 0) { /* shifts that have no part in a cycle */
        const int at = count % 20 ? lo + 1 : hi;
        const T far = ABS(h[at * wide + at - 1]) + (count % 20 ? ABS(h[(lo + 2) * wide + lo + 1]) : ABS(h[(hi - 1) * wide + hi - 2]));
        a = d = (T)0.75 * far + h[(count % 20 ? lo : hi) * (wide + 1)], b = (T)-0.4375 * far, c = far;
    }
    const T half = (a - d) / 2, mean = (a + d) / 2, square = half * half + b * c;
    T sum = 2 * mean, product = mean * mean - square; /* of the shifts */
    if (square >= 0) { /* real ones: twice that which is nearer to the last element */
        const T root = ROOT(square), near = ABS(mean + root - d) < ABS(mean - root - d) ? mean + root : mean - root;
        sum = 2 * near, product = near * near;
    }
    int k = hi - 2;
    for (;; k--) { /* where two elements below the diagonal are small the bulge may begin */
        const T p = h[k * wide + k], q = h[(k + 1) * wide + k + 1], down = h[(k + 1) * wide + k];
        x[0] = (p * (p - sum) + product) / down + h[k * wide + k + 1], x[1] = p + q - sum, x[2] = h[(k + 2) * wide + k + 1];
        const T size = ABS(x[0]) + ABS(x[1]) + ABS(x[2]);
        for (int i = 0; i < 3; i++) x[i] *= 1 / size;
        if (k == lo) break;
        const T before = ABS(h[(k - 1) * wide + k - 1]) + ABS(p) + ABS(q);
        if (ABS(h[k * wide + k - 1]) * (ABS(x[1]) + ABS(x[2])) <= EPSILON * ABS(x[0]) * before) break;
    }
    for (const int begin = k; k < hi; k++) {
        const int three = k < hi - 1;
        if (k > begin) x[0] = h[k * wide + k - 1], x[1] = h[(k + 1) * wide + k - 1], x[2] = three ? h[(k + 2) * wide + k - 1] : 0;
        else if (!three) x[2] = 0;
        const T size = ABS(x[0]) + ABS(x[1]) + ABS(x[2]);
        if (size == 0) continue;
        for (int i = 0; i < 3; i++) x[i] *= 1 / size;
        const T length = -SIGN(ROOT(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]), x[0]);
        const T tau = (length - x[0]) / length, by = 1 / (x[0] - length), v = x[1] * by, w = x[2] * by;
        T *top = h + k * wide, *middle = top + wide, *low = three ? middle + wide : middle;
        for (int j = 0; j < wide; j++) {
            const T part = tau * (top[j] + v * middle[j] + w * low[j]);
            top[j] -= part, middle[j] -= v * part;
            if (three) low[j] -= w * part;
        }
        if (k > begin) top[k - 1] = length * size;
        if (k > 0) middle[k - 1] = low[k - 1] = 0;
        const int last = k + 3 < hi ? k + 3 : hi;
        for (int r = 0; r <= last; r++) {
            T *row = h + r * wide + k;
            const T part = tau * (row[0] + v * row[1] + (three ? w * row[2] : 0));
            row[0] -= part, row[1] -= v * part;
            if (three) row[2] -= w * part;
        }
        T *z = s->z + k * wide;
        for (int j = 0; s->vectors && j < wide; j++) {
            const T part = tau * (z[j] + v * z[wide + j] + (three ? w * z[2 * wide + j] : 0));
            z[j] -= part, z[wide + j] -= v * part;
            if (three) z[2 * wide + j] -= w * part;
        }
    }
}

/* The Schur form and its values. Returns 0 if it does not end. */
static int NAME(iterated)(NAME(schur) *s, int wide) {
    for (int hi = s->n - 1, count = 0; hi >= 0;) {
        const int lo = NAME(alone)(s->h, wide, 0, hi);
        if (lo < hi - 1) {
            if (++count > MOST_STEPS * s->n) return 0;
            NAME(step)(s, wide, lo, hi, count);
            continue;
        }
        if (lo == hi) s->re[hi] = s->h[hi * (wide + 1)], s->im[hi] = 0;
        else NAME(split)(s, wide, lo);
        hi = lo - 1, count = 0;
    }
    return 1;
}
