"""Types in comments: `# type: (int, Tensor) -> Tensor` of a function, `# type: int` behind a parameter on its own line.

Read from the tokens of the function alone: Python's own reader refuses a whole file for one such comment at an unusual
place, in a file where somebody else's comments are none of our business.
"""

import ast
import io
import re
import tokenize

_TYPO = re.compile(r"#(?! type:)\s*type\s*:\s*(.*)")
_COMMENT = re.compile(r"#\s*type\s*:\s*(.*)")


class BadComment(Exception):
    """A comment that looks like a type and is none; args: what is wrong, what to write."""


def type_comments(tree, lines):
    """(types of the parameters, type of the result) as nodes, each None where no comment says it.

    Raises:
        BadComment: it cannot be read, or tells of another number of parameters.
    """
    if isinstance(tree, ast.Lambda):
        return None
    found = _comments(tree, lines)
    whole = [text for _, text in found if "->" in text or text.startswith("(")]
    odd = [number for number, text in _comments(tree, lines, _TYPO) if text in whole]
    if odd:
        raise BadComment(f"The annotation prefix in line {odd[0]} is not '# type:'", "Write '# type: (int) -> int'.")
    if not whole:
        return None
    if len(whole) > 1:
        raise BadComment("the function has several comments with a type of the whole", "Keep one.")
    signature = _signature(whole[0], tree)
    names = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    types = signature.argtypes
    told = {number for number, text in found if text not in whole}
    own = [a for a in names if a.lineno in told]
    short = len(types) == 1 and isinstance(types[0], ast.Constant) and types[0].value is Ellipsis
    if own and not short:
        raise BadComment(
            f"Return type line '# type: {whole[0]}' tells types beside those of the parameters", "Write (...)."
        )
    if short and len(own) < len(names) - (names[0].arg == "self"):
        raise BadComment(
            f"Number of type annotations ({len(own)}) did not match the number of function parameters ({len(names)}):",
            "Give one for each, self left out.",
        )
    if short:
        own = {number: text for number, text in found if text not in whole}
        types = [_expression(own[a.lineno], tree) if a.lineno in own else None for a in names]
        return types, signature.returns
    if len(types) not in (len(names), len(names) - 1):
        raise BadComment(
            f"Number of type annotations ({len(types)}) did not match the number of function parameters "
            f"({len(names)}):",
            "Give one for each, self left out.",
        )
    return [*[None] * (len(names) - len(types)), *types], signature.returns


def _comments(tree, lines, pattern=_COMMENT):
    """[(line, text behind "type:")] of a function, those that tell tools to look away left out."""
    first, last = tree.lineno, tree.end_lineno
    text = "".join(lines[first - 1 : last])
    if "#" not in text:
        return []
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = pattern.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None and not match[1].startswith("ignore"):
                found.append((token.start[0] + first - 1, match[1].partition("#")[0].strip()))
    except (tokenize.TokenError, IndentationError):
        pass  # the text ends with the function, before what closes its block
    return found


def _signature(text, tree):
    try:
        found = ast.parse(text if "->" in text else f"{text} -> None", mode="func_type")
    except SyntaxError:
        raise BadComment(
            f"the type comment '{text}' cannot be read", "Write '# type: (int, Tensor) -> Tensor'."
        ) from None
    if "->" not in text:
        found.returns = None
    return _placed(found, tree)


def _expression(text, tree):
    try:
        return _placed(ast.parse(text, mode="eval").body, tree)
    except SyntaxError:
        raise BadComment(f"the type comment '{text}' cannot be read", "Write '# type: int'.") from None


def _placed(found, tree):
    for node in ast.walk(found):
        ast.copy_location(node, tree)
    return found
