/* One panel: sides of numbers T in PANEL bytes, which are vectors of BYTES. Included by triangles_panels.h. */
#define VECTORS (PANEL / BYTES)
#define V NAME(vector)
#define LESS PASTED(LESS_, BYTES)
typedef T V __attribute__((vector_size(BYTES), may_alias));
enum { NAME(rows) = 8 / VECTORS, NAME(wide) = PANEL / (int)sizeof(T) };

/* Rows i to i + rows of x, of which those before are known. */
INLINE void NAME(tile)(const tgx_triangle *t, T *x, ptrdiff_t i, int rows) {
    const T *a = (const T *)t->a + i * t->down;
    const ptrdiff_t down = t->down, along = t->along;
    const V *known = (const V *)x;
    V sum[8][VECTORS], *own = (V *)x + i * VECTORS;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) sum[r][v] = own[r * VECTORS + v];
    for (ptrdiff_t j = 0; j < i; j++, known += VECTORS, a += along)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < VECTORS; v++) sum[r][v] = LESS(a[r * down], known[v], sum[r][v]);
    for (int s = 0; s < rows; s++, a += along) {
        for (int v = 0; v < VECTORS; v++) {
            if (!t->unit) sum[s][v] /= a[s * down];
            own[s * VECTORS + v] = sum[s][v];
        }
        for (int r = s + 1; r < rows; r++)
            for (int v = 0; v < VECTORS; v++) sum[r][v] = LESS(a[r * down], sum[s][v], sum[r][v]);
    }
}

/* Sides of b from the first on, at most as many as a panel has; the others are zero. */
static void NAME(panel)(const tgx_triangle *t, T *b, ptrdiff_t count) {
    const ptrdiff_t n = t->n, step = t->step;
    T *x = t->room;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (count == NAME(wide)) memcpy(x + i * NAME(wide), b + i * step, PANEL);
        else for (ptrdiff_t c = 0; c < NAME(wide); c++) x[i * NAME(wide) + c] = c < count ? b[i * step + c] : 0;
    }
    ptrdiff_t i = 0;
    for (; i + NAME(rows) <= n; i += NAME(rows)) NAME(tile)(t, x, i, NAME(rows));
    for (; NAME(rows) > 2 && i + 2 <= n; i += 2) NAME(tile)(t, x, i, 2);
    if (i < n) NAME(tile)(t, x, i, 1);
    for (i = 0; i < n; i++) {
        if (count == NAME(wide)) memcpy(b + i * step, x + i * NAME(wide), PANEL);
        else for (ptrdiff_t c = 0; c < count; c++) b[i * step + c] = x[i * NAME(wide) + c];
    }
}
#undef NAME
#undef V
#undef LESS
#undef BYTES
#undef PANEL
#undef VECTORS
