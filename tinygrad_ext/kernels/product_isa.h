/* Products of integers modulo 2^bits in one instruction set. Four rows of A at a time against vectors of B's columns;
 * the depth is cut so that the part of B in use stays near. */
#include "product.h"
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
enum { ROWS = 4, VECTORS = 2, DEPTH = 128 };

/* Unsigned types wrap. The narrow ones are widened by C to int, where two uint16_t could overflow: int16_t cannot. */
#define T uint8_t
#define NAME(base) base##_8
#include "product_loops.h"
#undef T
#undef NAME
#define T int16_t
#define NAME(base) base##_16
#include "product_loops.h"
#undef T
#undef NAME
#define T uint32_t
#define NAME(base) base##_32
#include "product_loops.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(base) base##_64
#include "product_loops.h"

void ISA(tgx_integer_product)(const tgx_shape *s, int size, int64_t alpha, const void *a, const void *b, int64_t beta, void *c) {
    if (size == 1) product_8(s, (uint8_t)alpha, a, b, (uint8_t)beta, c);
    else if (size == 2) product_16(s, (int16_t)alpha, a, b, (int16_t)beta, c);
    else if (size == 4) product_32(s, (uint32_t)alpha, a, b, (uint32_t)beta, c);
    else product_64(s, (uint64_t)alpha, a, b, (uint64_t)beta, c);
}
