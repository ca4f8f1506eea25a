/* Which of the three builds of an X_isa.h kernel this machine runs: 0 base, 1 AVX2, 2 AVX-512.
 * TINYGRAD_EXT_ISA=base|avx2|avx512 lowers it. */
#ifndef TGX_ISA_H
#define TGX_ISA_H
#include <stdlib.h>
#include <string.h>

static inline int tgx_cpu_level(void) {
    int level = 0;
    const char *wanted = getenv("TINYGRAD_EXT_ISA");
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")
        && __builtin_cpu_supports("f16c"))
        level = 1;
    if (level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) level = 2;
#endif
    if (wanted && !strcmp(wanted, "base")) return 0;
    if (wanted && !strcmp(wanted, "avx2") && level > 1) return 1;
    return level;
}

/* Whether it multiplies pairs of bfloat16 (AVX512-BF16). */
static inline int tgx_cpu_multiplies_bf16(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    return tgx_cpu_level() == 2 && __builtin_cpu_supports("avx512bf16");
#else
    return 0;
#endif
}

/* PICK(table) is table_base, table_avx2 or table_avx512. */
#define TGX_PICK(name) (tgx_cpu_level() == 2 ? &name##_avx512 : tgx_cpu_level() == 1 ? &name##_avx2 : &name##_base)
#endif
