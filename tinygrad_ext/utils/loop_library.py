"""Writes and builds what a plugin's scalar= expressions become: one library, for three instruction sets."""

import json
from pathlib import Path

from tinygrad_ext.ops import record
from tinygrad_ext.ops.schema import Schema

from . import formula_text, loop_text

KERNELS = Path(__file__).parent.parent / "kernels"
# as the built-in loops are compiled: the same bits on every machine, and in the body and the end of a loop
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fno-strict-aliasing",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]
EXPORTED = """#include "loop_library.h"
extern const tgx_loop_row rows_base[], rows_avx2[], rows_avx512[];
extern const tgx_formula_row tgx_formulas[];
static int (*wide)(const tgx_wide *, char **, const ptrdiff_t *, ptrdiff_t, const tgx_scalar *);
int tgx_wide_loop(const tgx_wide *w, char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) {
    return wide(w, data, s, count, aux);
}
static const char *const said[] = {%s, 0};
__attribute__((visibility("default"))) extern const tgx_loop_library tgx_loops_v1;
const tgx_loop_library tgx_loops_v1 = {
    TGX_LOOP_LIBRARY, TGX_NTYPES, {rows_base, rows_avx2, rows_avx512}, tgx_formulas, said, &wide};
"""


def write(sources, folder):
    """Write the C files of the records in Python files into a folder; returns their paths.

    Raises ValueError for a record that cannot be read, and where there is none with scalar=.
    """
    found = [r for path in sources for r in loop_text.records(Path(path), "register")]
    if not found:
        raise ValueError(f'{", ".join(map(str, sources))}: no call of register("...", scalar=...) stands there')
    loops, listed, plain = loop_text.family(found)
    text = loop_text.table_of("rows", loops, listed)
    said = ", ".join(json.dumps(record.said(str(Schema.parse(schema)), fields)) for schema, fields in found)
    files = dict(loop_text.thrice(loop_text.headers(KERNELS, text) + text))
    files |= {"formulas": formula_text.text(plain), "exported": EXPORTED % said}
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in files.items():
        path = folder / f"{name}.c"
        if not path.exists() or path.read_text() != content:  # else nothing is compiled again
            path.write_text(content)
        paths.append(str(path))
    return paths
