/* Dtypes of plugins to and from float32. See coded.h. */
#include "coded.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

static void widen_row(const tgx_coded *c, const void *codes, float *to, int64_t n) {
    if (c->widen) {
        c->widen(codes, to, n);
    } else if (c->itemsize == 1) {
        for (int64_t i = 0; i < n; i++) to[i] = c->values[((const uint8_t *)codes)[i]];
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = c->values[((const uint16_t *)codes)[i]];
    }
}

static uint16_t code_of(const tgx_coded *c, float x) {
    int side = signbit(x) != 0;
    if (isnan(x)) return c->nan[side];
    float size = fabsf(x);
    const float *step = c->steps[side];
    for (int64_t left = c->nsteps[side]; left > 0;) {
        int64_t half = (left + 1) / 2;
        int above = size > step[half - 1];
        step += above ? half : 0;
        left = above ? left - half : half - 1;
    }
    return c->codes[side][step - c->steps[side]];
}

static void narrow_row(const tgx_coded *c, const float *from, void *codes, int64_t n) {
    if (c->narrow) {
        c->narrow(from, codes, n);
    } else if (c->itemsize == 1) {
        for (int64_t i = 0; i < n; i++) ((uint8_t *)codes)[i] = (uint8_t)code_of(c, from[i]);
    } else {
        for (int64_t i = 0; i < n; i++) ((uint16_t *)codes)[i] = code_of(c, from[i]);
    }
}

static void gather(const char *from, ptrdiff_t stride, char *to, int64_t n, int size) {
    for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + i * stride, (size_t)size);
}

static void scatter(const char *from, char *to, ptrdiff_t stride, int64_t n, int size) {
    for (int64_t i = 0; i < n; i++) memcpy(to + i * stride, from + i * size, (size_t)size);
}

int tgx_coded_widen(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    const tgx_coded *c = (const tgx_coded *)(intptr_t)aux->i;
    uint16_t codes[BLOCK];
    float numbers[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t many = n - at < BLOCK ? n - at : BLOCK;
        gather(data[1] + at * strides[1], strides[1], (char *)codes, many, c->itemsize);
        widen_row(c, codes, numbers, many);
        scatter((const char *)numbers, data[0] + at * strides[0], strides[0], many, 4);
    }
    return 0;
}

int tgx_coded_narrow(char **data, const ptrdiff_t *strides, ptrdiff_t n, const tgx_scalar *aux) {
    const tgx_coded *c = (const tgx_coded *)(intptr_t)aux->i;
    uint16_t codes[BLOCK];
    float numbers[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t many = n - at < BLOCK ? n - at : BLOCK;
        gather(data[1] + at * strides[1], strides[1], (char *)numbers, many, 4);
        narrow_row(c, numbers, codes, many);
        scatter((const char *)codes, data[0] + at * strides[0], strides[0], many, c->itemsize);
    }
    return 0;
}
