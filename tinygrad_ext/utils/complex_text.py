"""The C text of loops over complex numbers, see kernels/pairs.h and kernels/complex_math.h.

Five forms. Sums, products and conjugates run in vectors of numbers as they lie in memory. Quotients, absolute values,
exp and tests for equality run over blocks of real and of imaginary parts. A choice between operands moves their bits.
"parts" stands for the loop of real numbers over either part.
Anything else is one call for each element.
"""

import re

REAL = {"c64": "f32", "c128": "f64"}
HEAD = "static int {name}(char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) {{\n"
PARTS = ("div", "abs", "exp", "angle", "direction", "lerp")  # functions that a loop over parts makes vector code of
_CALL = re.compile(
    r"\b(exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|"
    r"sigmoid|pow|logaddexp|silu_slope|sinc|abs|div|angle|direction|lerp)\("
)
_WORDS = re.compile(r"[A-Za-z_]\w*")


def typed(expression, tag):
    """The expression with functions of the complex type: exp( becomes vm_exp_c64(."""
    expression = re.sub(r"\bconj\(", "CONJ(", expression)
    return _CALL.sub(lambda m: f"vm_{m[1]}_{tag}(", expression)


def loop(name, out, ins, compute, declared, expression, scalars):
    """C text of one loop, in the quickest of the forms that can hold the expression."""
    words = set(_WORDS.findall(expression)) - set("xyz"[: len(ins)]) - {"TIMES", "CONJ"}
    plain = not re.search(r"[/=<>?&|!]", expression)
    called = {w for w in words if w.startswith("vm_")}
    if expression == "parts":
        given = f"{name.removesuffix(out)}{REAL[out]}, sizeof(S_{REAL[out]})"
        return HEAD.format(name=name) + f"    return tgx_by_parts({given}, data, s, count, aux);\n}}\n"
    if expression == "x ? y : z":
        return _choice(name, out)
    if expression in ("0", "1") and out in REAL:
        return _constant(name, out, expression)
    if out == "b8" and not words and not re.search(r"[*/<>?]", expression):
        return _parts(name, out, ins, declared, expression)
    if plain and out in REAL and words <= scalars and not re.search(r"(?<!\w)\d", expression):
        return _vectors(name, out, ins, declared, expression, words)
    if plain and words - called <= scalars and called <= {f"vm_{f}_{ins[0]}" for f in PARTS}:
        return _parts(name, out, ins, declared, expression)
    return _each(name, out, ins, compute, declared, expression)


def _constant(name, tag, number):
    """Blocks that are copied: compilers write a complex number part by part, in eight times as long."""
    return (
        HEAD.format(name=name) + f"    S_{tag} few[32], *o = (S_{tag} *)data[0];\n"
        f"    for (int k = 0; k < 32; k++) few[k] = {number};\n"
        "    if (s[0] == sizeof *few) {\n"
        "        for (; count >= 32; count -= 32, o += 32) memcpy(o, few, sizeof few);\n"
        "        memcpy(o, few, (size_t)count * sizeof *few);\n"
        "    } else\n"
        "        for (ptrdiff_t i = 0; i < count; i++) memcpy(data[0] + i * s[0], few, sizeof *few);\n"
        "    return 0;\n}\n"
    )


def _vectors(name, tag, ins, declared, expression, used):
    """Vectors of numbers, then one number after another, with the same steps; a repeated operand is written out."""
    names = "xyz"[: len(ins)]
    near = " && ".join(["s[0] == each", *(f"(s[{k + 1}] == each || s[{k + 1}] == 0)" for k in range(len(ins)))])

    def stepped(kind):
        named = re.sub(r"\b(TIMES|CONJ)\(", rf"\1_{kind}_{tag}(", expression)
        return re.sub(rf"\b({'|'.join(used)})\b", rf"\1_{kind}", named) if used else named

    def spread(kind):
        """Numbers among the arguments, as a vector of them."""
        return "".join(f" {kind}_{tag} {v}_{kind}; SPREAD({tag}, {v}, {v}_{kind});" for v in sorted(used))

    text = HEAD.format(name=name) + f"    {declared}\n    const ptrdiff_t each = sizeof(S_{tag});\n"
    text += f"    ptrdiff_t i = 0;\n    if ({near}) {{\n"
    text += f"        const ptrdiff_t lanes = PAIR_LANES(W, {tag});\n"
    for k, v in enumerate(names, 1):
        text += f"        W_{tag} {v}_w; const char *{v}_p = data[{k}]; ptrdiff_t {v}_s = s[{k}];\n"
        text += f"        if (s[{k}] == 0 && count >= lanes) {{ SPREAD({tag}, *(const S_{tag} *)data[{k}], {v}_w);"
        text += f" {v}_p = (const char *)&{v}_w; }}\n"

    def stretch(kind):
        vector, lanes = f"{kind}_{tag}", f"PAIR_LANES({kind}, {tag})"
        load = " ".join(f"const {vector} {v} = *(const {vector} *){v}_p; {v}_p += {v}_s * {lanes};" for v in names)
        return (
            f"           {spread(kind)} {vector} *o = ({vector} *)data[0];\n"
            f"            for (; i + {lanes} <= count; i += {lanes}) {{ {load} *o++ = {stepped(kind)}; }}\n"
        )

    text += f"#ifdef __AVX512F__\n        if (FAR(count)) {{\n{stretch('H')}        }} else\n#endif\n"
    text += f"        {{\n{stretch('W')}        }}\n    }}\n"
    text += f"   {spread('P')}\n" if used else ""
    load = " ".join(f"const P_{tag} {v} = *(const P_{tag} *)(data[{k}] + i * s[{k}]);" for k, v in enumerate(names, 1))
    text += f"    for (; i < count; i++) {{ {load} *(P_{tag} *)(data[0] + i * s[0]) = {stepped('P')}; }}\n"
    return text + "    return 0;\n}\n"


def _choice(name, tag):
    """Vectors of the numbers' bits where they lie side by side, then one number after another."""
    bits = "uint64_t" if tag == "c64" else "tgx_c128"
    text = HEAD.format(name=name) + f"    {bits} *o = ({bits} *)data[0]; const {bits} *y = (const {bits} *)data[2];\n"
    text += f"    const {bits} *z = (const {bits} *)data[3]; const S_b8 *x = (const S_b8 *)data[1];\n"
    text += f"    if (s[0] == sizeof({bits}) && s[1] == 1 && s[2] == sizeof({bits}) && s[3] == sizeof({bits})) {{\n"
    text += "        SIMD for (ptrdiff_t i = 0; i < count; i++) o[i] = x[i] ? y[i] : z[i];\n        return 0;\n    }\n"
    text += "    for (ptrdiff_t i = 0; i < count; i++) {\n        const ptrdiff_t from = data[1][i * s[1]] ? 2 : 3;\n"
    text += f"        *({bits} *)(data[0] + i * s[0]) = *(const {bits} *)(data[from] + i * s[from]);\n"
    return text + "    }\n    return 0;\n}\n"


def _parts(name, out, ins, declared, expression):
    """Blocks of real and of imaginary parts."""
    names, tag = "xyz"[: len(ins)], ins[0]
    part = "float" if tag == "c64" else "double"
    results = f"{part} o_re[BLOCK], o_im[BLOCK];" if out in REAL else f"S_{out} o_re[BLOCK];"
    text = HEAD.format(name=name) + f"    {declared}\n    {results}"
    text += "".join(f" {part} {v}_re[BLOCK], {v}_im[BLOCK];" for v in names) + "\n"
    text += "    for (ptrdiff_t at = 0; at < count; at += BLOCK) {\n"
    text += "        const ptrdiff_t m = count - at < BLOCK ? count - at : BLOCK;\n"
    for k, v in enumerate(names, 1):
        text += f"        if (at == 0 || s[{k}]) tgx_split_{tag}(data[{k}] + at * s[{k}], s[{k}], m, {v}_re, {v}_im);\n"
    load = " ".join(f"const S_{tag} {v} = __builtin_complex({v}_re[i], {v}_im[i]);" for v in names)
    to = "o_re[i]" if out not in REAL else f"const S_{tag} r"
    rest = " o_re[i] = __real__ r; o_im[i] = __imag__ r;" if out in REAL else ""
    usual, far = re.subn(r"vm_exp_(c64|c128)\(", r"vm_exp_near_\1(", expression)
    if far:
        (given,) = re.findall(r"vm_exp_(?:c64|c128)\(([xyz])\)", expression)
        test = f"vm_exp_far_{tag}(__builtin_complex({given}_re[i], {given}_im[i]))"
        text += f"        VM_NEAR_LOOP(m, {test}, {{ {load} {to} = {usual};{rest} }}, "
        text += f"{{ {load} {to} = {expression};{rest} }})\n"
    else:
        text += f"        SIMD for (ptrdiff_t i = 0; i < m; i++) {{ {load} {to} = {expression};{rest} }}\n"
    if out in REAL:
        text += f"        tgx_join_{tag}(data[0] + at * s[0], s[0], m, o_re, o_im);\n"
    else:
        text += f"        if (s[0] == sizeof(S_{out})) memcpy(data[0] + at * s[0], o_re, m * sizeof(S_{out}));\n"
        text += f"        else SCATTER({out}, data[0], s[0], at, m, o_re);\n"
    return text + "    }\n    return 0;\n}\n"


def _each(name, out, ins, compute, declared, expression):
    """One function for an element, never inlined, for any strides: in a vectorised loop gcc contracts a product."""
    names = "xyz"[: len(ins)]
    operands = ", ".join(f"const {compute} {v}" for v in names)
    given = ", ".join(f"*(const S_{t} *)(data[{k + 1}] + i * s[{k + 1}])" for k, t in enumerate(ins))
    failing = "FAIL(" in expression
    text = f"static __attribute__((noinline)) S_{out} {name}_at({operands}, const tgx_scalar *aux, int *failed) "
    if failing:
        text += f"{{ int status = 0; {declared} S_{out} r = PUT_{out}({expression}); *failed |= status; return r; }}\n"
    else:
        text += f"{{ {declared} return PUT_{out}({expression}); }}\n"
    text += HEAD.format(name=name) + "    int failed = 0;\n    for (ptrdiff_t i = 0; i < count; i++)\n"
    return (
        text + f"        *(S_{out} *)(data[0] + i * s[0]) = {name}_at({given}, aux, &failed);\n    return failed;\n}}\n"
    )
