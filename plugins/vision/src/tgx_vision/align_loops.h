/* Loops of roi_align for one type of numbers, REAL; NAME(x) is x with its mark.
 *
 * A sample lies at (y, x) between four pixels, and y is the same for a whole row of samples. So each region first gets two
 * tables of taps (two neighbours and their weights), one for y and one for x; the loops over channels and bins only look up.
 * Samples outside the image count but add nothing, so they get no tap: that also bounds the tables by the size of the
 * image, whatever the box says. */

/* Fill the table of one direction, freed by the caller whatever comes; 0 when there is no memory. weights holds, for tap i,
 * that of low at 2 i and that of high at 2 i + 1. */
static int NAME(make_taps)(REAL start, REAL end, int64_t bins, int64_t samples, int64_t length, int64_t pitch, taps *t,
                           REAL **weights) {
    REAL size = end - start;
    int64_t n = 0;
    if (!(size > 1)) size = 1;
    REAL bin_size = size / (REAL)bins;
    t->grid = samples > 0 ? (double)samples : ceil((double)(size / (REAL)bins));
    double step = (double)bin_size / t->grid, most = t->grid < FAR ? t->grid : FAR;
    /* no bin has more samples in [-1, length] than fit there, and two for the rounding at each end */
    double places = clamped((length + 1) / step + 4, most) * bins;
    if (places > TOO_MANY) return 0;
    int64_t room = (int64_t)places;
    t->first = malloc((bins + 1) * sizeof(int64_t));
    t->low = malloc((room + 1) * sizeof(int64_t));
    t->high = malloc((room + 1) * sizeof(int64_t));
    *weights = malloc((2 * room + 2) * sizeof(REAL));
    if (t->first == NULL || t->low == NULL || t->high == NULL || *weights == NULL) return 0;
    for (int64_t b = 0; b < bins; b++) {
        t->first[b] = n;
        REAL base = start + (REAL)b * bin_size;
        int64_t lower = (int64_t)clamped(floor((-1 - (double)base) / step - 0.5) - 1, most);
        int64_t upper = (int64_t)clamped(ceil((length - (double)base) / step - 0.5) + 1, most);
        for (int64_t i = lower; i < upper; i++) {
            REAL at = base + ((REAL)i + (REAL)0.5) * bin_size / (REAL)t->grid;
            if (at < -1 || at > length || n >= room) continue;
            if (at <= 0) at = 0;
            t->low[n] = (int64_t)at;
            if (t->low[n] >= length - 1) {
                t->high[n] = t->low[n] = length - 1;
                at = (REAL)t->low[n];
            } else {
                t->high[n] = t->low[n] + 1;
            }
            (*weights)[2 * n + 1] = at - (REAL)t->low[n];
            (*weights)[2 * n] = 1 - (*weights)[2 * n + 1];
            t->low[n] *= pitch;
            t->high[n] *= pitch;
            n++;
        }
    }
    t->first[bins] = n;
    return 1;
}

/* All bins of one region in one channel. */
static void NAME(average)(const REAL *plane, REAL *out, const taps *ys, const taps *xs, const REAL *wy, const REAL *wx,
                          REAL count, int64_t bins_y, int64_t bins_x) {
    const int64_t *left = xs->low, *right = xs->high;
    for (int64_t by = 0; by < bins_y; by++)
        for (int64_t bx = 0; bx < bins_x; bx++) {
            REAL total = 0;
            for (int64_t i = ys->first[by]; i < ys->first[by + 1]; i++) {
                const REAL *low = plane + ys->low[i], *high = plane + ys->high[i];
                for (int64_t j = xs->first[bx]; j < xs->first[bx + 1]; j++) {
                    REAL upper = wx[2 * j] * low[left[j]] + wx[2 * j + 1] * low[right[j]];
                    REAL lower = wx[2 * j] * high[left[j]] + wx[2 * j + 1] * high[right[j]];
                    total += wy[2 * i] * upper + wy[2 * i + 1] * lower;
                }
            }
            *out++ = total / count;
        }
}

/* Add to a plane what each pixel had to do with the bins: the transpose of `average`. */
static void NAME(spread)(REAL *plane, const REAL *grad, const taps *ys, const taps *xs, const REAL *wy, const REAL *wx,
                         REAL count, int64_t bins_y, int64_t bins_x) {
    const int64_t *left = xs->low, *right = xs->high;
    for (int64_t by = 0; by < bins_y; by++)
        for (int64_t bx = 0; bx < bins_x; bx++) {
            REAL share = *grad++ / count;
            int64_t first = xs->first[bx], last = xs->first[bx + 1];
            for (int64_t i = ys->first[by]; i < ys->first[by + 1]; i++) {
                REAL *low = plane + ys->low[i], *high = plane + ys->high[i];
                REAL upper = share * wy[2 * i], lower = share * wy[2 * i + 1];
                for (int64_t j = first; j < last; j++) {
                    REAL one = wx[2 * j], two = wx[2 * j + 1];
                    low[left[j]] += upper * one;
                    low[right[j]] += upper * two;
                    high[left[j]] += lower * one;
                    high[right[j]] += lower * two;
                }
            }
        }
}

/* Forward from image to pooled, or backward from pooled into image; 0 when there is no memory. */
static int NAME(align)(REAL *image, REAL *pooled, const REAL *rois, int backward, int64_t regions, const sizes *s) {
    int64_t area = s->height * s->width, bins = s->bins_y * s->bins_x;
    REAL scale = (REAL)s->scale;
    int made = 1;
    for (int64_t n = 0; n < regions && made; n++) {
        const REAL *roi = rois + 5 * n;
        taps ys = {0, 0, 0, 0}, xs = {0, 0, 0, 0};
        REAL *wy = NULL, *wx = NULL;
        made = NAME(make_taps)(roi[2] * scale, roi[4] * scale, s->bins_y, s->samples, s->height, s->width, &ys, &wy)
            && NAME(make_taps)(roi[1] * scale, roi[3] * scale, s->bins_x, s->samples, s->width, 1, &xs, &wx);
        REAL count = made ? (REAL)(ys.grid * xs.grid) : 1;
        for (int64_t c = 0; made && c < s->channels; c++, pooled += bins) {
            REAL *plane = image + ((int64_t)roi[0] * s->channels + c) * area;
            if (backward) NAME(spread)(plane, pooled, &ys, &xs, wy, wx, count, s->bins_y, s->bins_x);
            else NAME(average)(plane, pooled, &ys, &xs, wy, wx, count, s->bins_y, s->bins_x);
        }
        free_taps(&ys);
        free_taps(&xs);
        free(wy);
        free(wx);
    }
    return made;
}

/* Refuse a region that cannot be used: a number of an image that is not there, or what is not finite. */
static int NAME(check_rois)(tgx_ctx *c, const REAL *rois, int64_t regions, double scale, int64_t batch) {
    for (int64_t n = 0; n < regions; n++) {
        const REAL *roi = rois + 5 * n;
        if (!(roi[0] >= 0 && roi[0] < batch) || roi[0] != floor(roi[0]))
            return tgx->fail(c, "IndexError", "rois[%lld, 0] is %g, but it must be the number of an image of the batch, 0 to %lld",
                             (long long)n, (double)roi[0], (long long)batch - 1);
        for (int k = 1; k < 5; k++)         /* the extent may be too large where both ends are not */
            if (!isfinite((REAL)(roi[k] * (REAL)scale)) || (k > 2 && !isfinite((REAL)((roi[k] - roi[k - 2]) * (REAL)scale))))
                return tgx->fail(c, "ValueError", "rois[%lld] = [%g, %g, %g, %g, %g] is no box: entry %d times spatial_scale, and "
                                 "the box's extent, must be finite", (long long)n, (double)roi[0], (double)roi[1],
                                 (double)roi[2], (double)roi[3], (double)roi[4], k);
    }
    return 0;
}
