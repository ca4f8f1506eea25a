/* How lengths are cut, and the tables that a length needs, of which those used last are kept. */
#include "fft_row.h"
#include "isa.h"
#include <pthread.h>

enum { KEPT = 48 };
static tgx_fft_plan *kept[KEPT];
static uint64_t clock_of_uses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static int64_t largest_prime(int64_t n) {
    int64_t largest = 1;
    for (int64_t p = 2; p * p <= n && p <= TGX_FFT_PRIME; p++)
        while (n % p == 0) n /= p, largest = p;
    return n > largest ? n : largest;
}

/* The divisor that the primes of steps make up. */
static int64_t of_small_primes(int64_t n) {
    int64_t small = 1;
    for (int64_t p = 2; p <= TGX_FFT_PRIME; p++)
        while (n % p == 0) n /= p, small *= p;
    return small;
}

/* The divisor that is nearest below the root. */
static int64_t near_root(int64_t n) {
    int64_t d = (int64_t)__builtin_sqrt((double)n) + 1;
    while (d > 1 && d * d > n) d--;
    while (n % d) d--;
    return d;
}

/* How many steps make_steps makes of factors 2, 3 and 5. */
static int steps_of(int64_t n) {
    int steps = 0, twos = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    for (; twos > 4 || twos == 3; twos -= 3) steps++;
    steps += (twos + 1) / 2;
    for (; n % 3 == 0; n /= 3) steps++;
    for (; n % 5 == 0; n /= 5) steps++;
    return steps;
}

/* What a transform of so many points takes, as if it moved them once more than in its steps. */
static double cost_of(int64_t n) {
    int64_t d = n < TGX_FFT_SHORT ? 1 : near_root(n);
    return (double)n * (2 + steps_of(d) + steps_of(n / d));
}

/* The length of factors 2, 3 and 5 that is not below n and takes least, a multiple of 8, so that rows of it are aligned; of short
 * ones, of which asking takes as long as their steps, the least. */
static int64_t smooth(int64_t n) {
    int64_t most = 8, best;
    while (most < n) most *= 2;
    best = most;
    double least = n < TGX_FFT_PARTS ? (double)best : cost_of(best);
    for (int64_t five = 1; five < most; five *= 5)
        for (int64_t three = five; three < most; three *= 3) {
            int64_t found = three * 8;
            while (found < n) found *= 2;
            const double cost = n < TGX_FFT_PARTS ? (double)found : found - n < n / 8 ? cost_of(found) : least;
            if (cost < least) best = found, least = cost;
        }
    return best;
}

int tgx_fft_by_rows(int64_t n, int64_t rows) {
    if (rows < TGX_FFT_LANES / 2 || n >= TGX_FFT_ROW) return 0;
    int64_t d = near_root(n);
    return d % TGX_FFT_LANES || n / d % TGX_FFT_LANES;
}

/* `lanes`: other transforms fill the lanes, so that it is not cut. */
tgx_fft_cut tgx_fft_how(int64_t n, int lanes) {
    tgx_fft_cut cut = {TGX_FFT_STEPWISE, 0, 0, tgx_fft_room(n)};
    if (largest_prime(n) > TGX_FFT_PRIME) {
        int64_t small = n >= TGX_FFT_PARTS ? of_small_primes(n) : 1;
        if (small > 1) {
            tgx_fft_cut part = tgx_fft_how(n / small, 0);
            int64_t columns = tgx_fft_room(small), rows = tgx_fft_aligned(2 * n) + part.scratch;
            cut.kind = TGX_FFT_CHIRPS, cut.first = small, cut.second = n / small;
            cut.scratch = tgx_fft_aligned(2 * n) + (columns > rows ? columns : rows);
            return cut;
        }
        cut.kind = TGX_FFT_CHIRP, cut.first = smooth(2 * n - 1);
        cut.scratch = 4 * cut.first + tgx_fft_how(cut.first, 0).scratch;
        return cut;
    }
    int64_t d = lanes || n < TGX_FFT_SHORT ? 1 : near_root(n);
    if (d >= 8) {
        cut.kind = TGX_FFT_CUT, cut.first = d, cut.second = n / d;
        cut.scratch = tgx_fft_aligned(2 * n) + tgx_fft_room(cut.second);
    }
    return cut;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* exp(-2 pi i k / n), the angle taken from the nearest eighth of a turn. */
static void root_of_one(int64_t k, int64_t n, long double *re, long double *im) {
    const long double turn = 6.283185307179586476925286766559L;
    k %= n;
    int flip = 2 * k > n;
    if (flip) k = n - k;                    /* conjugate */
    int left = 4 * k > n;
    int64_t doubled = left ? n - 2 * k : 2 * k;  /* mirrored at the imaginary axis; twice the index */
    int steep = 4 * doubled > n;
    long double angle = steep ? turn * (long double)(n - 2 * doubled) / (4 * (long double)n) : turn * (long double)doubled / (2 * (long double)n);
    long double c = __builtin_cosl(angle), s = __builtin_sinl(angle), x = steep ? s : c, y = steep ? c : s;
    *re = left ? -x : x, *im = flip ? y : -y;
}

static void put(void *table, int dtype, int64_t at, long double re, long double im) {
    if (dtype == TGX_F32) ((float *)table)[2 * at] = (float)re, ((float *)table)[2 * at + 1] = (float)im;
    else ((double *)table)[2 * at] = (double)re, ((double *)table)[2 * at + 1] = (double)im;
}

static void put_root(void *table, int dtype, int64_t at, int64_t k, int64_t n) {
    long double re, im;
    root_of_one(k, n, &re, &im);
    put(table, dtype, at, re, im);
}

static void *pairs(int64_t n, int dtype) {
    size_t bytes = (size_t)(2 * n * tgx_itemsize[dtype] + 63) & ~(size_t)63;
    return aligned_alloc(64, bytes ? bytes : 64);
}

static int add_step(tgx_fft_plan *plan, int64_t radix, int64_t *left, int64_t *s) {
    tgx_fft_step *step = &plan->step[plan->steps++];
    int64_t m = *left / radix;
    step->radix = radix, step->m = m, step->s = *s;
    step->factors = pairs(m * (radix - 1), plan->dtype);
    if (!step->factors) return -1;
    for (int64_t p = 0; p < m; p++)
        for (int64_t k = 1; k < radix; k++) put_root(step->factors, plan->dtype, p * (radix - 1) + k - 1, p * k, *left);
    if (radix > 5 && radix != 8) {
        if (!(step->roots = pairs(radix, plan->dtype))) return -1;
        for (int64_t k = 0; k < radix; k++) put_root(step->roots, plan->dtype, k, k, radix);
    }
    *left = m, *s *= radix;
    return 0;
}

static int make_steps(tgx_fft_plan *plan) {
    int64_t left = plan->n, s = 1, twos = 0;
    for (int64_t n = left; n % 2 == 0; n /= 2) twos++;
    for (; twos > 4 || twos == 3; twos -= 3)
        if (add_step(plan, 8, &left, &s)) return -1;
    for (; twos > 1; twos -= 2)
        if (add_step(plan, 4, &left, &s)) return -1;
    for (int64_t p = 2; left > 1; p++)
        while (left % p == 0)
            if (add_step(plan, p, &left, &s)) return -1;
    return 0;
}

static void put_lane(void *table, int dtype, int64_t k, int64_t lane, int64_t power, int64_t n) {
    long double part[2];
    root_of_one(power, n, &part[0], &part[1]);
    for (int64_t i = 0; i < 2; i++) {
        int64_t at = (2 * k + i) * TGX_FFT_LANES + lane;
        if (dtype == TGX_F32) ((float *)table)[at] = (float)part[i];
        else ((double *)table)[at] = (double)part[i];
    }
}

/* The factors of all groups, or, where those were too many, of the first one and of each group's first lane. */
static int make_cut(tgx_fft_plan *plan, int64_t first, int64_t second) {
    int64_t n = plan->n, groups = tgx_fft_groups(second), whole = n <= TGX_FFT_WHOLE, kept_groups = whole ? groups : 1;
    plan->first = (tgx_fft_plan *)tgx_fft_take(first, plan->dtype, TGX_FFT_STEPWISE);
    plan->second = (tgx_fft_plan *)tgx_fft_take(second, plan->dtype, plan->kind == TGX_FFT_CUT ? TGX_FFT_STEPWISE : -1);
    plan->by_lane = pairs(kept_groups * first * TGX_FFT_LANES, plan->dtype), plan->by_group = whole ? NULL : pairs(first * groups, plan->dtype);
    if (!plan->first || !plan->second || !plan->by_lane || (!whole && !plan->by_group)) return -1;
    for (int64_t g = 0; g < kept_groups; g++)
        for (int64_t k = 0; k < first; k++)
            for (int64_t lane = 0; lane < TGX_FFT_LANES; lane++)
                put_lane(plan->by_lane, plan->dtype, g * first + k, lane, k * (g * TGX_FFT_LANES + lane), n);
    for (int64_t g = 0; !whole && g < groups; g++)
        for (int64_t k = 0; k < first; k++) put_root(plan->by_group, plan->dtype, g * first + k, k * g * TGX_FFT_LANES % n, n);
    return 0;
}

static int make_chirp(tgx_fft_plan *plan, int64_t length) {
    int64_t n = plan->n;
    int size = 2 * tgx_itemsize[plan->dtype];
    plan->first = (tgx_fft_plan *)tgx_fft_take(length, plan->dtype, -1);
    plan->chirp = pairs(n, plan->dtype), plan->spectrum = pairs(length, plan->dtype);
    if (!plan->first || !plan->chirp || !plan->spectrum) return -1;
    memset(plan->spectrum, 0, (size_t)(length * size));
    for (int64_t k = 0, square = 0; k < n; k++) { /* k^2 modulo 2 n, by odd numbers */
        long double re, im;
        root_of_one(square, 2 * n, &re, &im);
        put(plan->chirp, plan->dtype, k, re, im);
        put(plan->spectrum, plan->dtype, k, re, -im);
        if (k) put(plan->spectrum, plan->dtype, length - k, re, -im);
        square = (square + 2 * k + 1) % (2 * n);
    }
    void *scratch = pairs(tgx_fft_how(length, 0).scratch, plan->dtype);
    if (!scratch) return -1;
    tgx_fft_row(plan->first, plan->spectrum, plan->spectrum, 0, 1, scratch);
    free(scratch);
    return 0;
}

static int make_halves(tgx_fft_plan *plan) {
    int64_t n = plan->n, count = n / 4 + 1;
    plan->first = (tgx_fft_plan *)tgx_fft_take(n / 2, plan->dtype, plan->kind == TGX_FFT_REALS ? TGX_FFT_STEPWISE : -1);
    plan->halves = pairs(count, plan->dtype);
    if (!plan->first || !plan->halves) return -1;
    for (int64_t k = 0; k < count; k++) put_root(plan->halves, plan->dtype, k, k, n);
    return 0;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void drop(tgx_fft_plan *plan) {
    for (int k = 0; k < plan->steps; k++) free(plan->step[k].factors), free(plan->step[k].roots);
    free(plan->by_lane), free(plan->by_group), free(plan->chirp), free(plan->spectrum), free(plan->halves);
    if (plan->first) tgx_fft_give_back(plan->first);
    if (plan->second) tgx_fft_give_back(plan->second);
    free(plan);
}

static tgx_fft_plan *make(int64_t n, int dtype, int asked) {
    tgx_fft_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    tgx_fft_cut cut = tgx_fft_how(n, asked == TGX_FFT_STEPWISE);
    plan->n = n, plan->dtype = dtype, plan->asked = asked, plan->kind = asked >= TGX_FFT_REAL ? asked : cut.kind;
    int failed = plan->kind >= TGX_FFT_REAL    ? make_halves(plan)
                 : plan->kind == TGX_FFT_CHIRP ? make_chirp(plan, cut.first)
                 : plan->kind == TGX_FFT_STEPWISE ? make_steps(plan)
                                               : make_cut(plan, cut.first, cut.second);
    if (!failed) return plan;
    drop(plan);
    return NULL;
}

static tgx_fft_plan *find(int64_t n, int dtype, int asked) {
    for (int k = 0; k < KEPT; k++)
        if (kept[k] && kept[k]->n == n && kept[k]->dtype == dtype && kept[k]->asked == asked) {
            kept[k]->users++, kept[k]->used = ++clock_of_uses;
            return kept[k];
        }
    return NULL;
}

const tgx_fft_plan *tgx_fft_take(int64_t n, int dtype, int asked) {
    pthread_mutex_lock(&lock);
    tgx_fft_plan *plan = find(n, dtype, asked), *old = NULL;
    pthread_mutex_unlock(&lock);
    if (plan || !(plan = make(n, dtype, asked))) return plan;
    pthread_mutex_lock(&lock);
    int slot = -1;
    for (int k = 0; k < KEPT; k++)
        if (!kept[k] || (!kept[k]->users && (slot < 0 || (kept[slot] && kept[k]->used < kept[slot]->used)))) slot = k;
    plan->users = 1, plan->used = ++clock_of_uses;
    if (slot >= 0) old = kept[slot], kept[slot] = plan;
    pthread_mutex_unlock(&lock);
    if (old) drop(old);
    return plan;
}

void tgx_fft_give_back(const tgx_fft_plan *given) {
    tgx_fft_plan *plan = (tgx_fft_plan *)given;
    pthread_mutex_lock(&lock);
    int held = 0;
    for (int k = 0; k < KEPT; k++) held |= kept[k] == plan;
    int last = --plan->users == 0 && !held;
    pthread_mutex_unlock(&lock);
    if (last) drop(plan);
}
