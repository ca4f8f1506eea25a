/* Orthogonal polynomials of a degree that is an element: 0 below degree 0, by recurrence (DLMF 18.9) above it, and by
 * the trigonometric form for the Chebyshev family inside [-1, 1], where that is one step. */
#ifndef TGX_SPECIAL_POLYNOMIALS_H
#define TGX_SPECIAL_POLYNOMIALS_H
#include "chebyshev.h"

#define VM_MOST_STEPS 10000000 /* a recurrence of more steps is not run: infinite outside [-1, 1], NaN where that is not known */

/* y as a degree, cut to a whole number; what is no number counts as negative, and beyond 2^53 there are no odd ones. */
VM_RARE int64_t vm_degree(double y) { return !(y > -1.0) ? -1 : y > 9e15 ? (int64_t)9e15 : (int64_t)y; }

/* p[k+1] = 2 x p[k] - p[k-1] from p[0] = 1 and p[1]. */
VM_RARE double vm_chebyshev_steps(double x, double first, int64_t n) {
    double before = 1.0, p = first;
    for (int64_t k = 1; k < n && p == p; k++) {
        double next = 2.0 * x * p - before;
        before = p, p = next;
    }
    return p;
}

/* Of the four kinds t, u, v, w. */
VM_RARE double vm_chebyshev(double x, int64_t n, char kind) {
    int odd = n & 1;
    if (n < 0) return 0.0;
    if (x != x) return x;
    if (n > VM_MOST_STEPS && !(fabs(x) <= 1.0)) return odd && x < 0.0 ? -(double)INFINITY : (double)INFINITY;
    double m = (double)n;
    if (x == 1.0) return kind == 't' || kind == 'v' ? 1.0 : kind == 'u' ? m + 1.0 : 2.0 * m + 1.0;
    if (x == -1.0) return (odd ? -1.0 : 1.0) * (kind == 't' || kind == 'w' ? 1.0 : kind == 'u' ? m + 1.0 : 2.0 * m + 1.0);
    if (n > 8 && fabs(x) < 1.0) {
        double angle = acos(x);
        if (kind == 't') return cos(m * angle);
        if (kind == 'u') return sin((m + 1.0) * angle) / sin(angle);
        if (kind == 'v') return cos((m + 0.5) * angle) / cos(0.5 * angle);
        return sin((m + 0.5) * angle) / sin(0.5 * angle);
    }
    if (n == 0) return 1.0;
    return vm_chebyshev_steps(x, kind == 't' ? x : kind == 'u' ? 2.0 * x : kind == 'v' ? 2.0 * x - 1.0 : 2.0 * x + 1.0, n);
}
#define VM_CHEBYSHEV(kind, letter) \
    VM_RARE double vm_chebyshev_##kind##_f64(double x, double y) { return vm_chebyshev(x, vm_degree(y), letter); } \
    VM_RARE double vm_shifted_chebyshev_##kind##_f64(double x, double y) { return vm_chebyshev(2.0 * x - 1.0, vm_degree(y), letter); } \
    VM_ROUNDED2(chebyshev_##kind) \
    VM_ROUNDED2(shifted_chebyshev_##kind)
VM_CHEBYSHEV(t, 't')
VM_CHEBYSHEV(u, 'u')
VM_CHEBYSHEV(v, 'v')
VM_CHEBYSHEV(w, 'w')
#undef VM_CHEBYSHEV

/* p[k+1] = FACTOR p[k] - (LESS) p[k-1], over DIVISOR, from p[0] = 1 and p[1] = FIRST. Above a degree it is NaN: of Hermite's
 * where its values leave the dtype's range. */
#define VM_POLYNOMIAL(name, FIRST, FACTOR, LESS, DIVISOR, MOST_F64, MOST_F32) \
    VM_RARE double vm_##name##_f64(double x, double y) { \
        int64_t n = vm_degree(y); \
        if (n <= 0) return n == 0 ? 1.0 : 0.0; \
        if (n > MOST_F64) return (double)NAN; \
        double before = 1.0, p = FIRST; \
        for (int64_t k = 1; k < n && p == p; k++) { \
            double next = ((FACTOR) * p - (LESS) * before) / (DIVISOR); \
            before = p, p = next; \
        } \
        return p; \
    } \
    VM_RARE float vm_##name##_f32(float x, float y) { return y > MOST_F32 ? (float)NAN : (float)vm_##name##_f64(x, y); }
VM_POLYNOMIAL(hermite_h, 2.0 * x, 2.0 * x, 2.0 * (double)k, 1.0, 512, 128)
VM_POLYNOMIAL(hermite_he, x, x, (double)k, 1.0, 512, 128)
VM_POLYNOMIAL(laguerre_l, 1.0 - x, 2.0 * (double)k + 1.0 - x, (double)k, (double)k + 1.0, VM_MOST_STEPS, VM_MOST_STEPS)
VM_POLYNOMIAL(legendre_p, x, (2.0 * (double)k + 1.0) * x, (double)k, (double)k + 1.0, VM_MOST_STEPS, VM_MOST_STEPS)
#undef VM_POLYNOMIAL

/* Loops of several eights of elements at a time, a step for all of them, each until its degree is reached: one by one the processor
 * guesses at every degree, for longer than the steps take, and the steps of one eight wait for each other. The steps are those of the functions above, with their bits; high degrees and
 * what is no number go to those functions. With z = scale x + add, p[1] = first z + plus and
 * p[k+1] = (by(k) z + rest(k)) p[k] - less(k) p[k-1], by(k) = by[0] + by[1] k, over k + 1 if `divided`; -0.0 adds nothing. */
typedef struct {
    double scale, add, first, plus, by[2], less[2];
    int rest, divided, most;    /* whether rest(k) is 2 k + 1; the highest degree */
} vm_family;

typedef double vm_eight __attribute__((vector_size(64), aligned(8)));
typedef int64_t vm_choice __attribute__((vector_size(64), aligned(8)));
#define VM_CHOSEN(chosen, yes, no) ((vm_eight)(((vm_choice)(yes) & (chosen)) | ((vm_choice)(no) & ~(chosen))))

#if defined(__AVX512F__)
enum { VM_EIGHTS = 4 };
#elif defined(__AVX2__)
enum { VM_EIGHTS = 2 };
#else
enum { VM_EIGHTS = 1 };
#endif
#define VM_EACH _Pragma("GCC unroll 4") for (int e = 0; e < VM_EIGHTS; e++)

/* y[l] is a degree with what is cut from it. */
static __attribute__((noinline, unused)) void vm_eights_degrees(const vm_family *f, const double *zs, const double *ys, double top,
                                                                double *ps) {
    const vm_eight *z = (const vm_eight *)zs, *y = (const vm_eight *)ys;
    vm_eight before[VM_EIGHTS], p[VM_EIGHTS], *to = (vm_eight *)ps;
    VM_EACH before[e] = z[e] * 0.0 + 1.0, p[e] = f->first * z[e] + f->plus;
    for (double k = 1.0; k + 1.0 <= top; k++) {
        const double by = f->by[0] + f->by[1] * k, rest = f->rest ? 2.0 * k + 1.0 : -0.0, less = f->less[0] + f->less[1] * k;
        vm_eight next[VM_EIGHTS];
        VM_EACH next[e] = (by * z[e] + rest) * p[e] - less * before[e];
        if (f->divided) VM_EACH next[e] /= k + 1.0;
        VM_EACH {
            const vm_choice on = y[e] >= k + 1.0;
            before[e] = VM_CHOSEN(on, p[e], before[e]), p[e] = VM_CHOSEN(on, next[e], p[e]);
        }
    }
    VM_EACH to[e] = VM_CHOSEN(y[e] >= 1.0, p[e], (vm_eight)((vm_choice)(z[e] * 0.0 + 1.0) & (y[e] > -1.0)));
}
#undef VM_EACH
#define VM_DEGREES(T, tag) \
    static __attribute__((noinline, unused)) void vm_degrees_##tag(const vm_family *f, T (*one)(T, T), ptrdiff_t m, const T *x, \
                                                                   const T *y, T *o) { \
        enum { MANY = 64, AT_ONCE = 8 * VM_EIGHTS }; \
        for (; m > 0; m -= MANY, x += MANY, y += MANY, o += MANY) { \
            const int count = m < MANY ? (int)m : MANY; \
            double z[MANY], n[MANY], p[MANY], top = 0.0; \
            int64_t all = 1, usual[MANY]; \
            for (int l = count; l < (count + AT_ONCE - 1) / AT_ONCE * AT_ONCE; l++) z[l] = n[l] = 0.0; \
            _Pragma("omp simd reduction(max: top) reduction(&: all)") \
            for (int l = 0; l < count; l++) { \
                const double at = f->scale * x[l] + f->add, degree = y[l]; \
                const int64_t plain = (degree < f->most + 1.0 || degree != degree) & (at - at == 0.0); \
                z[l] = plain ? at : 0.0, n[l] = plain ? degree : 0.0; \
                top = n[l] > top ? n[l] : top; \
                all &= usual[l] = plain; \
            } \
            for (int l = 0; l < count; l += AT_ONCE) vm_eights_degrees(f, z + l, n + l, top, p + l); \
            if (all) for (int l = 0; l < count; l++) o[l] = (T)p[l]; \
            else for (int l = 0; l < count; l++) o[l] = usual[l] ? (T)p[l] : one(x[l], y[l]); \
        } \
    }
VM_DEGREES(float, f32)
VM_DEGREES(double, f64)
#undef VM_DEGREES

#define VM_FAMILY(name, ...) \
    static const vm_family vm_family_##name = {__VA_ARGS__}; \
    VM_RARE void vm_##name##_loop_f32(ptrdiff_t m, const float *x, const float *y, float *o) { \
        vm_degrees_f32(&vm_family_##name, vm_##name##_f32, m, x, y, o); \
    } \
    VM_RARE void vm_##name##_loop_f64(ptrdiff_t m, const double *x, const double *y, double *o) { \
        vm_degrees_f64(&vm_family_##name, vm_##name##_f64, m, x, y, o); \
    }
/* beyond degree 8 the Chebyshev polynomials are one step */
#define VM_CHEBYSHEV(kind, FIRST, PLUS) \
    VM_FAMILY(chebyshev_##kind, 1.0, -0.0, FIRST, PLUS, {2.0, 0.0}, {1.0, 0.0}, 0, 0, 8) \
    VM_FAMILY(shifted_chebyshev_##kind, 2.0, -1.0, FIRST, PLUS, {2.0, 0.0}, {1.0, 0.0}, 0, 0, 8)
VM_CHEBYSHEV(t, 1.0, -0.0)
VM_CHEBYSHEV(u, 2.0, -0.0)
VM_CHEBYSHEV(v, 2.0, -1.0)
VM_CHEBYSHEV(w, 2.0, 1.0)
VM_FAMILY(hermite_h, 1.0, -0.0, 2.0, -0.0, {2.0, 0.0}, {0.0, 2.0}, 0, 0, 16)
VM_FAMILY(hermite_he, 1.0, -0.0, 1.0, -0.0, {1.0, 0.0}, {0.0, 1.0}, 0, 0, 16)
VM_FAMILY(laguerre_l, -1.0, -0.0, 1.0, 1.0, {1.0, 0.0}, {0.0, 1.0}, 1, 1, 16)
VM_FAMILY(legendre_p, 1.0, -0.0, 1.0, -0.0, {1.0, 2.0}, {0.0, 1.0}, 0, 1, 16)
#undef VM_CHEBYSHEV
#undef VM_FAMILY

/* The same with a parameter a, which derivatives raise: C and L of degree n, order a (DLMF 18.9). */
#define VM_WITH_ORDER(name, FIRST, FACTOR, LESS) \
    VM_RARE double vm_##name##_f64(double x, double y, double a) { \
        int64_t n = vm_degree(y); \
        if (n <= 0) return n == 0 ? 1.0 : 0.0; \
        if (n > VM_MOST_STEPS) return (double)NAN; \
        double before = 1.0, p = FIRST; \
        for (int64_t k = 1; k < n && p == p; k++) { \
            double next = ((FACTOR) * p - (LESS) * before) / ((double)k + 1.0); \
            before = p, p = next; \
        } \
        return p; \
    } \
    VM_RARE float vm_##name##_f32(float x, float y, float a) { return (float)vm_##name##_f64(x, y, a); }
VM_WITH_ORDER(gegenbauer, 2.0 * a * x, 2.0 * x * ((double)k + a), (double)k + 2.0 * a - 1.0)
VM_WITH_ORDER(laguerre, 1.0 + a - x, 2.0 * (double)k + 1.0 + a - x, (double)k + a)
#undef VM_WITH_ORDER

#endif
