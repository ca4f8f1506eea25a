# cython: language_level=3
"""The generated pointwise loops (kernels/loops_*_gen.c) by op, in the best instruction set of this machine.

TINYGRAD_EXT_ISA=base|avx2|avx512 chooses a lower one, for tests and for comparing machines. Rejected: one build by
-march=native, which runs on machines like the builder's alone and rounds as each of them likes, where these three give
the same bits wherever one of them runs.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from tinygrad_ext.core.data.types cimport TGX_F32, TGX_F64, tgx_loop

cdef extern from *:
    """
    #include "emit_formula.h"
    #include "isa.h"
    extern const tgx_loop_row *const tgx_loops_base[], *const tgx_loops_avx2[], *const tgx_loops_avx512[];
    extern const tgx_formula_row tgx_formulas[];
    """
    ctypedef struct tgx_formula:
        pass
    ctypedef struct tgx_formula_row:
        const char *name
        tgx_formula formula
    const tgx_formula_row *tgx_formulas
    ctypedef struct tgx_loop_row:
        const char *name
        tgx_loop *loops
    const tgx_loop_row **tgx_loops_base
    const tgx_loop_row **tgx_loops_avx2
    const tgx_loop_row **tgx_loops_avx512
    int tgx_cpu_level()

INSTRUCTION_SETS = ("base", "avx2", "avx512")
tables = {}


def instruction_set():
    """Name of the instruction set in use: base, avx2 or avx512."""
    return INSTRUCTION_SETS[tgx_cpu_level()]


def formulas():
    """{address of a loop over floats: (address of the tgx_formula of its elements, name of the op)}, for plain arithmetic."""
    cdef const tgx_formula_row *row = tgx_formulas
    cdef tgx_loop *loops
    found = {}
    while row.name != NULL:
        loops = <tgx_loop *>PyCapsule_GetPointer(tables[row.name.decode()], NULL)
        for dtype in (TGX_F32, TGX_F64):
            if loops[<int>dtype] != NULL:
                found[<size_t>loops[<int>dtype]] = <size_t>&row.formula, row.name.decode()
        row += 1
    return found


def _load():
    cdef const tgx_loop_row **family
    cdef const tgx_loop_row *row
    used = instruction_set()
    if used == "avx512":
        family = <const tgx_loop_row **>tgx_loops_avx512
    elif used == "avx2":
        family = <const tgx_loop_row **>tgx_loops_avx2
    else:
        family = <const tgx_loop_row **>tgx_loops_base
    while family[0] != NULL:
        row = family[0]
        while row.name != NULL:
            tables[row.name.decode()] = PyCapsule_New(<void *>row.loops, NULL, NULL)
            row += 1
        family += 1


_load()
