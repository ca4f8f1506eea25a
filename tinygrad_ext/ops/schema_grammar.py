"""Reads any schema, and says what is wrong with one that is none.

One regular expression match for an argument instead of one step for a token. What is wrong with a line is worked out
only after it failed to match.
The grammar stands in schema.py.
"""

import re

from .schema_default import Fault, read_default
from .schema_parts import TYPES, Alias, Arg

_IDENT = r"[A-Za-z_]\w*"
_TYPE = rf"{_IDENT}(?:\([^()]*\))?[?\[\]\d]*"
_STRING = r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'"
_DEFAULT = rf"""{_STRING}|\[[^\[\]]*\]|-?\s*[^\s,()\[\]"'=]+"""

_HEAD = re.compile(rf"\s*(?:({_IDENT})::)?({_IDENT})(?:\.({_IDENT}))?\s*\(\s*", re.A)
_ARG = re.compile(rf"(?:({_TYPE})\s+({_IDENT})(?:\s*=\s*({_DEFAULT}))?|(\*|\.\.\.))\s*([,)])\s*", re.A)
_RETURN = re.compile(rf"({_TYPE})(?:\s+({_IDENT}))?\s*([,)]|\Z)\s*", re.A)
_TYPE_PARTS = re.compile(rf"({_IDENT})(\([^()]*\))?(?:(\?)?\[(\d*)\])?(\?)?", re.A)


def read(text):
    """The fields of a Schema. Raises Fault."""
    head = _HEAD.match(text)
    if head is None:
        raise _head_fault(text)
    namespace, name, overload = head.groups("")
    if overload == "default":
        raise Fault("'default' is the name of the overload without one. Leave it out", head.start(3), 7)
    args, varargs, end = _read_args(text, head.end())
    return namespace, name, overload, args, _read_returns(text, end), varargs


def _read_args(text, pos):
    """Return (args, varargs, the position after the closing parenthesis)."""
    if text.startswith(")", pos):
        return (), False, _skip_space(text, pos + 1)
    args, previous, kwarg_only, end = {}, None, False, ","
    while end == ",":
        match = _ARG.match(text, pos)
        if match is None:
            raise _arg_fault(text, pos)
        declared, name, literal, mark, end = match.groups()
        if mark == "..." and end == ")":
            return tuple(args.values()), True, match.end()
        if mark:
            if mark == "..." or kwarg_only or end == ")":
                raise _mark_fault(mark, pos)
            kwarg_only = True
        else:
            if name in args:
                raise Fault(f"duplicate argument name '{name}'. Give each its own", match.start(2), len(name))
            args[name] = arg = Arg(name, _read_type(declared, pos), kwarg_only)
            if literal is not None:
                arg.default = read_default(arg, literal, match.start(3))
                arg.has_default = True
            elif previous is not None and previous.has_default and not kwarg_only:
                raise _order_fault(name, previous.name, match.start(2))
            previous = arg
        pos = match.end()
    return tuple(args.values()), False, pos


def _read_returns(text, pos):
    """Return the returns, which reach from the arrow at pos to the end of text."""
    if not text.startswith("->", pos):
        raise _fault_at(text, pos, "'->' and what the op returns, such as '-> Tensor' or '-> ()'")
    pos = _skip_space(text, pos + 2)
    if text[pos:].strip() == "None":
        return ()
    returns, end, in_list = [], ",", text.startswith("(", pos)
    if in_list:
        pos = _skip_space(text, pos + 1)
        if text.startswith(")", pos):
            pos, end = _skip_space(text, pos + 1), ")"
    while end == ",":
        match = _RETURN.match(text, pos)
        if match is None or in_list == (match[3] == ""):
            raise _return_fault(text, pos, match, in_list)
        declared, name, end = match.groups()
        if name and any(other.name == name for other in returns):
            raise Fault(f"duplicate return name '{name}'. Give each its own", match.start(2), len(name))
        returns.append(Arg(name or "", _read_type(declared, pos)))
        pos = match.end()
    if pos < len(text):
        raise _fault_at(text, pos, "the end of the schema")
    return tuple(returns)


def _read_type(declared, pos):
    """Return the type fields of an `Arg`; declared stands at pos."""
    match = _TYPE_PARTS.match(declared)
    base, group, elem_optional, size, optional = match.groups()
    if base not in TYPES:
        raise Fault(f"unknown type '{base}'.{_nearest(base)} Known are {', '.join(TYPES)}", pos, len(base))
    if match.end() < len(declared):
        raise Fault(
            f"type '{declared}' must end as in T?, T[], T[2], T?[] or T[]?, and lists do not nest", pos, len(declared)
        )
    alias = None
    if base == "Dict":
        base = _read_dict(group, pos)
    elif group:
        alias = _read_alias(base, group, pos + match.start(2))
    brackets = "" if size is None else f"{elem_optional or ''}[{size and int(size)}]"
    spelling = f"{base}{alias or ''}{brackets}{optional or ''}"
    return (
        spelling,
        base,
        optional is not None,
        size is not None,
        int(size) if size else None,
        elem_optional is not None,
        alias,
    )


def _read_dict(group, pos):
    types = group[1:-1].split(",") if group else ()
    if len(types) != 2 or not all(re.fullmatch(rf"\s*{_TYPE}\s*", part, re.A) for part in types):
        raise Fault("a Dict names the types of its keys and values. Write Dict(str, Tensor)", pos, 4)
    key, value = (_read_type(part.strip(), pos + 4 + group.index(part))[0] for part in types)
    return f"Dict({key}, {value})"


def _read_alias(base, group, pos):
    if base not in ("Tensor", "Generator", "Any"):
        raise Fault(f"{base} is a plain value and shares no memory. Leave {group} out", pos, len(group))
    before, arrow, after = (part.strip() for part in group[1:-1].partition("->"))
    write = before.endswith("!")
    sets = [_read_set(before.rstrip("!") if write else before)]
    if arrow:
        sets.append(_read_set(after))
    if not all(sets):
        raise Fault(f"{group} names no alias set. Write (a), (a!) for written, or (a -> *)", pos, len(group))
    return Alias(sets[0], write, sets[1] if arrow else ())


def _read_set(text):
    """Return the names of an alias set, () if text is none."""
    names = tuple(name.strip() for name in text.split("|"))
    return names if text == "*" or all(name.isidentifier() and name.isascii() for name in names) else ()


def _skip_space(text, pos):
    while pos < len(text) and text[pos].isspace():
        pos += 1
    return pos


# What is wrong. All of this runs only once a line has failed.


def message(text, what, pos, length):
    """Return the message of an error: the op, what is wrong, the line with the place marked."""
    head = _HEAD.match(text)
    name = text[: head.end()].strip().rstrip("( \t\n") if head else "schema"
    start = text.rfind("\n", 0, pos) + 1
    line = text[start:].partition("\n")[0]
    mark = "^" + "~" * (min(length, len(line) - (pos - start)) - 1)
    return f"{name}: {what}.\n    {line}\n    {' ' * (pos - start)}{mark}"


def _fault_at(text, pos, wanted):
    """Return the fault that wanted should stand at pos."""
    pos = _skip_space(text, pos)
    token = re.compile(rf"{_STRING}|\w+(?:\.\w+)*|->|::|\.\.\.|\S", re.A).match(text, pos)
    found = f"'{token[0]}'" if token else "the end of the text"
    return Fault(f"expected {wanted}, found {found}", pos, len(token[0]) if token else 1)


def _nearest(word):
    import difflib  # slow to import, and needed for an error only

    near = difflib.get_close_matches(word.lower(), [name.lower() for name in TYPES], 1, 0.5)
    return f" Did you mean '{next(name for name in TYPES if name.lower() == near[0])}'?" if near else ""


def _head_fault(text):
    match = re.compile(rf"\s*(?:({_IDENT})::)?({_IDENT})(?:\.({_IDENT}))?\s*", re.A).match(text)
    if match is None:
        return _fault_at(text, 0, "the name of the op, as in 'aten::add.Tensor(Tensor self) -> Tensor'")
    return _fault_at(text, match.end(), f"'(' and the arguments of '{match[0].strip()}'")


def _mark_fault(mark, pos):
    if mark == "...":
        return Fault("'...' must be the last argument", pos, 3)
    return Fault("'*' stands once, before the keyword-only arguments. Leave this one out", pos, 1)


def _order_fault(name, previous, pos):
    return Fault(
        f"argument '{name}' without a default follows '{previous}', which has one. "
        f"Give '{name}' a default, or move it forward or behind '*'",
        pos,
        len(name),
    )


def _arg_fault(text, pos):
    """Return the fault of the argument at pos, by matching as much of it as there is."""
    declared = re.compile(_TYPE, re.A).match(text, pos)
    if declared is None:
        return _fault_at(text, pos, "an argument such as 'Tensor self', '*' or '...'")
    _read_type(declared[0], pos)
    name = re.compile(rf"\s+({_IDENT})\s*", re.A).match(text, declared.end())
    if name is None:
        return _fault_at(text, declared.end(), f"the name of the argument after its type '{declared[0]}'")
    equals = re.compile(r"=\s*", re.A).match(text, name.end())
    if equals is None:
        return _fault_at(text, name.end(), f"',' or ')' or a default after argument '{name[1]}'")
    default = re.compile(_DEFAULT, re.A).match(text, equals.end())
    if default is None:
        return _fault_at(text, equals.end(), f"the default of argument '{name[1]}'")
    return _fault_at(text, default.end(), f"',' or ')' after argument '{name[1]}'")


def _return_fault(text, pos, match, in_list):
    """Return the fault of the return at pos; match, if any, ends in the wrong sign."""
    wanted = "',' or ')'" if in_list else "the end of the schema, or several returns in ( )"
    if match is not None:
        return _fault_at(text, match.start(3), wanted)
    declared = re.compile(_TYPE, re.A).match(text, pos)
    if declared is None:
        return _fault_at(text, pos, "the type of a return")
    _read_type(declared[0], pos)
    name = re.compile(rf"\s+{_IDENT}", re.A).match(text, declared.end())
    return _fault_at(text, (name or declared).end(), wanted)
