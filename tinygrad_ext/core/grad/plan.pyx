# cython: language_level=3
"""How the arguments and gradients of a Function are bound: its forward's signature, read once for each class.

Autograd wants one flat row of arguments, in the order of the signature: positional ones, *args, keyword-only ones,
**kwargs. Defaults are filled in, so that `setup_context` and `needs_input_grad` see every argument at its place. Rejected:
`inspect.Signature.bind` in each call. For three arguments it takes 2.4 µs, 4.4 with defaults, and the whole of `apply` 2.2.
"""
cimport cython

cdef object MISSING = object()
cdef object _no_setup = None            # setup_context of a Function that was given none
cdef object _no_backward = None         # its backward and its vjp


def set_base(base):
    """Tell which class is autograd.Function: a method that is still its own was not given by the user."""
    global _no_setup, _no_backward
    _no_setup, _no_backward = base.setup_context, base.backward


@cython.final
cdef class Plan:
    """The signature of one forward."""

    cdef bint fits(self, Py_ssize_t given) noexcept:
        """Whether that many positional arguments and no keywords are the flat row already."""
        return self.simple and (given == self.npositional or (given > self.npositional and self.var_positional is not None))

    cdef tuple bind(self, tuple args, dict kwargs):
        """(flat row, positional arguments, keywords, length of the row up to the last argument that was given).

        Takes what it binds out of kwargs.
        """
        cdef Py_ssize_t i, k, count = len(args), given = count
        cdef list row = list(args)
        if count > self.npositional and self.var_positional is None:
            raise self._wrong(f"takes {self.npositional} positional argument{'s' * (self.npositional != 1)} but {count} "
                              f"{'were' if count != 1 else 'was'} given")
        for i in range(count, self.npositional):
            name = self.names[i]
            if i >= self.npositional_only and name in kwargs:
                row.append(kwargs.pop(name))
                given = i + 1
            elif i >= self.nrequired:
                row.append(self.defaults[i - self.nrequired])
            else:
                raise self._wrong(f"missing 1 required positional argument: '{name}'")
        positional = tuple(row)
        keywords = {}
        for k in range(len(self.keyword_defaults)):
            name = self.names[self.npositional + k]
            value = kwargs.pop(name, MISSING)
            if value is not MISSING:
                given = len(row) + 1
            elif self.keyword_defaults[k] is MISSING:
                raise self._wrong(f"missing 1 required keyword-only argument: '{name}'")
            else:
                value = self.keyword_defaults[k]
            keywords[name] = value
            row.append(value)
        if kwargs:
            self._check_rest(kwargs, count)
            keywords.update(kwargs)
            row += kwargs.values()
            given = len(row)
        return tuple(row), positional, keywords, given

    def _check_rest(self, kwargs, count):
        for name in kwargs:
            if name in self.names[self.npositional_only:min(count, self.npositional)]:
                raise self._wrong(f"got multiple values for argument '{name}'")
            if self.var_keyword is None:
                raise self._wrong(f"got an unexpected keyword argument '{name}'")

    def _wrong(self, what):
        names = list(self.names[:self.npositional])
        names += ["*" + self.var_positional] if self.var_positional else []
        names += [f"{n}=" for n in self.names[self.npositional:]]
        names += ["**" + self.var_keyword] if self.var_keyword else []
        return TypeError(f"{self.function.__name__}.apply() {what}. Its forward takes ({', '.join(names)}).")

    # ---- the gradients of a call: n arguments, of which **kwargs took those named in `extra`

    cdef tuple names_of(self, Py_ssize_t n, tuple extra):
        """A name for each argument of the flat row."""
        if extra is None:
            extra = ()
        many = tuple([f"{self.var_positional}[{i}]" for i in range(n - len(self.names) - len(extra))])
        return self.names[:self.npositional] + many + self.names[self.npositional:] + extra

    cdef str argument(self, Py_ssize_t i, Py_ssize_t n, tuple extra):
        return f"argument '{self.names_of(n, extra)[i]}'" if i < n else f"argument {i}"

    cdef tuple row(self, object got, str node, Py_ssize_t n, Py_ssize_t wanted, tuple extra):
        """What backward returned as one gradient for each argument; RuntimeError when the numbers do not fit.

        Fewer than n, but at least `wanted`, will do: the arguments left out were defaults.
        """
        cdef Py_ssize_t count
        returned = got
        if isinstance(got, dict):
            got = self._by_name(got, node, self.names_of(n, extra))
        elif type(got) is not tuple:
            got = tuple(got) if isinstance(got, tuple) else (got,)
        count = len(got)
        while count > n and got[count - 1] is None:
            count -= 1
        if count > n or count < wanted:
            raise self._wrong_count(got[:count], node, n, extra, isinstance(returned, list))
        if count != len(got):
            got = got[:count]
        return got + (None,) * (n - count) if count < n else got

    cdef tuple _by_name(self, object got, str node, tuple names):
        for name in got:
            if name not in names:
                raise RuntimeError(f"function {node} returned a gradient for '{name}', which is no argument of its forward "
                                   f"({', '.join(names)})")
        return tuple([got.get(name) for name in names])

    cdef object _wrong_count(self, tuple got, str node, Py_ssize_t n, tuple extra, bint was_list):
        told = [f"{self.argument(i, n, extra)}: {'missing' if i >= len(got) else 'none' if got[i] is None else 'a gradient'}"
                for i in range(max(n, len(got)))]
        return RuntimeError(f"function {node} returned an incorrect number of gradients (expected {n}, got {len(got)}). One for "
                            f"each argument of forward, None where there is none: {', '.join(told)}"
                            + (". A list counts as one: return a tuple." if was_list else ""))


cdef Plan plan_of(object cls):
    """The plan of a class, made again when somebody has given it another forward or setup_context."""
    cdef object plan = cls._plan
    forward, setup = cls.forward, cls.setup_context
    cdef bint known = isinstance(plan, Plan)
    if not known or (<Plan>plan).forward is not forward or (<Plan>plan).setup is not setup:
        if not known or (<Plan>plan).forward != forward or (<Plan>plan).setup != setup:
            plan = cls._plan = _read(cls, forward, setup)
    return <Plan>plan


cdef Plan _read(object cls, object forward, object setup):
    import inspect
    cdef Plan plan = Plan.__new__(Plan)
    plan.function, plan.forward, plan.setup = cls, forward, setup
    plan.separate = setup is not _no_setup
    plan.node_type = cls._backward_cls
    Parameter = inspect.Parameter
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):         # a function that does not tell: take the arguments as they come
        parameters = [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)]
    named = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    if not plan.separate and parameters and parameters[0].kind in named:
        parameters = parameters[1:]
    positional = [p for p in parameters if p.kind in named]
    only = [p for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    defaults = [p.default for p in positional if p.default is not p.empty]
    plan.names = tuple([p.name for p in positional + only])
    plan.npositional, plan.nrequired = len(positional), len(positional) - len(defaults)
    plan.npositional_only = len([p for p in positional if p.kind is Parameter.POSITIONAL_ONLY])
    plan.defaults = tuple(defaults)
    plan.keyword_defaults = tuple([MISSING if p.default is p.empty else p.default for p in only])
    for p in parameters:
        if p.kind is Parameter.VAR_POSITIONAL:
            plan.var_positional = p.name
        elif p.kind is Parameter.VAR_KEYWORD:
            plan.var_keyword = p.name
    plan.simple = not only
    return plan


def plan_of_names(function, names):
    """The plan of a function of positional arguments, for what is no Function class but has its attributes."""
    cdef Plan plan = Plan.__new__(Plan)
    plan.function, plan.names = function, tuple(names)
    plan.npositional = plan.nrequired = len(plan.names)
    plan.defaults = plan.keyword_defaults = ()
    plan.simple = True
    return plan


cdef object backward_of(object function):
    """The user's backward, under either of its two names."""
    backward, vjp = function.backward, function.vjp
    if vjp is _no_backward or backward is vjp:
        return backward
    if backward is not _no_backward:
        raise RuntimeError(f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed: {function.__name__} "
                           "should have one of them. They mean the same.")
    return vjp
