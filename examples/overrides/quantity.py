"""A wrapper with units: metres add to metres, divide by seconds, and have no logarithm."""

import tinygrad_ext as tg


class UnitError(TypeError):
    """The units of the operands do not fit the function."""


class Quantity:
    """A tensor and the exponents of its units.

    Arguments:
        data: a tensor, a number, or what `as_tensor` takes.
        unit: a dict such as {"m": 1, "s": -2}; {} is a pure number.

    Raises UnitError where units do not fit, and TypeError for functions without a rule.

        >>> metres, seconds = Quantity([3.0, 4.0], {"m": 1}), Quantity(2.0, {"s": 1})
        >>> metres / seconds
        Quantity(tensor([1.5000, 2.0000]), 'm s^-1')
        >>> metres + seconds
        Traceback (most recent call last):
        quantity.UnitError: add() needs equal units, got m and s
    """

    def __init__(self, data, unit=None):
        self.data = tg.as_tensor(data)
        self.unit = {name: power for name, power in (unit or {}).items() if power}

    def __repr__(self):
        return f"Quantity({self.data!r}, {unit_text(self.unit)!r})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(t, (tg.Tensor, cls)) for t in types):
            return NotImplemented
        name = getattr(func, "__name__", "").strip("_")
        rule = _RULES.get(name)
        if rule is None or any(isinstance(v, cls) for v in (kwargs or {}).values()):
            return NotImplemented
        unit = rule(name, [a.unit if isinstance(a, cls) else {} for a in _flat(args)], args)
        result = func(*_plain(args), **(kwargs or {}))
        return result if unit is None else cls(result, unit)

    def __add__(self, other):
        return tg.add(self, other)

    def __sub__(self, other):
        return tg.sub(self, other)

    def __mul__(self, other):
        return tg.mul(self, other)

    def __truediv__(self, other):
        return tg.div(self, other)

    def __pow__(self, power):
        return tg.pow(self, power)

    def __matmul__(self, other):
        return tg.matmul(self, other)

    def __lt__(self, other):
        return tg.lt(self, other)

    def __gt__(self, other):
        return tg.gt(self, other)

    __radd__ = __add__
    __rmul__ = __mul__


def unit_text(unit):
    """'m s^-2' of {"m": 1, "s": -2}; '1' of a pure number."""
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(unit.items())) or "1"


def _flat(args):
    """Operands, those in a list too."""
    return [item for a in args for item in (a if type(a) in (list, tuple) else (a,)) if isinstance(item, _OPERANDS)]


_OPERANDS = (Quantity, tg.Tensor, int, float)


def _plain(value):
    if isinstance(value, Quantity):
        return value.data
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


# ---- rules: the unit of the result from the name, the operands' units and the arguments; None for a plain result -----


def _first(name, units, args):
    return units[0]


def _equal(name, units, args):
    for unit in units[1:]:
        if unit != units[0]:
            raise UnitError(f"{name}() needs equal units, got {unit_text(units[0])} and {unit_text(unit)}")
    return units[0]


def _compared(name, units, args):
    _equal(name, units, args)


def _listed(name, units, args):
    """The operands are the list; the dimension behind it has no unit."""
    return _equal(name, units[: len(args[0])], args)


def _product(name, units, args):
    return _times(units[0], units[1], 1)


def _quotient(name, units, args):
    return _times(units[0], units[1], -1)


def _times(a, b, sign):
    return {name: a.get(name, 0) + sign * b.get(name, 0) for name in {**a, **b}}


def _power(name, units, args):
    if isinstance(args[1], (int, float)):
        return {unit: power * args[1] for unit, power in units[0].items()}
    return _number(name, units, args)


def _root(name, units, args):
    return {unit: power / 2 for unit, power in units[0].items()}


def _number(name, units, args):
    for unit in units:
        if unit:
            raise UnitError(f"{name}() needs a pure number, got {unit_text(unit)}; divide by a unit first")
    return {}


_RULES = {
    name: rule
    for rule, names in {
        _first: "neg abs relu sum mean amax amin reshape view transpose permute flatten squeeze unsqueeze expand t "
        "clone detach",
        _equal: "add radd sub rsub maximum minimum",
        _compared: "eq ne lt le gt ge isclose allclose equal",
        _listed: "cat stack",
        _product: "mul rmul matmul rmatmul mm mv bmm dot outer",
        _quotient: "div truediv",
        _power: "pow",
        _root: "sqrt",
        _number: "exp log log1p expm1 sin cos tan tanh sigmoid softmax erf",
    }.items()
    for name in names.split()
}
