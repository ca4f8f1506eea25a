"""Writes what C and Cython see of tinygrad_ext/core/data/table.py: kernels/table_gen.h and core/data/table_gen.pxd."""

import sys
import textwrap
import types
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "tinygrad_ext"


def stand_in(name, folder):
    """Let the modules of a package be imported whose __init__ needs what is only being built."""
    if name not in sys.modules:
        sys.modules[name] = module = types.ModuleType(name)
        module.__path__ = [str(folder)]


stand_in("tinygrad_ext", PACKAGE)
stand_in("tinygrad_ext.ops", PACKAGE / "ops")

from tinygrad_ext.core.data import table  # noqa: E402  the package by its stand-in


def numbered():
    """(number, row) of every dtype, those that plugins may bring last."""
    return [*enumerate(table.DTYPES), *enumerate(table.CODED_ROWS, table.CODED)]


def by_number(entry, between):
    """The text of an array over all numbers; `between`: of those that are nobody's yet."""
    held = {i: entry(row) for i, row in numbered()}
    return ", ".join(held.get(i, between) for i in range(table.MOST))


def test_of(kinds):
    """C's test whether a dtype is of one of the kinds: one comparison where they lie side by side, else a mask."""
    held = [i for i, row in numbered() if row.kind in kinds]
    low, high = held[0], held[-1]
    if len(held) != high - low + 1:
        return f"{sum(1 << i for i in held):#x}ull >> dtype & 1"
    if low == 0:
        return f"dtype <= {high}"
    return f"dtype >= {low}" if high == table.MOST - 1 else f"(unsigned)dtype - {low}u <= {high - low}u"


def enum(name, members):
    return f"enum {name} {{\n" + "".join(f"    {member}\n" for member in members) + "};\n\n"


def meanings():
    """The enums besides the dtypes: (name, prefix in C, prefix in Cython, format of a value, meanings)."""
    kinds = {name: word for name, (word, _) in table.ARGUMENT_KINDS.items()}
    yield "tgx_arg_kind", "ARG", "A", str, kinds
    yield "tgx_arg_flag", "FLAG", "F", lambda i: hex(1 << i), table.ARGUMENT_FLAGS
    yield "tgx_rule_code", "RULE", "P", lambda i: f"{i << 8:#05x}", table.RULE_CODES


def entries(rows, column):
    return ", ".join(f"[TGX_{row.code}] = name##{getattr(row, column)}" for row in rows)


def header():
    """The C header."""
    rows = table.DTYPES
    numbers = {row: i for i, row in numbered()}
    number = lambda row: str(numbers.get(row, -1))
    promoted = [by_number(lambda b, a=a: number(table.promoted(a, b)), "-1") for _, a in numbered()]
    text = "/* Generated from core/data/table.py by tools/generate_table.py. */\n"
    text += "#ifndef TGX_TABLE_H\n#define TGX_TABLE_H\n#include <stdint.h>\n\n"
    last = [f"TGX_NTYPES = {len(rows)},", f"TGX_CODED = {table.CODED}, /* the first that no kernel computes in */"]
    last.append(f"TGX_MOST = {table.MOST}")
    named = [f"TGX_{row.code} = {numbers[row]}," for row in table.NAMED]
    text += enum("tgx_dtype", [*named, *last])
    for name, prefix, _, value, words in meanings():
        text += enum(name, [f"TGX_{prefix}_{w} = {value(i)}, /* {words[w]} */" for i, w in enumerate(words)])
    text += f"static const int tgx_itemsize[TGX_MOST] = {{{by_number(lambda row: str(row.itemsize), '0')}}};\n"
    titles = by_number(lambda row: f'"{row.title}"', '""')
    text += f"static const char *const tgx_titles[TGX_MOST] = {{{titles}}};\n\n"
    text += "/* Of a dtype's number, which is none of the negative ones that stand for 'not given'. */\n"
    for name, (kinds, meaning) in table.PREDICATES.items():
        text += f"static inline int tgx_{name}(int dtype) {{ return {test_of(kinds)}; }} /* {meaning} */\n"
    text += "\n/* Entries of an array by dtype number: for a word of `types=`, and by the bytes of an element. */\n"
    for word, kinds in table.WORDS.items():
        text += f"#define TGX_OF_{word.upper()}(name) {entries(table.dtypes(*kinds), 'tag')}\n"
    text += f"#define TGX_BY_SIZE(name) {entries(rows, 'itemsize')}\n"
    text += "\n/* The dtype that holds both; -1: none does. */\nstatic inline int tgx_promote(int a, int b) {\n"
    text += "    static const int8_t to[TGX_MOST][TGX_MOST] = {\n"
    text += "".join(f"        [{i}] = {{{line}}},\n" for (i, _), line in zip(numbered(), promoted))
    return text + "    };\n    return to[a][b];\n}\n#endif\n"


def declarations():
    """The same for Cython."""
    text = '"""Written of core/data/table.py by tools/generate_table.py."""\n\ncdef extern from "table_gen.h" nogil:\n'
    names = ", ".join([*(f"TGX_{row.code}" for row in table.NAMED), "TGX_NTYPES", "TGX_CODED", "TGX_MOST"])
    text += "    cdef enum tgx_dtype:\n" + textwrap.indent(textwrap.fill(names, 100), " " * 8) + "\n"
    for name, long, short, _, words in meanings():
        text += f"    cdef enum {name}:\n"
        text += "".join(f'        {short}_{word} "TGX_{long}_{word}"      # {words[word]}\n' for word in words)
    text += '    const int *ITEMSIZE "tgx_itemsize"\n'
    for name, (_, meaning) in table.PREDICATES.items():
        text += f'    bint {name} "tgx_{name}"(int dtype) noexcept      # {meaning}\n'
    return text + '    int promote "tgx_promote"(int a, int b) noexcept\n'


def files(package):
    """Path -> text of what is generated."""
    return {package / "kernels" / "table_gen.h": header(), package / "core" / "data" / "table_gen.pxd": declarations()}


def generate(package):
    """Write both files where they changed, so that nothing is compiled again otherwise."""
    for path, text in files(package).items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    generate(PACKAGE)
