/* The number of a storage type that follows x on the way to y, stepped to in its bits: of numbers of one sign the larger
 * magnitude is the larger integer. Expressions see the two halves as float. */
#ifndef TGX_STEPS_H
#define TGX_STEPS_H
#include "loops.h"
#include "vecmath_base.h"

static inline uint16_t vm_next_bits(uint16_t bits, float x, float y)
{
    if (x == 0) return (uint16_t)(y < 0 ? 0x8001 : 1); /* the smallest one, past either zero */
    return (uint16_t)((x < y) == (x > 0) ? bits + 1 : bits - 1);
}

#define VM_NEXTAFTER(tag)                                              \
    static inline float vm_nextafter_##tag(float x, float y)           \
    {                                                                  \
        if (x != x || y != y || x == y) return x == y ? y : x + y;     \
        return GET_##tag(vm_next_bits(PUT_##tag(x), x, y));            \
    }

VM_NEXTAFTER(f16)
VM_NEXTAFTER(bf16)

/* The same in the bits of a float and of a double; past either zero lies the smallest number. */
#define VM_NEXT(tag, T, B, SMALLEST_BELOW)                                        \
    static inline T vm_nextafter_##tag(T x, T y)                                  \
    {                                                                             \
        B bits = vm_bits_##tag(x), step = (x < y) == (x > 0) ? (B)1 : (B)-1;      \
        bits = x == 0 ? (y < 0 ? SMALLEST_BELOW : (B)1) : (B)(bits + step);       \
        T next = vm_from_bits_##tag(bits);                                        \
        next = x == y ? y : next;                                                 \
        return (x != x) | (y != y) ? x + y : next;                                \
    }

VM_NEXT(f32, float, uint32_t, 0x80000001u)
VM_NEXT(f64, double, uint64_t, 0x8000000000000001u)
#endif
