# The TypeError for arguments that no schema of a name accepts. Part of arguments.pyx.

cdef list _KIND_TEXT = [shown for _, shown in ARGUMENT_KINDS.values()]


cdef str _python_name(Op op, int i, bint method):
    name = <object>op.args[i].name
    return "input" if name == "self" and not method else name


cdef str _type_text(ArgSpec *s):
    text = _KIND_TEXT[s.kind]
    return f"tuple of {text}s" if s.flags & F_LIST else text


cdef str _signature_text(Op op, bint method):
    parts = []
    cdef int i
    cdef bint star = False
    for i in range(1 if method else 0, op.nargs):
        if op.args[i].flags & F_KEYWORD and not star:
            star = True
            parts.append("*")
        part = f"{_type_text(&op.args[i])} {_python_name(op, i, method)}"
        if op.args[i].flags & F_DEFAULT:
            part += f" = {<object>op.args[i].default!r}"
        parts.append(part)
    if op.has_out and not method:
        parts += (["*"] if not star else []) + ["Tensor out = None"]
    return "(" + ", ".join(parts) + ")"


cdef str _type_name(object o):
    t = type(o)
    if t in (tuple, list) and o:
        return f"{t.__name__} of " + (f"({', '.join([type(x).__name__ for x in o])}{',' if len(o) == 1 else ''})"
                                      if len({type(x) for x in o}) > 1 or t is tuple
                                      else f"[{', '.join([type(x).__name__ for x in o])}]")
    return class_name(o)


cdef object _only_failure(Op op, list positional, dict keywords, bint method):
    """TypeError of a name that has one schema."""
    cdef int i, at
    cdef ArgSpec *s
    cdef int skip = 1 if method else 0
    values = {}
    for i, v in enumerate(positional[:op.npositional]):
        values[i] = v
    if len(positional) > op.npositional:
        s = &op.args[op.npositional - 1]
        if op.npositional and s.flags & F_LIST and s.kind == A_INT:
            rest = positional[op.npositional - 1:]
            for v in rest:
                if not _is_int(v, 1):
                    return TypeError(f"{op.title}(): argument '{_python_name(op, op.npositional - 1, method)}' (position "
                                     f"{op.npositional - skip}) must be tuple of ints, not {type(v).__name__}")
            positional = [*positional[:op.npositional - 1], tuple(rest)]       # zeros(2, 3): the ints are one list
            values[op.npositional - 1] = tuple(rest)
    if len(positional) > op.npositional:
        most, got = op.npositional - skip, len(positional) - skip
        return TypeError(f"{op.title}() takes {most} positional argument{'s' if most != 1 else ''} but {got} "
                         f"{'were' if got != 1 else 'was'} given. Its arguments are {_signature_text(op, method)}.")
    for name, v in keywords.items():
        at = _place_of(op, <PyObject *>name, method)
        if at < 0 or (at == op.nargs and not op.has_out):
            near = _near(name, [_python_name(op, i, method) for i in range(op.nargs)])
            return TypeError(f"{op.title}() got an unexpected keyword argument '{name}'{near}")
        if at == op.nargs:
            if v is not None and not isinstance(v, (Tensor, tuple, list)):
                return TypeError(f"{op.title}(): argument 'out' must be Tensor, not {class_name(v)}{how_to_convert(v)}")
            if isinstance(v, (tuple, list)) != (op.nreturns > 1 or op.makes_list):
                wanted = "tuple of Tensors" if op.makes_list else "Tensor" if op.nreturns == 1 else f"tuple of {op.nreturns} Tensors"
                return TypeError(f"{op.title}(): argument 'out' must be {wanted}, not {_type_name(v)}")
            continue
        if at in values:
            return TypeError(f"{op.title}() got multiple values for argument '{name}'")
        values[at] = v
    missing = [_python_name(op, i, method) for i in range(op.nargs) if i not in values and not op.args[i].flags & F_DEFAULT]
    if missing:
        return TypeError(f"{op.title}() missing {len(missing)} required positional argument{'s' if len(missing) > 1 else ''}: "
                         + ", ".join([f'"{m}"' for m in missing]))
    for at in sorted(values):
        s = &op.args[at]
        v = values[at]
        if _accepts(s, <PyObject *>v) or (at == op.npositional - 1 and _packs(s) and _is_int(v, 1)):
            continue
        where = f"argument '{_python_name(op, at, method)}'"
        if not s.flags & F_KEYWORD:
            where += f" (position {at + 1 - skip})"
        if s.flags & F_LIST and isinstance(v, (tuple, list)):
            for k, item in enumerate(v):
                if not _accepts_one(s.kind, s.flags & (F_NUMBER | F_LIST), item):
                    if s.kind == A_TENSOR:
                        return TypeError(f"{op.title}(): expected Tensor as element {k} in argument {at}, but got "
                                         f"{class_name(item)}{how_to_convert(item)}")
                    return TypeError(f"{op.title}(): {where} must be {_type_text(s)}, but found element of type "
                                     f"{class_name(item)} at pos {k}")
        return TypeError(f"{op.title}(): {where} must be {_type_text(s)}, not {class_name(v)}{how_to_convert(v)}")
    if op.one_tensor:
        return TypeError(f"{op.title}() received an invalid combination of arguments - got "
                         f"({', '.join([_type_name(v) for v in positional])}), but expected one of them to be a Tensor: "
                         f"{_signature_text(op, method)}")
    return TypeError(f"{op.title}(): arguments do not fit {_signature_text(op, method)}")


cdef str _near(str name, list names):
    import difflib
    close = difflib.get_close_matches(name, names, 1)
    return f". Did you mean '{close[0]}'?" if close else f". Its arguments are {', '.join(names)}."


cdef bint _takes(Op op, Py_ssize_t count):
    """Whether a call of `count` arguments may mean this schema."""
    cdef int i, needed = 0
    for i in range(op.nargs):
        needed += not op.args[i].flags & F_DEFAULT
    return needed <= count <= op.nargs + op.has_out


cdef object explain_failure(list ops, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method):
    """The TypeError for arguments that no schema of a name accepts."""
    cdef Py_ssize_t i
    cdef Op op
    positional = [<object>given[i] for i in range(n)]
    keywords = {}
    if kwnames != NULL:
        for i in range(PyTuple_GET_SIZE(kwnames)):
            keywords[<object>PyTuple_GET_ITEM(kwnames, i)] = <object>given[n + i]
    # as PyTorch: where only one schema takes so many arguments, its refusal says more than a list of all
    meant = [o for o in ops if _takes(<Op>o, len(positional) + len(keywords))] if len(ops) > 1 else ops
    if len(meant) == 1:
        return _only_failure(<Op>meant[0], positional, keywords, method)
    op = ops[0]
    got = [_type_name(v) for v in positional[1 if method else 0:]] + [f"{k}={_type_name(v)}" for k, v in keywords.items()]
    hint = ""
    for v in positional + list(keywords.values()):
        if not isinstance(v, Tensor):
            hint = hint or how_to_convert(v)
    lines = "".join([f"\n * {_signature_text(<Op>o, method)}" for o in ops])
    return TypeError(f"{op.title}() received an invalid combination of arguments - got ({', '.join(got)}), "
                     f"but expected one of:{lines}{hint}")
