# cython: language_level=3
"""The generated pointwise loops (kernels/loops_*_gen.c) by op, in the best instruction set of this machine.

TINYGRAD_EXT_ISA=base|avx2|avx512 chooses a lower one, for tests and for comparing machines. Rejected: one build by
-march=native, which runs on machines like the builder's alone and rounds as each of them likes, where these three give
the same bits wherever one of them runs.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from tinygrad_ext.core.data.types cimport TGX_BF16, TGX_F16, TGX_F32, TGX_F64, tgx_loop
from tinygrad_ext.core.loops.copy cimport casts, tgx_use_casts

cdef extern from *:
    """
    #include "emit_formula.h"
    #include "isa.h"
    #include "loop_library.h"
    #include <dlfcn.h>
    #include <stdlib.h>
    /* the loops of a library's row, which may know fewer dtypes than there are here; they are never given back */
    static tgx_loop *tgx_row_of(const char *row, int dtypes) {
        tgx_loop *loops = calloc(TGX_NTYPES, sizeof(tgx_loop));
        if (loops) memcpy(loops, row + offsetof(tgx_loop_row, loops), dtypes * sizeof(tgx_loop));
        return loops;
    }
    static void tgx_give_wide(const tgx_loop_library *library) { *library->wide = tgx_wide_loop; }
    static const char *tgx_name_of_row(const char *row) { return *(const char *const *)row; }
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
    ctypedef struct tgx_loop_library:
        int version, dtypes
        const tgx_loop_row *loops[3]
        const tgx_formula_row *formulas
        const char **said
    enum:
        TGX_LOOP_LIBRARY, TGX_NTYPES, RTLD_NOW, RTLD_LOCAL
    int tgx_cpu_level()
    int tgx_cpu_multiplies_bf16()
    void *dlopen(const char *path, int flags)
    void *dlsym(void *library, const char *name)
    char *dlerror()
    tgx_loop *tgx_row_of(const char *row, int dtypes)
    void tgx_give_wide(const tgx_loop_library *library)
    const char *tgx_name_of_row(const char *row)

tgx_use_casts(casts())

INSTRUCTION_SETS = ("base", "avx2", "avx512")
tables = {}      # name of an op -> a capsule of its loops by dtype
said = {}        # name of a plugin's op -> what its loops were compiled from
numbers = {}     # address of a loop over two halves -> that of its loop for a half and a number of float32, the call's first scalar
_formulas = {}   # address of a loop -> (address of its formula, name of the op)


def instruction_set():
    """Name of the instruction set in use: base, avx2 or avx512."""
    return INSTRUCTION_SETS[tgx_cpu_level()]


def multiplies_bfloat16():
    """Whether the processor has products of bfloat16, and they are not left out by TINYGRAD_EXT_ISA."""
    return bool(tgx_cpu_multiplies_bf16())


def formulas():
    """{address of a loop over floats: (address of the tgx_formula of its elements, name of the op)}, for plain arithmetic.

    One dict, which grows with the libraries of plugins.
    """
    return _formulas


cdef dict _numbers_of(dict rows):
    cdef tgx_loop *loops
    cdef tgx_loop *beside
    found = {}
    for name in rows:
        if name.endswith("/number"):
            beside = <tgx_loop *>PyCapsule_GetPointer(rows[name], NULL)
            loops = <tgx_loop *>PyCapsule_GetPointer(rows[name.removesuffix("/number")], NULL)
            for dtype in (TGX_F16, TGX_BF16):
                found[<size_t>loops[<int>dtype]] = <size_t>beside[<int>dtype]
    return found


cdef dict _formulas_of(const tgx_formula_row *row, dict rows):
    cdef tgx_loop *loops
    found = {}
    while row.name != NULL:
        loops = <tgx_loop *>PyCapsule_GetPointer(rows[row.name.decode()], NULL)
        for dtype in (TGX_F32, TGX_F64):
            if loops[<int>dtype] != NULL:
                found[<size_t>loops[<int>dtype]] = <size_t>&row.formula, row.name.decode()
        row += 1
    return found


def read(path):
    """(rows for `tables`, rows for `formulas()`, rows for `said`) of a library of loops; it stays open for ever.

    Raises OSError for a file that is none, ImportError for one that is made for another version.
    """
    cdef const tgx_loop_library *library
    cdef const char *row
    cdef int k = 0
    cdef void *opened = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if opened == NULL:
        raise OSError(f"{path}: {dlerror().decode(errors='replace')}")
    library = <const tgx_loop_library *>dlsym(opened, b"tgx_loops_v1")
    if library == NULL:
        raise ImportError(f"{path} has no loops of pointwise ops: it exports no tgx_loops_v1. Build it as PointwiseExtension")
    if library.version != TGX_LOOP_LIBRARY or not 0 < library.dtypes <= TGX_NTYPES:
        raise ImportError(
            f"{path} has loops of version {library.version} over {library.dtypes} dtypes, and here they are of version "
            f"{TGX_LOOP_LIBRARY} over {TGX_NTYPES}. Build it with this tinygrad_ext"
        )
    tgx_give_wide(library)
    rows, texts = {}, {}
    row = <const char *>library.loops[tgx_cpu_level()]
    while tgx_name_of_row(row) != NULL:
        name = tgx_name_of_row(row).decode()
        rows[name] = PyCapsule_New(<void *>tgx_row_of(row, library.dtypes), NULL, NULL)
        texts[name] = library.said[k].decode()
        row += sizeof(char *) + library.dtypes * sizeof(tgx_loop)
        k += 1
    return rows, _formulas_of(library.formulas, rows), texts


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
numbers.update(_numbers_of(tables))
_formulas.update(_formulas_of(tgx_formulas, tables))
