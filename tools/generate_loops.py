"""Writes the C loops of the built-in ops; what stands in them is made by tinygrad_ext/utils/loop_text.py.

The loops of each family file go to C files of their own, kernels/loops_<family>_<isa>_gen.c, so that a changed record
compiles one family again; the file kernels/loops_tables_gen.c lists the families' tables, loops_formulas_gen.c what
utils/formula_text.py makes of those expressions that are plain arithmetic.

Every other kernels/X_isa.h is compiled three times, for three instruction sets, by small generated C files
X_base_gen.c, X_avx2_gen.c, X_avx512_gen.c; its public names are written ISA(name).
"""

from generate_table import PACKAGE, stand_in

stand_in("tinygrad_ext.utils", PACKAGE / "utils")

from tinygrad_ext.utils import formula_text as formulas  # noqa: E402  by its stand-in
from tinygrad_ext.utils import loop_text  # noqa: E402

NOTE = "/* Generated from the op records by tools/generate_loops.py. */\n"


def write_if_changed(path, text):
    """Leave the file's time alone when nothing changed, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(package):
    """Write all generated C files below `package`."""
    kernels, names, fresh, plain = package / "kernels", [], set(), []
    for path in sorted((package / "ops").rglob("*.py")):
        loops, listed, found = loop_text.family(loop_text.records(path))
        plain += found
        if not listed:
            continue
        names.append(path.stem)
        text = loop_text.table_of(f"tgx_loops_{path.stem}", loops, listed)
        fresh.update(compiled_thrice(kernels, f"loops_{path.stem}", loop_text.headers(kernels, text) + text))
    fresh.update(kernels / f"loops_{name}_gen.c" for name in ("tables", "formulas"))
    for old in set(kernels.glob("loops_*_gen.c")) - fresh:
        old.unlink()
    for body in sorted(kernels.glob("*_isa.h")):
        compiled_thrice(kernels, body.stem[:-4], f'#include "{body.name}"\n')
    write_if_changed(kernels / "loops_tables_gen.c", tables(names))
    write_if_changed(kernels / "loops_formulas_gen.c", formulas.text(plain))


def compiled_thrice(kernels, stem, body):
    """Write a C text for each instruction set; returns the paths."""
    paths = []
    for suffix, text in loop_text.thrice(body):
        path = kernels / f"{stem}_{suffix}_gen.c"
        write_if_changed(path, NOTE + text)
        paths.append(path)
    return paths


def tables(names):
    """C text of the list of all families' tables, by instruction set."""
    text = NOTE + '#include "types.h"\n'
    for suffix in loop_text.TARGETS:
        text += "".join(f"extern const tgx_loop_row tgx_loops_{n}_{suffix}[];\n" for n in names)
        text += f"const tgx_loop_row *const tgx_loops_{suffix}[] = "
        text += f"{{{', '.join(f'tgx_loops_{n}_{suffix}' for n in names)}, 0}};\n"
    return text


if __name__ == "__main__":
    generate(PACKAGE)
