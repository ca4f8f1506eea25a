"""Loops that several records or dtypes share: those that say the same, and those that differ in numbers alone.

Each loop is compiled for three instruction sets, and one more of them costs up to 13 KB of the wheel.
"""

import re

NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")
OF_BITS = re.compile(r"(?:[a-z]+\b(?!\()|[01 ()+*~^-]|&(?!&)|\|(?!\|))+")  # all of it kept to the width of the result
OF_EQUALITY = re.compile(r"(?:[xyz01 ()!?:&|^]|[!=]=)+")
OF_CHOICES = re.compile(r"(?:\b(?:floor|ceil|trunc|rint|fmax|fmin)\(|\b(?:[xyz]|\d)\b(?!\.)|[ ()<>=!?:&|,])+")
_HEAD = "static int {name}(char **data, const ptrdiff_t *s, ptrdiff_t count, const tgx_scalar *aux) {{\n"
_TYPES = {"f32": "float", "f64": "double"}
_FUNCTION = re.compile(r"^(?:HALF_WIDTH )?static [^;{]*?\b(\w+)\([^;{]*\{", re.M)


def form(expression):
    """An expression without its numbers."""
    return NUMBER.sub("#", expression)


def differing_in_numbers(found):
    """The forms that several expressions have of those that call a function; other loops are too short to be shared."""
    seen = {}
    for e in found:
        if isinstance(e, str) and NUMBER.search(e) and re.search(r"\b[a-z]\w*\(", e):
            seen.setdefault(form(e), set()).add(e)
    return {shape: set() for shape, every in seen.items() if len(every) > 1}


def by_numbers(name, out, tag, ins, expression, shared, loop):
    """C text of a loop that calls what it shares with others, to which the numbers are scalars; or None.

    shared: {form: set of the dtypes for which it is made}; loop: what makes the text of a loop.
    """
    if out != tag or tag not in _TYPES or not isinstance(expression, str) or form(expression) not in shared:
        return None
    shape, numbers = form(expression), NUMBER.findall(expression)
    whole, text = f"by_numbers_{list(shared).index(shape)}_{tag}", ""
    if tag not in shared[shape]:
        shared[shape].add(tag)
        kind, names = _TYPES[tag], iter(range(len(numbers)))
        declared = " ".join(f"const {kind} n{k} = ({kind})aux[{k}].f;" for k in range(len(numbers)))
        shape = re.sub("#", lambda _: f"n{next(names)}", shape)
        text = loop(whole, tag, ins, tag, declared, shape)
        text = "static __attribute__((noinline, noclone)) " + text.removeprefix("static ")
    given = ", ".join(f"{{.f = {n}}}" for n in numbers)
    text += _HEAD.format(name=name) + f"    static const tgx_scalar numbers[] = {{{given}}};\n    (void)aux;\n"
    return text + f"    return {whole}(data, s, count, numbers);\n}}\n"


def merged(loops):
    """The texts of loops with one function for all that say the same: other names stand for it."""
    seen, other, out = {}, {}, []
    for part in (part for text in loops for part in re.split(r"(?<=\n}\n)", text) if part.strip()):
        part = re.sub(r"\bop_\w+", lambda word: other.get(word[0], word[0]), part)
        found = _FUNCTION.search(part)
        if found is None:
            out.append(part)
            continue
        name, bare = found[1], part
        for declared, scalar in re.findall(r"(const [^;{}]* = [^;{}]*; \(void\)(\w+);)", part):
            if len(re.findall(rf"\b{scalar}\b", part)) == 2:
                bare = bare.replace(declared, "")
        first = seen.setdefault(re.sub(rf"\b{name}\b", "@", re.sub(r"\s+", " ", bare)), name)
        if first != name:
            other[name], bare = first, f"#define {name} {first}\n"
        out.append(bare)  # without what it does not use: whom it stands for may have no such scalar to be read
    return out


def has_no_sign(expression, returns):
    """Whether an expression over integers gives the same bits if they are read with a sign and without one."""
    if isinstance(expression, dict):
        asked = all(re.fullmatch(r"[a-z]+ == 1|else", condition) for condition in expression)
        return asked and all(has_no_sign(e, returns) for e in expression.values())
    forms = {None: (OF_BITS, OF_EQUALITY), "bool": (OF_EQUALITY,)}.get(returns, ())
    return any(form.fullmatch(expression) for form in forms)


def cases_of(expression):
    """The expressions of all cases, or the one that there is."""
    return expression.values() if isinstance(expression, dict) else [expression]


def keeps_bfloat16(expression):
    """Whether what an expression makes of bfloat16 is one again, for which float32 needs no rounding.

    Such are the operands, small numbers, and the integers next to an operand.
    """
    return all(OF_CHOICES.fullmatch(e) for e in cases_of(expression))


def of_bits(cases, declared, tensors, tag):
    """C text that returns before halves are widened in those cases of the loop of float32 that compute nothing."""
    if not isinstance(cases, dict) or tensors != 1:
        return ""
    bits, text = {"x": "-1", "1": {"f16": "0x3c00", "bf16": "0x3f80"}[tag]}, ""
    for condition, e in cases.items():
        if e in bits and condition != "else":
            text += f"    if ({condition}) return tgx_keep_halves(data, s, count, {bits[e]});\n"
    return f"    {declared}\n{text}" if text else ""
