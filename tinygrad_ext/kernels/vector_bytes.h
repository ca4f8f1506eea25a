/* How wide the vectors of an X_isa.h kernel are, and what the processor can do with them. */
#ifndef TGX_VECTOR_BYTES_H
#define TGX_VECTOR_BYTES_H
#ifdef __AVX2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#endif
