"""The C text of pointwise loops, from the scalar= expressions of op records: of the built-in ones and of plugins.

The records are read as text (ast), not imported: when the package is built nothing compiled exists, and a plugin's
records register themselves. So `scalar`, `types`, `returns`, `inputs`, `promote` and `choices` of a record must be
literals.

A loop is one C function. An expression without calls of elementary functions gets a body for contiguous operands,
one for a repeated last operand, and a plain one for any strides. One with such calls, or with three operands, is
written once, over blocks: operands that are not contiguous are first gathered into a buffer, so that they too run in
vector code.
"""

import ast
import functools
import re

from tinygrad_ext.core.data import table
from tinygrad_ext.ops.record import READ_BY_THE_BUILD
from tinygrad_ext.ops.schema import Schema

from . import complex_text
from . import formula_text as formulas
from . import loop_sharing as sharing
from .complex_text import HEAD, REAL
from .loop_sharing import has_no_sign

TARGETS = {  # suffix -> (pragma, condition under which the compiler can make it)
    "base": ("", "1"),
    "avx2": ('#pragma GCC target("avx2,fma,bmi2")', "defined(__x86_64__)"),
    "avx512": (
        '#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,prefer-vector-width=512")',
        "defined(__x86_64__)",
    ),
}
MATH = re.compile(
    r"\b(exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|"
    r"atanh|sigmoid|erf|erfc|lgamma|digamma|trigamma|pow|atan2|hypot|fabs|floor|ceil|trunc|rint|fmod|copysign|"
    r"fmax|fmin|logaddexp|floor_div|floor_mod|gelu|gelu_slope|gelu_tanh|gelu_tanh_slope|silu_slope|mish_slope|softplus|"
    r"power_sum_log|softplus_until|at_least|polygamma|nextafter|i0|i0e|i1|i1e|k0|k0e|k1|k1e|bessel_j0|bessel_j1|bessel_y0|bessel_y1|"
    r"spherical_j0|spherical_j0_slope|airy_ai|airy_ai_slope|erfcx|ndtr|log_ndtr|erfinv|ndtri|igamma|igammac|zeta|"
    r"(?:shifted_)?chebyshev_[tuvw]|hermite_h|hermite_he|laguerre_l|legendre_p|gegenbauer|"
    r"laguerre|binary_exponent)\("
)
RARE = ("special_bessel.h", "special_airy.h", "special_normal.h", "special_gamma.h", "special_polynomials.h")
INCLUDES = "".join(f"#include <{h}.h>\n" for h in ("complex", "float", "math", "stdint", "stdlib", "string"))
# functions whose vector form covers the usual arguments only -> the test for the others, see VM_NEAR_LOOP in vecmath.h
OSCILLATING = ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_j0", "spherical_j0_slope")
NEAR = dict.fromkeys(("sin", "cos", "tan", *OSCILLATING), "trig")
NEAR |= dict.fromkeys(("fmod", "floor_div", "floor_mod"), "division")
LOOPS = ("exp", "sigmoid", "tanh")  # functions of float32 with loops in vecmath_f32_loops.h
# of either float and a degree, with loops in special_polynomials.h
DEGREES = r"(?:shifted_)?chebyshev_[tuvw]|hermite_he?|laguerre_l|legendre_p"
COMPUTE = {row.tag: row.computed for row in table.DTYPES}
INFINITE = {"f16": "0x7c00", "bf16": "0x7f80"}  # the bits of infinity, by that name in expressions over bits
MOST = {"f32": "FLT_MAX", "f16": "0x1.ffcp15f", "bf16": "0x1.fep127f"}  # the largest number of a dtype: LARGEST
SAME_BITS = {"i8": "u8", "u16": "i16", "u32": "i32", "u64": "i64"}  # where no sign is looked at, as the other's
LIBM = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign", "fmax", "fmin"}


def records(path, called="op"):
    """(schema, keyword literals) of every call of `op`, or what else it is called, with scalar= in a file.

    Raises ValueError for what is no literal.
    """
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == called and node.args:
            fields = {k.arg: k.value for k in node.keywords}
            if "scalar" in fields:
                read = {k: _literal(path, fields[k]) for k in READ_BY_THE_BUILD if k in fields}
                yield _literal(path, node.args[0]), read


def _literal(path, node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{path}:{node.lineno}: what the build reads of a record is a literal") from None


def typed(expression, tag):
    """The expression with math functions of the computing type: exp( becomes vm_exp_f32(."""
    expression = expression.replace("LARGEST", MOST.get(REAL.get(tag, tag), "DBL_MAX"))
    if tag in REAL:
        return complex_text.typed(expression, tag)
    single = tag in ("f32", "f16", "bf16")

    def name(m):
        if m[1] in LIBM:
            return m[1] + ("f(" if single else "(")
        if m[1] == "nextafter":  # the one function of the storage type: what lies next to x depends on it
            return f"vm_nextafter_{tag}("
        return f"vm_{m[1]}_{'f32' if single else 'f64'}("

    expression = MATH.sub(name, expression)
    if single:  # a double literal would widen the whole expression
        expression = re.sub(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])", r"\1f", expression)
    return expression


def constants(schema, tag):
    """C declarations of the op's scalar arguments, read from aux."""
    out = []
    scalars = [a for a in schema.args if a.type != "Tensor"]
    for i, a in enumerate(scalars):
        if a.type == "float" and tag not in ("f32", "f16", "bf16"):
            out.append(f"const double {a.name} = aux[{i}].f; (void){a.name};")
        elif a.type in ("bool", "int", "str"):
            out.append(f"const int64_t {a.name} = aux[{i}].i; (void){a.name};")
        elif tag in ("c64", "c128"):
            part = COMPUTE[REAL[tag]]
            both = f"__builtin_complex(({part})aux[{i}].f, ({part})aux[{i}].im)"
            out.append(f"const {COMPUTE[tag]} {a.name} = {both}; (void){a.name};")
        else:
            member = "i" if tag[0] in "iub" and tag != "bf16" else "f"
            out.append(f"const {COMPUTE[tag]} {a.name} = ({COMPUTE[tag]})aux[{i}].{member}; (void){a.name};")
        if a.optional:
            out.append(f"const int64_t has_{a.name} = aux[{i}].given; (void)has_{a.name};")
    return " ".join(out)


def with_defaults(declared, expression, compute):
    """Both with what stands for an argument that is not given, `(has_v ? v : 0)`, chosen before the loop."""
    for whole, name in dict.fromkeys(re.findall(r"(\(has_(\w+) \? \2 : -?\w+\))", expression)):
        declared += f" const {compute} {name}_or = {whole};"
        expression = expression.replace(whole, f"{name}_or")
    return declared, expression


def expressions(fields):
    """kind -> expression, for the dtypes the op is computed in."""
    scalar = fields["scalar"]
    if isinstance(scalar, str) or "else" in scalar:
        default = "float" if "float" in (fields.get("promote") or "").split() else "int float"
        return dict.fromkeys(fields.get("types", default).split(), scalar)
    return {kind: e for kinds, e in scalar.items() for kind in kinds.split()}


# ---- one loop ------------------------------------------------------------------------------------------------------


def can_fail(expression):
    """Whether it sets the loop's status, which vector code cannot."""
    return any(word in expression for word in ("FAIL(", "_DIV(", "_MOD("))


def simple_loop(name, out, ins, compute, declared, expression):
    """Contiguous, one of two operands repeated, any strides; contiguous once more, in half the width, for operands
    beyond the caches, which are waited for: not where choices and divisions are, which take 1.3 times as long in it."""
    names = "xyz"[: len(ins)]
    sizes = " && ".join([f"s[0] == sizeof(S_{out})", *(f"s[{k + 1}] == sizeof(S_{t})" for k, t in enumerate(ins))])
    begin = f"    int status = 0; {declared}\n    S_{out} *o = (S_{out} *)data[0];\n"
    pointers = "".join(
        f"        const S_{t} *{v}p = (const S_{t} *)data[{k + 1}];\n" for k, (v, t) in enumerate(zip(names, ins))
    )
    load = " ".join(f"const {compute} {v} = GET_{t}({v}p[i]);" for v, t in zip(names, ins))
    store = f"o[i] = PUT_{out}({expression});"
    each = ("" if can_fail(expression) else "SIMD ") + "for (ptrdiff_t i = 0; i < count; i++) "
    far = "" if "/" in expression and "?" in expression else name + "_far"
    text = "HALF_WIDTH " + HEAD.format(name=far) + begin + pointers if far else ""
    text += f"    {each}{{ {load} {store} }}\n    return status;\n}}\n" if far else ""
    text += HEAD.format(name=name) + begin + f"    if ({sizes}) {{\n"
    text += (f"        if (FAR(count)) return {far}(data, s, count, aux);\n" if far else "") + pointers
    text += f"        {each}{{ {load} {store} }}\n        return status;\n    }}\n"
    for at in (1, 0) if len(ins) == 2 else ():
        once, other = names[at], names[1 - at]
        text += f"    if ({sizes.replace(f's[{at + 1}] == sizeof(S_{ins[at]})', f's[{at + 1}] == 0')})"
        if at == 0 and ins[0] not in ("f32", "f64"):  # which costs a write and a read of each element, and little code
            text += f"\n        return tgx_written_out({name}, sizeof(S_{ins[0]}), data, s, count, aux);\n"
            continue
        text += f" {{\n        const S_{ins[1 - at]} *{other}p = (const S_{ins[1 - at]} *)data[{2 - at}];\n"
        text += f"        const {compute} {once} = GET_{ins[at]}(*(const S_{ins[at]} *)data[{at + 1}]);\n"
        text += f"        {each}{{ const {compute} {other} = GET_{ins[1 - at]}({other}p[i]); {store} }}\n"
        text += "        return status;\n    }\n"
    # strides in variables, since the compiler must believe that a store changes s
    text += "    char *op = data[0]; const ptrdiff_t os = s[0];\n"
    for k, v in enumerate(names, 1):
        text += f"    const char *{v}p = data[{k}]; const ptrdiff_t {v}s = s[{k}];\n"
    load = " ".join(f"const {compute} {v} = GET_{t}(*(const S_{t} *)({v}p + i * {v}s));" for v, t in zip(names, ins))
    chooses = compute in ("float", "double") and re.search(r"\?|fabs|AS_", expression) and not can_fail(expression)
    text += f"    {'SIMD_4 ' if chooses else ''}for (ptrdiff_t i = 0; i < count; i++) {{ "
    return text + f"{load} *(S_{out} *)(op + i * os) = PUT_{out}({expression}); }}\n    return status;\n}}\n"


def block_loop(name, out, ins, compute, declared, expression):
    """Blocks whose operands are contiguous, or gathered."""
    names = "xyz"[: len(ins)]
    sizes = " && ".join([f"s[0] == sizeof(S_{out})", *(f"s[{k + 1}] == sizeof(S_{t})" for k, t in enumerate(ins))])
    text = HEAD.format(name=name) + f"    int status = 0; {declared}\n    S_{out} ob[BLOCK]; "
    text += " ".join(f"S_{t} {v}b[BLOCK];" for v, t in zip(names, ins))
    text += f"\n    const ptrdiff_t step = ({sizes}) ? count : BLOCK;\n"
    text += "    for (ptrdiff_t at = 0; at < count; at += step) {\n"
    text += "        const ptrdiff_t m = count - at < step ? count - at : step;\n"
    for k, (v, t) in enumerate(zip(names, ins)):
        text += f"        const S_{t} *{v}p = GATHER({t}, data[{k + 1}], s[{k + 1}], at, m, {v}b);\n"
    text += f"        S_{out} *o = s[0] == sizeof(S_{out}) ? (S_{out} *)data[0] + at : ob;\n"
    load = " ".join(f"const {compute} {v} = GET_{t}({v}p[i]);" for v, t in zip(names, ins))
    near = re.search(rf"vm_({'|'.join(NEAR)})_(f32|f64)\(([xy, ]*)\)", expression)
    if near:
        usual = expression.replace(f"vm_{near[1]}_{near[2]}(", f"vm_{near[1]}_near_{near[2]}(")
        given = ", ".join(f"GET_{ins[names.index(v)]}({v}p[i])" if v in names else v for v in near[3].split(", "))
        text += f"        VM_NEAR_LOOP(m, vm_{NEAR[near[1]]}_far_{near[2]}({given}), "
        text += f"{{ {load} o[i] = PUT_{out}({usual}); }}, {{ {load} o[i] = PUT_{out}({expression}); }})\n"
    elif out == ins[0] == "f32" and (whole := re.fullmatch(rf"vm_({'|'.join(LOOPS)})_f32\(x\)", expression)):
        text += f"        vm_{whole[1]}_loop_f32(m, xp, o);\n"
    elif whole := re.fullmatch(rf"vm_({DEGREES})_{out}\(x, y\)", expression):
        text += f"        vm_{whole[1]}_loop_{out}(m, xp, yp, o);\n"
    else:
        simd = "" if can_fail(expression) else "SIMD "
        text += f"        {simd}for (ptrdiff_t i = 0; i < m; i++) {{ {load} o[i] = PUT_{out}({expression}); }}\n"
    text += f"        if (o == ob) SCATTER({out}, data[0], s[0], at, m, ob);\n    }}\n    return status;\n}}\n"
    return text


def wide_loop(name, base, tag, returns, masks, quick="", keeps=False):
    """The loop of a half by `base`, the one of float32; quick: C text that may return; keeps: nothing is rounded."""
    out = "TGX_BOOL" if returns == "bool" else "TGX_BF16" if keeps else "TGX_F32"
    bits = sum(mask << k for k, mask in enumerate(masks))
    text = HEAD.format(name=name)
    text += f"    static const tgx_wide w = {{{base}, TGX_{tag.upper()}, {out}, {len(masks)}, {bits}}};\n{quick}"
    return text + "    return tgx_wide_loop(&w, data, s, count, aux);\n}\n"


def half_loop(name, base, declared, expression, returns, masks):
    """The loop of float16: plain expressions in registers; the last elements, and all else, by the loop of float32."""
    if isinstance(expression, dict):

        def make(k, e):
            return half_loop(f"{name}_{k}", f"{base}_{k}", declared, e, returns, masks)

        return _by_case(name, "f16", declared, expression, make)
    declared, done = with_defaults(declared, typed(expression, "f16"), "float")
    if len(masks) > 2 or any(masks) or returns == "bool" or "vm_" in done or can_fail(done):
        return wide_loop(name, base, "f16", returns, masks)
    names = "xyz"[: len(masks)]
    near = " && ".join(["s[0] == 2", "s[1] == 2", *["(s[2] == 2 || s[2] == 0)"] * (len(masks) == 2), "count >= 16"])
    text = f"#ifdef TGX_HALF_VECTORS\n    {declared}\n    if ({near}) {{\n        ptrdiff_t i = 0;\n"
    text += "        uint16_t *o = (uint16_t *)data[0];\n"
    for k, v in enumerate(names, 1):
        text += f"        const uint16_t *{v}p = (const uint16_t *)data[{k}];\n"
    if len(masks) == 2:
        once = "const float y = tgx_f16_to_f32(*yp);"
        text += f"        if (s[2] == 0) {{\n        {once}\n{_sixteen('x', done)}        }} else"
    text += f"\n{_sixteen(names, done)}        if (i == count) return 0;\n        char *rest[] = {{data[0] + i * s[0]"
    text += "".join(f", data[{k}] + i * s[{k}]" for k in range(1, len(masks) + 1)) + "};\n"
    text += "        return tgx_wide_loop(&w, rest, s, count - i, aux);\n    }\n#endif\n"
    return wide_loop(name, base, "f16", returns, masks, text)


def _sixteen(names, expression):
    text = "        for (; i + 16 <= count; i += 16) {\n            float ow[16];\n"
    text += "".join(f"            float {v}w[16]; widen_16({v}w, {v}p + i);\n" for v in names)
    loads = " ".join(f"const float {v} = {v}w[l];" for v in names)
    text += f"            SIMD for (int l = 0; l < 16; l++) {{ {loads} ow[l] = {expression}; }}\n"
    return text + "            narrow_16(o + i, ow);\n        }\n"


def _by_case(name, tag, declared, cases, make):
    """C text of one loop a case, which make(number, expression) gives, and of a function that chooses."""
    parts, choice = [], ""
    for k, (condition, e) in enumerate(cases.items()):
        parts.append(make(k, e))
        choice += f"    {'' if condition == 'else' else f'if ({typed(condition, tag)}) '}"
        choice += f"return {name}_{k}(data, s, count, aux);\n"
    return "".join(parts) + HEAD.format(name=name) + f"    {declared}\n{choice}}}\n"


def loop(name, out, ins, tag, declared, expression, scalars=frozenset()):
    """C text of one loop; a dict of cases becomes one loop a case and a function that chooses."""
    if isinstance(expression, dict):
        return _by_case(
            name, tag, declared, expression, lambda k, e: loop(f"{name}_{k}", out, ins, tag, declared, e, scalars)
        )
    if expression.startswith("bits: "):  # of a half, as a number without sign
        bits = expression[6:].replace("INFINITE", INFINITE[tag])
        return simple_loop(name, "u16", ["u16"] * len(ins), "uint16_t", declared, bits)
    done = typed(expression, tag)
    if tag in REAL:
        return complex_text.loop(name, out, ins, COMPUTE[tag], declared, done, scalars)
    declared, done = with_defaults(declared, done, COMPUTE[tag])
    # three operands have too many layouts for a body each, and a number among them is common
    make = block_loop if "vm_" in done or len(ins) > 2 else simple_loop
    return make(name, out, ins, COMPUTE[tag], declared, done)


def by_number(ident, cases):
    """(C texts, slots) of the loops over halves whose second operand is a number of float32, their first scalar."""
    declared, loops, slots = "const float y = (float)aux[0].f; (void)y;", [], {}
    for tag in ("f32", *(row.tag for row in table.dtypes("half"))):
        name, expression = f"op_{ident}number_{tag}", cases.get("half", cases["float"])
        if tag == "f16":
            loops.append(half_loop(name, slots["f32"], declared, expression, None, [False]))
        else:
            loops.append(loop(name, tag, [tag], tag, declared, expression))
        slots[tag] = name
    return loops, slots


def _as_float(expression):
    """Whether what an expression says of float16 is what it says of float32."""
    return all(typed(e, "f16") == typed(e, "f32") for e in sharing.cases_of(expression))


def family(found):
    """C text of the loops of records, of the table that finds them, and the formulas among them."""
    found, loops, listed, plain = list(found), [], [], []
    shared = sharing.differing_in_numbers(expressions(fields).get("float") for _, fields in found)
    for text, fields in found:
        schema = Schema.parse(text)
        tensors = [a.name for a in schema.args if a.type == "Tensor"]
        fixed = fields.get("inputs", {})
        ident = schema.name + ("_" + schema.overload if schema.overload else "") + "_"
        slots = dict.fromkeys((row.tag for row in table.DTYPES), "0")
        cases, said = expressions(fields), {}
        for kind, expression in cases.items():
            for tag in (row.tag for row in table.dtypes(*table.WORDS[kind])):
                if tag == "f16" and expression == cases.get("float") and _as_float(expression):
                    continue  # by the loop of float32: compilers find no conversion by instructions in a formula
                said[tag] = expression
                if expression in ("0", "1") and fields.get("returns") == "bool":
                    slots[tag] = f"tgx_always_{expression}"  # no element is looked at
                    continue
                if said.get(SAME_BITS.get(tag)) == expression and has_no_sign(expression, fields.get("returns")):
                    slots[tag] = slots[SAME_BITS[tag]]
                    continue
                out = {"bool": "b8", "real": REAL.get(tag, tag)}.get(fields.get("returns"), tag)
                ins = ["b8" if fixed.get(t) == "bool" else tag for t in tensors]
                scalars = {a.name for a in schema.args if a.type != "Tensor"}
                name = slots[tag] = "op_" + ident + tag
                whole = None if scalars else sharing.by_numbers(name, out, tag, ins, expression, shared, loop)
                loops.append(whole or loop(name, out, ins, tag, constants(schema, tag), expression, scalars))
        if slots["f32"] != "0":
            for tag in (row.tag for row in table.dtypes("half") if slots[row.tag] == "0"):
                name, base, returns = "op_" + ident + tag, "op_" + ident + "f32", fields.get("returns")
                masks = [fixed.get(t) == "bool" for t in tensors]
                if tag == "f16" and "float" in cases:
                    loops.append(half_loop(name, base, constants(schema, tag), cases["float"], returns, masks))
                else:
                    quick = sharing.of_bits(cases.get("float"), constants(schema, tag), len(tensors), tag)
                    keeps = tag == "bf16" and sharing.keeps_bfloat16(cases.get("float", "/"))
                    loops.append(wide_loop(name, base, tag, returns, masks, quick, keeps))
                slots[tag] = name
        full = f"{schema.namespace}::{schema.name}" + (f".{schema.overload}" if schema.overload else "")
        listed.append(f'    {{"{full}", {{{", ".join(slots.values())}}}}},')
        if "number" in (fields.get("promote") or "").split():
            texts, found = by_number(ident, cases)
            loops += texts
            row = ", ".join(found.get(row.tag, "0") for row in table.DTYPES)
            listed.append(f'    {{"{full}/number", {{{row}}}}},')
        scalars = [(a.name, a.type) for a in schema.args if a.type != "Tensor"]
        codes = formulas.formula(expressions(fields).get("float", "exp(x)"), scalars)
        if codes is not None and fields.get("returns") != "real":
            plain.append((full, codes))
    return loops, listed, plain


def table_of(name, loops, listed):
    """C text of loops and of the table `name` that finds them."""
    rows = "\n".join(listed)
    functions = "\n".join(sharing.merged(loops))
    return f"{functions}\nconst tgx_loop_row ISA({name})[] = {{\n{rows}\n    {{0, {{0}}}},\n}};\n"


def headers(kernels, text):
    """Includes of a family: those of vm_ functions only where one is called, scalars.h above all: it takes long."""
    plain, division = ((kernels / name).read_text() for name in ("numbers.h", "division.h"))
    called = {name for name in re.findall(r"\bvm_\w+", text) if name not in plain}
    divides = {name for name in called if re.sub(r"f(32|64)$", "", name) in division}
    steps = {name for name in called if name.startswith("vm_nextafter_")}
    lines = ['"loops.h"', *['"wide.h"'] * ("tgx_wide_loop" in text), *['"half_vectors.h"'] * ("widen_16(" in text)]
    lines += [*['"division.h"'] * bool(divides), *['"steps.h"'] * bool(steps)]
    rare = {name: _holder(kernels, name) for name in called if _holder(kernels, name)}
    pairs = {name for name in called if re.search(r"_c(64|128)$", name)}
    lines += ['"scalars.h"'] * bool(called - divides - steps - pairs - set(rare))
    lines += [f'"{header}"' for header in RARE if header in rare.values()]
    lines += ['"complex_math.h"'] * any(not re.match(r"vm_(div|abs)_c", name) for name in pairs)
    lines += ['"pairs.h"'] * bool(pairs or re.search(r"\bW_c|_split_c|\bCONJ\(", text))
    return "".join(f"#include {line}\n" for line in lines) + "\n"


@functools.cache
def _functions(path):
    """What a header of rare functions defines: their names without the precision."""
    text = path.read_text()
    found = set(re.findall(r"\bdouble vm_(\w+)_f64\(", text))
    found |= set(re.findall(r"VM_(?:POLYNOMIAL|WITH_ORDER|BOTH|OSCILLATING)\((\w+)", text))
    kinds = re.findall(r"VM_CHEBYSHEV\((\w), '", text)
    return found | {f"{shifted}chebyshev_{kind}" for kind in kinds for shifted in ("", "shifted_")}


def _holder(kernels, name):
    """The header of rare functions that defines vm_NAME, or None."""
    name = re.sub(r"^vm_|_f(32|64)$", "", name)
    return next((header for header in RARE if name in _functions(kernels / header)), None)


def thrice(body):
    """(name of an instruction set, C text for it) of each."""
    for suffix, (pragma, condition) in TARGETS.items():
        target = f"#if {condition}\n{pragma}\n#endif\n" if pragma else ""
        yield suffix, f"{INCLUDES}#define ISA(name) name##_{suffix}\n{target}{body}"
