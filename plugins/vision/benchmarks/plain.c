/* roi_align as one would write it in C: the same tables and loops as regions.pyx, float only, no checks. */
#include <math.h>
#include <stdlib.h>

static int table(float start, float end, int bins, int samples, int length, int pitch, int *first, int *low, int *high,
                 float *weights, float *grid)
{
    float size = end - start > 1 ? end - start : 1, bin = size / bins;
    int n = 0, per_bin = samples > 0 ? samples : (int)ceilf(size / bins);
    for (int b = 0; b < bins; b++) {
        first[b] = n;
        for (int i = 0; i < per_bin; i++) {
            float at = start + b * bin + (i + 0.5f) * bin / per_bin;
            if (at < -1 || at > length)
                continue;
            if (at < 0)
                at = 0;
            int k = (int)at, next = k + 1;
            if (k >= length - 1)
                at = k = next = length - 1;
            weights[2 * n + 1] = at - k;
            weights[2 * n] = 1 - weights[2 * n + 1];
            low[n] = k * pitch;
            high[n++] = next * pitch;
        }
    }
    first[bins] = n;
    *grid = per_bin;
    return n;
}

/* tables: room for all samples of the largest region in one direction */
void roi_align(const float *image, const float *rois, float *out, int regions, float scale, int samples, int channels,
               int height, int width, int bins_y, int bins_x, int room)
{
    int *ints = malloc(sizeof(int) * (4 * room + bins_y + bins_x + 2));
    float *floats = malloc(sizeof(float) * 4 * room);
    int *fy = ints, *fx = fy + bins_y + 1, *ly = fx + bins_x + 1, *hy = ly + room, *lx = hy + room, *hx = lx + room;
    float *wy = floats, *wx = floats + 2 * room, gy, gx;
    for (int n = 0; n < regions; n++, rois += 5) {
        table(rois[2] * scale, rois[4] * scale, bins_y, samples, height, width, fy, ly, hy, wy, &gy);
        table(rois[1] * scale, rois[3] * scale, bins_x, samples, width, 1, fx, lx, hx, wx, &gx);
        for (int c = 0; c < channels; c++) {
            const float *plane = image + ((int)rois[0] * channels + c) * height * width;
            for (int by = 0; by < bins_y; by++)
                for (int bx = 0; bx < bins_x; bx++) {
                    float total = 0;
                    for (int i = fy[by]; i < fy[by + 1]; i++) {
                        const float *a = plane + ly[i], *b = plane + hy[i];
                        for (int j = fx[bx]; j < fx[bx + 1]; j++)
                            total += wy[2 * i] * (wx[2 * j] * a[lx[j]] + wx[2 * j + 1] * a[hx[j]]) +
                                     wy[2 * i + 1] * (wx[2 * j] * b[lx[j]] + wx[2 * j + 1] * b[hx[j]]);
                    }
                    *out++ = total / (gy * gx);
                }
        }
    }
    free(ints);
    free(floats);
}

/* image starts as zeros */
void roi_align_backward(float *image, const float *rois, const float *grad, int regions, float scale, int samples,
                        int channels, int height, int width, int bins_y, int bins_x, int room)
{
    int *ints = malloc(sizeof(int) * (4 * room + bins_y + bins_x + 2));
    float *floats = malloc(sizeof(float) * 4 * room);
    int *fy = ints, *fx = fy + bins_y + 1, *ly = fx + bins_x + 1, *hy = ly + room, *lx = hy + room, *hx = lx + room;
    float *wy = floats, *wx = floats + 2 * room, gy, gx;
    for (int n = 0; n < regions; n++, rois += 5) {
        table(rois[2] * scale, rois[4] * scale, bins_y, samples, height, width, fy, ly, hy, wy, &gy);
        table(rois[1] * scale, rois[3] * scale, bins_x, samples, width, 1, fx, lx, hx, wx, &gx);
        for (int c = 0; c < channels; c++) {
            float *plane = image + ((int)rois[0] * channels + c) * height * width;
            for (int by = 0; by < bins_y; by++)
                for (int bx = 0; bx < bins_x; bx++) {
                    float share = *grad++ / (gy * gx);
                    for (int i = fy[by]; i < fy[by + 1]; i++) {
                        float *a = plane + ly[i], *b = plane + hy[i];
                        float upper = share * wy[2 * i], lower = share * wy[2 * i + 1];
                        for (int j = fx[bx]; j < fx[bx + 1]; j++) {
                            a[lx[j]] += upper * wx[2 * j];
                            a[hx[j]] += upper * wx[2 * j + 1];
                            b[lx[j]] += lower * wx[2 * j];
                            b[hx[j]] += lower * wx[2 * j + 1];
                        }
                    }
                }
        }
    }
    free(ints);
    free(floats);
}
