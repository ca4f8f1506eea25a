"""Collects the kernels that C files declare with TGX_KERNEL into one table, kernels/kernel_table_gen.c."""

import re

from generate_loops import write_if_changed

NOTE = "/* Generated from the TGX_KERNEL lines by tools/generate_kernels.py. */\n"

_DECLARED = re.compile(r"^TGX_KERNEL\((\w+),", re.M)


def declared(path):
    """Names of the kernels in a C file."""
    return _DECLARED.findall(path.read_text())


def kernel_files(kernels):
    """The C files of a folder that declare kernels."""
    return [c for c in sorted(kernels.glob("*.c")) if not c.stem.endswith("_gen") and declared(c)]


def write_table(kernels):
    """Write the table of all kernels below a folder."""
    names = sorted(name for c in kernel_files(kernels) for name in declared(c))
    text = NOTE + '#include "kernel_table.h"\n'
    text += "".join(f"extern const tgx_kernel tgx_kernel_{n};\n" for n in names)
    text += "const tgx_kernel *const tgx_kernels[] = {" + "".join(f"&tgx_kernel_{n}, " for n in names) + "0};\n"
    write_if_changed(kernels / "kernel_table_gen.c", text)
