"""Every op of the table in every form: as a function, a method, in place, into out=; private ones too."""

import contextlib
import functools

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.testing import compare, sweep

from . import arguments, nonsense, text, values
from .case import Case, Fault, refused
from .operands import Watched, tensors, touch

WRITES_ON_REQUEST = {"inplace", "max_norm", "running_mean"}  # arguments by which a function writes to an operand
REFUSED = ("Expected out tensor to have", "can't be cast to the desired", "is read-only", "single memory location")
POWERS = (
    "histogramdd",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
)  # a small size to a power
BLOCK = 400  # cases that a worker takes at a time
TABLE = [op for op in registry.ops.values() if op.record.owner == BUILTIN]


class Call(Case):
    """One call of one op."""

    def __init__(self, rng, table=TABLE):
        self.op = op = rng.choice(table)
        named = arguments.draw(rng, op)
        _share(rng, named)
        self.form = rng.choice([f for f in _forms(op) for _ in range(1 if f == "function" else 2)])
        self.args, self.kwargs = _split(rng, op.schema, named)
        self.target = _spelling(op, self.form)
        self.small = nonsense.is_small([*self.args, *self.kwargs.values()])
        self.wants_right_out, self.in_one_memory, self.refusal = False, False, ""
        if self.form == "out":
            self.kwargs["out"] = self._outs(rng)
        self.backward = rng.random() < 0.4
        self.inspects_meta = self.form == "function" and rng.random() < 0.5

    def _outs(self, rng):
        """Targets: inputs, windows on inputs or on each other, tensors of the right or of any shape, nonsense."""
        inputs = tensors([*self.args, *self.kwargs.values()])
        count = len(self.op.schema.returns)
        made = [_out(rng, inputs) for _ in range(count)]
        if rng.random() < 0.35:
            self.wants_right_out = True
            self.in_one_memory = rng.random() < 0.3
        if count > 1 and isinstance(made[0], tg.Tensor) and rng.random() < 0.2:
            made[1:] = [values.relative(rng, made[0]) for _ in made[1:]]
        if count > 1:
            return tuple(made) if rng.random() < 0.9 else rng.choice((made, made[:1], made[0], (made[0],) * count))
        return made[0] if rng.random() < 0.97 else nonsense.other(rng)

    def text(self):
        return text.call(self.target, self.args, self.kwargs)

    def run(self):
        calls = 1
        if self.wants_right_out:
            calls += self._fit_outs()
        expected = None
        if self.form == "out" and not sweep.is_random(self.op):
            calls += 1
            expected = self._without_out()
        written = self._written()
        watched = Watched([*self.args, *self.kwargs.values()], written)
        held = [(t, t.detach().clone()) for t in tensors(self.kwargs.get("out"))]
        result = self._call(self.args, self.kwargs)
        watched.check()
        touch([self.args, self.kwargs])
        if result is None:
            self._check_kept(held)
            return calls
        touch(result)
        if expected is not None:
            self._compare(expected, tensors(result))
        if self.inspects_meta:
            calls += self._beside_meta(result)
        if self.backward:
            self._differentiate(result)
            watched.check()
        return calls

    def _call(self, args, kwargs, quiet=False):
        """The result, None for a refusal."""
        tg.manual_seed(1)
        try:
            return _found(self.target)(*args, **kwargs)
        except Exception as error:
            if not quiet:
                self.refusal = str(error)
                refused(error, self.small and not self._is_power() and not _holds_large(self.args, self.kwargs))
            return None

    def _is_power(self):
        return any(name in self.op.title for name in POWERS)

    def _without_out(self):
        """The results of the call without out=, on copies; None for a refusal, or where the layout counts."""
        if "layout" in (self.op.record.gaps or {}):
            return None
        copies = {k: v for k, v in self.kwargs.items() if k != "out"}
        given = tensors(self.kwargs["out"])
        if not tensors([self.args, copies]) or any(t.is_meta for t in [*given, *tensors([self.args, copies])]):
            return None  # a factory takes dtype and device from its target
        return self._call(*_copied(self.args, copies), quiet=True)

    def _compare(self, expected, got):
        """Fault for a target that holds something else than the result."""
        for want, target in zip(tensors(expected), got):
            if want.shape != target.shape:
                raise Fault(f"out= has shape {tuple(target.shape)}, the result {tuple(want.shape)}")
            if want.dtype == target.dtype and _is_apart(target) and not compare.same_bits([target.detach()], [want]):
                raise Fault("out= holds something else than the result without it")

    def _check_kept(self, held):
        """Fault when a target was refused, and yet one was changed. A bad value met on the way is another matter."""
        if any(words in self.refusal for words in REFUSED) and not all(
            t.shape == before.shape and (t.is_meta or compare.same_bits([t.detach()], [before])) for t, before in held
        ):
            raise Fault(f"refused, and yet out= was changed: {self.refusal}")

    def _fit_outs(self):
        """Give some targets the shape and dtype of the result, in the layout that they have."""
        copies = {k: v for k, v in self.kwargs.items() if k != "out"}
        found = self._call(*_copied(self.args, copies), quiet=True)
        wanted = [t for t in tensors(found) if t.numel() <= 1 << 16]
        outs = tensors(self.kwargs["out"])
        if len(wanted) == len(outs):
            fresh = [w.detach().clone(memory_format=tg.contiguous_format) for w in wanted]
            fresh = [f.mT.contiguous().mT if f.dim() > 1 and i % 2 else f for i, f in enumerate(fresh)]
            alike = len({(f.dtype, f.shape) for f in fresh}) == 1 < len(fresh)
            if self.in_one_memory and alike and fresh[0].dim() < 64:
                fresh = tg.stack(fresh, -1).unbind(-1)
            self.kwargs["out"] = fresh[0] if isinstance(self.kwargs["out"], tg.Tensor) else tuple(fresh)
        return 1

    def _written(self):
        found = [self.kwargs.get("out")]
        if self.form == "inplace":
            found.append(self.args[0] if self.args else self.kwargs.get("self", self.kwargs.get("input")))
        with contextlib.suppress(KeyError, TypeError):
            found += sweep.written(self.op, self.args, self.kwargs)
        if {a.name for a in self.op.schema.args} & WRITES_ON_REQUEST:
            found += [self.args, self.kwargs]
        return found

    def _beside_meta(self, result):
        """Meta operands give the same shapes and dtypes."""
        given = tensors([self.args, self.kwargs])
        if not given or result is None or any(t.is_meta for t in given) or sweep.tagged(self.op, "data_dependent"):
            return 0
        swap = lambda v: values.on_meta(v) if isinstance(v, tg.Tensor) else v
        args, kwargs = _mapped(self.args, swap), {k: _mapped(v, swap) for k, v in self.kwargs.items()}
        real = tensors(result)
        if not real:
            return 0
        try:
            fake = tensors(_found(self.target)(*args, **kwargs))
        except Exception as error:
            if isinstance(error, NotImplementedError) or "they have no data" in str(error):
                return 1  # what comes out depends on the values
            raise Fault(f"meta operands are refused, real ones are not: {type(error).__name__}: {error}") from error
        facts = [[(tuple(t.shape), t.dtype) for t in found] for found in (real, fake)]
        if facts[0] != facts[1]:
            raise Fault(f"meta gives {facts[1]}, real {facts[0]}")
        return 1

    def _differentiate(self, result):
        roots = [t for t in tensors(result) if t.requires_grad and not t.is_meta and t.numel() <= 1 << 16]
        leaves = [t for t in tensors([self.args, self.kwargs]) if t.requires_grad]
        if not roots or not leaves:
            return
        try:
            ones = [tg.ones_like(r) for r in roots]
            found = tg.autograd.grad(roots, leaves, ones, allow_unused=True, create_graph=False)
        except Exception as error:
            refused(error, self.small)
            return
        for leaf, g in zip(leaves, found):
            if g is not None and (g.shape != leaf.shape or g.dtype != leaf.dtype):
                raise Fault(f"gradient {tuple(g.shape)} {g.dtype} of an input {tuple(leaf.shape)} {leaf.dtype}")
        touch(list(found))


def _is_apart(t):
    """Whether each element has a place of its own, so that the tensor can hold any values."""
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(t.stride(), t.shape) if size > 1):
        if step <= reach:
            return False
        reach += step * (size - 1)
    return True


def _holds_large(*values):
    """Whether an integer tensor holds numbers that may be meant as sizes or counts."""
    whole = [t for t in tensors(values) if not (t.is_meta or t.is_floating_point() or t.is_complex() or not t.numel())]
    return not all(nonsense.is_small(t.flatten()[:12].tolist()) and t.max() < 1000 for t in whole if t.dtype != tg.bool)


def _share(rng, named):
    """Let some operands be windows on the memory of others."""
    names = [k for k, v in named.items() if isinstance(v, tg.Tensor)]
    if len(names) > 1 and rng.random() < 0.15:
        one, two = rng.sample(names, 2)
        named[two] = values.relative(rng, named[one])


def _out(rng, inputs):
    chance = rng.random()
    if inputs and chance < 0.5:
        return values.relative(rng, rng.choice(inputs))
    if chance < 0.55:
        return nonsense.other(rng)
    return values.dressed(rng, values.laid_out(rng, values.tensor(rng)))


def _forms(op):
    """Words of: function method inplace out; the private ones have the first alone."""
    kinds = registry.variants(op.record)
    forms = ["function"] if {"function", "method"} & set(kinds) or not kinds else []
    return forms + [f for f in ("method", "inplace", "out") if f in kinds and _spelling(op, f)]


def _spelling(op, form):
    name, overload = op.schema.name, op.schema.overload or "default"
    if form == "method":
        return f"tg.Tensor.{name}" if hasattr(tg.Tensor, name) else None
    if form == "out":
        found = [p for p in registry.prefixes(op.record) if p + name in registry.functions]
        return f"tg.{found[0]}{name}" if found else None
    return f"tg.ops.aten.{name}{'_' * (form == 'inplace')}.{overload}"


def _found(spelling):
    """What a spelling names; not by eval, since an overload may be called `from`."""
    return functools.reduce(getattr, spelling.split(".")[1:], tg)


def _split(rng, schema, named):
    """(args, kwargs) of a call, with some arguments by keyword, and now and then one too many."""
    args, kwargs = [], {}
    for a in schema.args:
        if a.name not in named:
            continue
        in_order = not a.kwarg_only and not kwargs and len(args) == schema.args.index(a)
        if in_order and (rng.random() < 0.9 or a.type == "Tensor"):
            args.append(named[a.name])
        else:
            kwargs[a.name] = named[a.name]
    kwargs.update({k: v for k, v in named.items() if k not in {a.name for a in schema.args}})
    if rng.random() < 0.01:
        kwargs["surplus"] = 1
    return args, kwargs


def _mapped(value, change):
    """A value with something done to its leaves; lists and tuples keep their kind."""
    if type(value) in (list, tuple):
        return type(value)(_mapped(v, change) for v in value)
    return change(value)


def _copied(args, kwargs):
    copy = lambda v: v.detach().clone() if isinstance(v, tg.Tensor) else v
    return _mapped(list(args), copy), {k: _mapped(v, copy) for k, v in kwargs.items()}


def case(rng):
    """A random call."""
    return Call(rng)
