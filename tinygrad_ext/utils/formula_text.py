"""Reads the scalar= expressions of the op records once more and writes those that are plain arithmetic as formulas.

A formula is the expression for floats in postfix order, codes of kernels/emit_formula.h, from which a plan makes
machine code (kernels/emit.h). It stands beside the op's loops in C, so a record says once what an element is. What has
no code, such as a call of exp, becomes TGX_F_REFUSED, which a case that is not taken may contain.

Rejected: codes written into the records (a second statement of what the loop says), and reading the text when a plan is
made (the package would carry a parser).
"""

import re

TOKEN = re.compile(r"\s*(aux\[(\d)\]\.i|\d+\.?\d*(?:[eE][-+]?\d+)?f?|[A-Za-z_]\w*|&&|\|\||[<>=!]=|[-+*/<>!|&^?:(),])")
# weakest first
BINARY = [
    {"||": "OR"},
    {"&&": "AND"},
    {"|": "OR"},
    {"^": "XOR"},
    {"&": "AND"},
    {"==": "EQ", "!=": "NE"},
    {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE"},
    {"+": "ADD", "-": "SUB"},
    {"*": "MUL", "/": "DIV"},
]
CALLS = {
    "sqrt": "SQRT",
    "fabs": "ABS",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "trunc": "TRUNC",
    "rint": "RINT",
    "copysign": "COPYSIGN",
}
WORDS = {"INFINITY": "INFINITY", "NAN": "NAN"}


class Unknown(Exception):
    """The expression is no formula."""


class Parser:
    """Recursive descent over one expression; `codes` is what it has become."""

    def __init__(self, text, operands, scalars):
        self.tokens, at = [], 0
        while at < len(text.rstrip()):
            m = TOKEN.match(text, at)
            if m is None:
                raise Unknown(text)
            self.tokens.append(m[1])
            at = m.end()
        self.tokens.append("")
        self.operands, self.scalars, self.at, self.codes = operands, scalars, 0, []

    def take(self, *wanted):
        """The next token, if it is one of these or none is asked for."""
        token = self.tokens[self.at]
        if wanted and token not in wanted:
            return None
        self.at += 1
        return token

    def expect(self, token):
        if self.take(token) is None:
            raise Unknown(token)

    def whole(self):
        self.choice()
        self.expect("")
        return self.codes

    def choice(self):
        self.binary(0)
        if self.take("?"):
            self.choice()
            self.expect(":")
            self.choice()
            self.codes.append("CHOOSE")

    def binary(self, level):
        if level == len(BINARY):
            self.unary()
            return
        self.binary(level + 1)
        while (token := self.take(*BINARY[level])) is not None:
            self.binary(level + 1)
            self.codes.append(BINARY[level][token])

    def unary(self):
        if (token := self.take("-", "!")) is not None:
            self.unary()
            self.codes.append({"-": "NEG", "!": "NOT"}[token])
        else:
            self.primary()

    def primary(self):
        token = self.take()
        if token == "(":
            self.choice()
            self.expect(")")
        elif token[:1].isdigit():
            self.codes.append(float(token.rstrip("f")))
        elif self.take("("):
            self.call(token)
        else:
            self.codes += self.named(token)

    def call(self, name):
        begin, count = len(self.codes), 0
        while count == 0 or self.take(","):
            self.choice()
            count += 1
        self.expect(")")
        if CALLS.get(name) == "COPYSIGN" or (name in CALLS and count == 1):
            self.codes.append(CALLS[name])
        elif name == "rsqrt":
            self.codes[begin:begin] = [1.0]
            self.codes += ["SQRT", "DIV"]
        else:
            self.codes[begin:] = ["REFUSED"]

    def named(self, name):
        if name in self.operands:
            return ["X", "Y", "Z"][self.operands.index(name) :][:1]
        if name in WORDS:
            return [float(name.lower()[:3])]
        if name.startswith("aux["):
            return ["INTEGER", int(name[4])]
        number, _, given = name.partition("has_")
        for k, (scalar, kind) in enumerate(self.scalars):
            if scalar == given and not number:
                return ["GIVEN", k]
            if scalar == name:
                return ["INTEGER" if kind in ("int", "bool", "str") else "SCALAR", k]
        raise Unknown(name)


def formula(expression, scalars):
    """Codes of an expression, or of a dict of cases; None if there is nothing in it that can be emitted."""
    cases = expression if isinstance(expression, dict) else {"else": expression}
    codes, ends = [], 0
    try:
        for condition, text in cases.items():
            if condition != "else":
                codes += Parser(condition, "", scalars).whole()
                ends += 1
            codes += Parser(text, "xyz", scalars).whole()
    except Unknown:
        return None
    codes += ["CHOOSE"] * ends
    return None if codes == ["REFUSED"] or (len(cases) == 1 and "REFUSED" in codes) else codes


def row(name, codes):
    """C text of one formula and its row in the table."""
    numbers, out, follows = [], [], False
    for code in codes:
        if follows:
            out.append(str(code))
            follows = False
        elif isinstance(code, float):
            if repr(code) not in numbers:
                numbers.append(repr(code))
            out += ["TGX_F_NUMBER", str(numbers.index(repr(code)))]
        else:
            out.append(f"TGX_F_{code}")
            follows = code in ("SCALAR", "GIVEN", "INTEGER")
    ident = re.sub(r"\W", "_", name)
    values = ", ".join({"inf": "INFINITY", "nan": "NAN"}.get(n, n) for n in numbers) or "0"
    text = f"static const uint8_t c_{ident}[] = {{{', '.join([*out, 'TGX_F_END'])}}};\n"
    text += f"static const double n_{ident}[] = {{{values}}};\n"
    return text, f'    {{"{name}", {{c_{ident}, n_{ident}}}}},\n'


def text(found):
    """The C file for (name of the op, codes)."""
    parts = [row(name, codes) for name, codes in found]
    note = "/* Generated from the op records by utils/formula_text.py. */\n"
    includes = '#include "emit_formula.h"\n#include <math.h>\n'
    table = "".join(line for _, line in parts) + "    {0, {0, 0}},\n"
    formulas = "".join(codes for codes, _ in parts)
    return f"{note}{includes}{formulas}\nconst tgx_formula_row tgx_formulas[] = {{\n{table}}};\n"
