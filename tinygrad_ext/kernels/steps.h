/* The number of a storage type that follows x on the way to y. C has it for float and double; the two halves, which
 * expressions see as float, step in their own bits: of numbers of one sign the larger magnitude is the larger integer. */
#ifndef TGX_STEPS_H
#define TGX_STEPS_H
#include "loops.h"

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

#define vm_nextafter_f32 nextafterf
#define vm_nextafter_f64 nextafter
#endif
