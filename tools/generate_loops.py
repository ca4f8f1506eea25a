"""Reads the scalar= expressions of the op records and writes the C loops.

The records are read as text (ast), not imported: at build time nothing compiled exists. So `scalar`, `types`,
`returns`, `inputs` and `promote` of a record must be literals. One row a loop goes to kernels/loops_body_gen.h;
kernels/loops_isa.h includes it. Every kernels/X_isa.h is compiled three times, for three instruction sets, by small
generated C files X_base_gen.c, X_avx2_gen.c, X_avx512_gen.c; its public names are written ISA(name).
"""
import ast
import importlib
import re
import sys
import types
from pathlib import Path

KINDS = {"bool": ["b8"], "int": ["u8", "i8", "i16", "i32", "i64"], "float": ["f32", "f64"], "half": ["f16", "bf16"],
         "complex": ["c64", "c128"]}
SLOT = {t: i for i, t in enumerate(["b8", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"])}
COMPUTE = {"b8": "uint8_t", "u8": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
           "f16": "float", "bf16": "float", "f32": "float", "f64": "double", "c64": "tgx_c64", "c128": "tgx_c128"}
TARGETS = {  # suffix -> (pragma, condition under which the compiler can make it)
    "base": ("", "1"),
    "avx2": ('#pragma GCC target("avx2,fma,bmi2")', "defined(__x86_64__)"),
    "avx512": ('#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,prefer-vector-width=512")',
               "defined(__x86_64__)"),
}
MATH = re.compile(r"\b(exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|"
                  r"atanh|sigmoid|erf|erfc|lgamma|digamma|trigamma|pow|atan2|hypot|fabs|floor|ceil|trunc|rint|fmod|copysign|"
                  r"fmax|fmin|logaddexp)\(")
LIBM = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "fmod", "copysign", "fmax", "fmin"}


def records(folder):
    """(schema, keyword literals) of every op() call with scalar= in the record files."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "op" and node.args:
                fields = {k.arg: k.value for k in node.keywords}
                if "scalar" in fields:
                    wanted = ("scalar", "types", "returns", "inputs", "promote")
                    yield ast.literal_eval(node.args[0]), {k: ast.literal_eval(fields[k]) for k in wanted if k in fields}


def schema_class(folder):
    """The package's schema parser, imported without the package, which is not built yet."""
    package = types.ModuleType("op_sources")
    package.__path__ = [str(folder)]
    sys.modules["op_sources"] = package
    return importlib.import_module("op_sources.schema").Schema


def typed(expression, tag):
    """The expression with math functions of the computing type: exp( becomes vm_exp_f32(."""
    if tag in ("c64", "c128"):
        suffix = "f" if tag == "c64" else ""
        return re.sub(r"\b(exp|log|sqrt|sin|cos|tanh|cabs|conj|creal|cimag|carg|cpow)\(",
                      lambda m: ("" if m[1].startswith("c") and m[1] != "cos" else "c") + m[1] + suffix + "(", expression)
    single = tag in ("f32", "f16", "bf16")

    def name(m):
        if m[1] in LIBM:
            return m[1] + ("f(" if single else "(")
        return f"vm_{m[1]}_{'f32' if single else 'f64'}("

    expression = MATH.sub(name, expression)
    if single:      # a double literal would widen the whole expression
        expression = re.sub(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])", r"\1f", expression)
    return expression


def constants(schema, tag):
    """C declarations of the op's scalar arguments, read from aux."""
    out = []
    scalars = [a for a in schema.args if a.type != "Tensor"]
    for i, a in enumerate(scalars):
        if a.type == "bool" or a.type == "int":
            out.append(f"const int64_t {a.name} = aux[{i}].i; (void){a.name};")
        elif tag in ("c64", "c128"):
            out.append(f"const {COMPUTE[tag]} {a.name} = aux[{i}].f + aux[{i}].im * I; (void){a.name};")
        else:
            member = "i" if tag[0] in "iub" and tag != "bf16" else "f"
            out.append(f"const {COMPUTE[tag]} {a.name} = ({COMPUTE[tag]})aux[{i}].{member}; (void){a.name};")
        if a.optional:
            out.append(f"const int64_t has_{a.name} = aux[{i}].given; (void)has_{a.name};")
    return " ".join(out)


def expressions(fields):
    """kind -> expression, for the dtypes the op is computed in."""
    scalar = fields["scalar"]
    if isinstance(scalar, str):
        default = "float" if fields.get("promote") == "float" else "int float"
        return dict.fromkeys(fields.get("types", default).split(), scalar)
    return {kind: e for kinds, e in scalar.items() for kind in kinds.split()}


def rows(folder):
    """C text of each loop, and of the table that finds them."""
    Schema = schema_class(folder)
    loops, table = [], []
    for text, fields in records(folder):
        schema = Schema.parse(text)
        tensors = [a.name for a in schema.args if a.type == "Tensor"]
        fixed = fields.get("inputs", {})
        ident = schema.name + ("_" + schema.overload if schema.overload else "")
        slots = ["0"] * len(SLOT)
        for kind, expression in expressions(fields).items():
            for tag in KINDS[kind]:
                name = f"{ident}_{tag}"
                out = "b8" if fields.get("returns") == "bool" else fields.get("returns", tag)
                ins = ["b8" if fixed.get(t) == "bool" else tag for t in tensors]
                loops.append(f"LOOP{len(ins)}({name}, {out}, {', '.join(ins)}, {COMPUTE[tag]}, "
                             f"{constants(schema, tag)}, {typed(expression, tag)})")
                slots[SLOT[tag]] = name
        full = f"{schema.namespace}::{schema.name}" + (f".{schema.overload}" if schema.overload else "")
        table.append(f'    {{"{full}", {{{", ".join(slots)}}}}},')
    return loops, table


def write_if_changed(path, text):
    """Leave the file's time alone when nothing changed, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(package):
    """Write all generated C files below `package`."""
    loops, table = rows(package / "ops")
    head = "/* Generated from the op records by tools/generate_loops.py. */\n"
    write_if_changed(package / "kernels" / "loops_body_gen.h",
                     head + "\n".join(loops) + "\n\nconst tgx_loop_row ISA(tgx_loops)[] = {\n" + "\n".join(table) + "\n    {0, {0}},\n};\n")
    for suffix, (pragma, condition) in TARGETS.items():
        for body in sorted((package / "kernels").glob("*_isa.h")):
            write_if_changed(package / "kernels" / f"{body.stem[:-4]}_{suffix}_gen.c", head + f"""#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ISA(name) name##_{suffix}
#if {condition}
{pragma}
#endif
#include "{body.name}"
""")


if __name__ == "__main__":
    generate(Path(__file__).parent.parent / "tinygrad_ext")
