"""What einsum and tensordot do for given subscripts and shapes.

A product of two operands becomes one batched matrix product: subscripts in both and in what follows are the batch,
those in both and nowhere else are summed by the product, the others are its rows and columns. What to do follows from
the subscripts and the shapes alone: it is worked out once, on stand-ins that note each step, and kept.
"""

import functools

from tinygrad_ext.ops.shapes import wrapped

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DOTS = len(LETTERS)  # dimensions of the ellipsis are numbered from here on


# ---- reading the equation ------------------------------------------------------------------------------------------


def _term(text, start, operand):
    """Subscripts of one operand (or of the output) as numbers, None for the ellipsis; spaces are ignored."""
    out, i = [], 0
    while i < len(text):
        c = text[i]
        if c == " ":
            pass
        elif c == ".":
            if None in out:
                found = "for which an ellipsis" if "operand" in operand else "but an ellipsis (...)"
                raise RuntimeError(f"einsum(): found '.' for {operand} {found} was already found")
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {operand} that is not part of any ellipsis")
            out.append(None)
            i += 2
        elif c in LETTERS:
            out.append(LETTERS.index(c))
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be "
                f"in [a-zA-Z], got '{c}'"
            )
        i += 1
    return out


def parse(equation, count):
    """Terms of the operands, and of the output or None when there is no arrow."""
    if not count:
        raise ValueError("einsum(): must specify the equation string and at least one operand, got no operand")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) < count:
        raise RuntimeError(
            f"einsum(): more operands were provided than specified in the equation: '{equation}' names {len(texts)}, "
            f"got {count}"
        )
    if len(texts) > count:
        raise RuntimeError(
            f"einsum(): fewer operands were provided than specified in the equation: '{equation}' names "
            f"{len(texts)}, got {count}"
        )
    terms, start = [], 0
    for i, text in enumerate(texts):
        terms.append(_term(text, start, f"operand {i}"))
        start += len(text) + 1
    return terms, _term(right, len(left) + 2, "the output") if arrow else None


def _expand_dots(terms, output, shapes):
    """Replace each ellipsis by numbers, counted from the last dimension, and work out a missing output."""
    widths = []
    for i, (term, dim) in enumerate(zip(terms, map(len, shapes))):
        named = sum(s is not None for s in term)
        if named > dim or (named < dim and None not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({dim}) for operand {i} and no ellipsis was given"
                if None not in term
                else f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                f"dimensions ({dim}) for operand {i}"
            )
        widths.append(dim - named if None in term else 0)
    widest = max(widths, default=0)
    dots = list(range(DOTS, DOTS + widest))

    def filled(term, width):
        return [s for part in term for s in (dots[widest - width :] if part is None else [part])]

    filled_terms = [filled(t, w) for t, w in zip(terms, widths)]
    if output is None:
        seen = [s for t in filled_terms for s in t]
        return filled_terms, dots + sorted({s for s in seen if s < DOTS and seen.count(s) == 1})
    return filled_terms, filled(output, widest)


def _name(s):
    return LETTERS[s] if s < DOTS else "..."


def _sizes(terms, shapes):
    """Size of every subscript; sizes must agree, or be 1 and repeat."""
    sizes = {}
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        own = {}
        for s, size in zip(term, shape):
            if own.setdefault(s, size) is not size and own[s] != size:
                raise RuntimeError(
                    f"einsum(): subscript {_name(s)} is repeated for operand {i} but the sizes don't match, {size} != "
                    f"{own[s]}"
                )
            known = sizes.setdefault(s, size)  # a graph that compares sizes with 1 holds for fewer
            if known == size:
                continue
            if known == 1:
                sizes[s] = size
            elif size != 1:
                raise RuntimeError(
                    f"einsum(): subscript {_name(s)} has size {size} for operand {i} which does not broadcast with "
                    f"previously seen size {sizes[s]}"
                )
    return sizes


def _check_output(output, sizes):
    for s in output:
        if output.count(s) > 1:
            raise RuntimeError(f"einsum(): output subscript {_name(s)} appears more than once in the output")
        if s not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {_name(s)} does not appear in the equation for any input operand"
            )


# ---- planning ------------------------------------------------------------------------------------------------------


class _Planned:
    """Stands for a tensor: has its shape, and notes what is done to it."""

    def __init__(self, steps, place, shape):
        """steps: the list that all of one plan share. place: number of the tensor, operands first."""
        self.steps, self.place, self.shape = steps, place, tuple(shape)

    def _step(self, shape, name, *args, other=None):
        self.steps.append((name, self.place, args, None if other is None else other.place))
        return _Planned(self.steps, self.steps.first + len(self.steps), shape)

    def diagonal(self, offset, first, second):
        left = [n for k, n in enumerate(self.shape) if k not in (first, second)]
        return self._step([*left, self.shape[first]], "diagonal", offset, first, second)

    def sum(self, dims):
        return self._step([n for k, n in enumerate(self.shape) if k not in dims], "sum", dims)

    def permute(self, dims):
        return self._step([self.shape[d] for d in dims], "permute", dims)

    def unsqueeze(self, dim):
        return self._step([*self.shape[:dim], 1, *self.shape[dim:]], "unsqueeze", dim)

    def reshape(self, shape):
        return self._step(shape, "reshape", shape)

    def mul(self, other):
        return self._step(map(_wider, self.shape, other.shape), "mul", other=other)

    def matmul(self, other):
        batch = map(_wider, self.shape[:-2], other.shape[:-2])
        return self._step([*batch, *self.shape[-2:-1], *other.shape[-1:]], "matmul", other=other)


class _Steps(list):
    """What to do, in order; each step makes the tensor of the next number."""

    def __init__(self, operands):
        super().__init__()
        self.first = operands - 1


def _wider(n, m):
    if type(m) is int and m == 1:
        return n
    return m if type(n) is int and n == 1 else n if n == m else m if n == 1 else n


def _plan(terms, output, shapes):
    """Steps that compute the output, and the number of the tensor that is it."""
    terms, output = _expand_dots(terms, output, shapes)
    sizes = _sizes(terms, shapes)
    _check_output(output, sizes)
    steps = _Steps(len(shapes))
    (out, term), *rest = [
        _without_repeats(_Planned(steps, i, shape), term) for i, (shape, term) in enumerate(zip(shapes, terms))
    ]
    for i, (t, other) in enumerate(rest):
        later = {s for _, x in rest[i + 1 :] for s in x}
        out, term = _product(out, term, t, other, set(output) | later, output)
    out, term = _sum_out(out, term, set(output))
    places = [term.index(s) for s in output]
    if places != list(range(len(places))):
        out = out.permute(places)
    return tuple(steps), out.place


def _without_repeats(t, term):
    """Diagonals in place of repeated subscripts."""
    term = list(term)
    for s in list(term):
        while term.count(s) > 1:
            first = term.index(s)
            second = term.index(s, first + 1)
            t = t.diagonal(0, first, second)
            term = [x for k, x in enumerate(term) if k not in (first, second)] + [s]
    return t, term


def _sum_out(t, term, keep):
    """Sum over the subscripts that nothing else needs."""
    gone = [i for i, s in enumerate(term) if s not in keep]
    return (t.sum(gone), [s for s in term if s in keep]) if gone else (t, term)


def _arranged(t, term, order):
    """Dimensions in the given order, of size 1 where the operand lacks one."""
    present = [s for s in order if s in term]
    places = [term.index(s) for s in present]
    if places != list(range(len(places))):
        t = t.permute(places)
    for i, s in enumerate(order):
        if s not in term:
            t = t.unsqueeze(i)
    return t


def _count(sizes, subscripts):
    n = 1
    for s in subscripts:
        n *= sizes[s]
    return n


def _as_in(output, term):
    """Subscripts in the order of the output, before those that it lacks."""
    return [s for s in output if s in term] + [s for s in term if s not in output]


def _product(a, a_term, b, b_term, keep, output):
    """One pair: (..., rows, summed) by (..., summed, columns); rows are of the operand that the output names first."""
    a, a_term = _sum_out(a, a_term, keep | set(b_term))
    b, b_term = _sum_out(b, b_term, keep | set(a_term))
    own = {"a": dict(zip(a_term, a.shape)), "b": dict(zip(b_term, b.shape))}
    summed = [s for s in a_term if s in b_term and s not in keep]
    if any(own["a"][s] != own["b"][s] for s in summed):  # one of them repeats: sum it alone
        alone = {s for s in summed if own["a"][s] != own["b"][s]}
        a, a_term = _sum_out(a, a_term, set(a_term) - {s for s in alone if own["a"][s] != 1})
        b, b_term = _sum_out(b, b_term, set(b_term) - {s for s in alone if own["b"][s] != 1})
        a, a_term = _sum_out(a, a_term, set(a_term) - alone)
        b, b_term = _sum_out(b, b_term, set(b_term) - alone)
        return _product(a, a_term, b, b_term, keep, output)
    if summed and next((s in b_term for s in output if (s in a_term) != (s in b_term)), False):
        a, a_term, b, b_term, own = b, b_term, a, a_term, {"a": own["b"], "b": own["a"]}
    a_order, b_order = _as_in(output, a_term), _as_in(output, b_term)
    batch = [s for s in a_order if s in b_term and s in keep]
    rows, cols = [s for s in a_order if s not in b_term], [s for s in b_order if s not in a_term]
    if not summed:
        order = _as_in(output, batch + rows + cols)
        return _arranged(a, a_term, order).mul(_arranged(b, b_term, order)), order
    left = _arranged(a, a_term, batch + rows + summed)
    right = _arranged(b, b_term, batch + summed + cols)
    n, a_sizes, b_sizes = len(batch), own["a"], own["b"]
    if len(rows) != 1 or len(summed) != 1:
        left = left.reshape((*left.shape[:n], _count(a_sizes, rows), _count(a_sizes, summed)))
    if len(cols) != 1 or len(summed) != 1:
        right = right.reshape((*right.shape[:n], _count(b_sizes, summed), _count(b_sizes, cols)))
    out = left.matmul(right)
    if len(rows) != 1 or len(cols) != 1:
        out = out.reshape((*out.shape[:n], *[a_sizes[s] for s in rows], *[b_sizes[s] for s in cols]))
    return out, batch + rows + cols


# ---- plans that are kept -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=512)
def plan_equation(equation, shapes):
    return _plan(*parse(equation, len(shapes)), shapes)


plan_lists = functools.lru_cache(maxsize=512)(_plan)


@functools.lru_cache(maxsize=512)
def plan_dot(a, b, first, second):
    """Plan for two shapes and the dimensions of each to sum over."""
    a_term, b_term = list(range(len(a))), list(range(len(a), len(a) + len(b)))
    for i, j in zip(first, second):
        x, y = wrapped(i, len(a)), wrapped(j, len(b))
        if b_term[y] < len(a) or a_term[x] in b_term:
            raise RuntimeError(f"dim {x if a_term[x] in b_term else y} appears multiple times in the list of dims")
        if a[x] != b[y] and 1 not in (a[x], b[y]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[x]} in dim {i} and second has size {b[y]} "
                f"in dim {j}"
            )
        b_term[y] = a_term[x]
    output = [s for s in a_term if s not in b_term] + [s for s in b_term if s not in a_term]
    return _plan([a_term, b_term], output, (a, b))
