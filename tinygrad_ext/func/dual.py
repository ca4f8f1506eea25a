"""The level behind forward mode: tensors with a tangent, the derivative along one direction.

Each operation is carried out on the primals, and what its record says gives the tangent of the result (tangents.py). No
tangent stands for zeros: what nothing differentiable went into costs what it costs outside.

The level sees what is made without any dual value, too, and carries that without a tangent: memory made inside the
function may be written to with what has one (`out = zeros(3); out[0] = x`). What was made outside is captured, and
stays as it is.
"""

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.core.call.levels import OF_GEOMETRY, Observer, OpForm
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.registry import functions

from . import tangents
from .nesting import above, before_write, carriers

# what a dual tensor says as its primal does: what reads elements or memory, and the state of autograd
_OF_PRIMAL = frozenset(
    [
        "__bool__",
        "__int__",
        "__float__",
        "__complex__",
        "__index__",
        "__array__",
        "__contains__",
        "__dlpack__",
        "__reduce_ex__",
        "__deepcopy__",
        "item",
        "tolist",
        "numpy",
        "data",
        "data_ptr",
        "storage_offset",
        "stride",
        "untyped_storage",
        "is_contiguous",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "grad",
        "register_hook",
        "retain_grad",
        "_version",
    ]
)


class Pair:
    """What a dual tensor stands for.

    Attributes:
        primal: the value.
        loose: the tangent may share its memory with others than the views of this one.
        base, view: what this is a view of, and how tangents of that become tangents of this.
    """

    __slots__ = ("_found", "_tangent", "base", "loose", "primal", "view")

    def __init__(self, primal, tangent=None, base=None, view=None, loose=False):
        self.primal, self._tangent, self.base, self.view, self.loose = primal, tangent, base, view, loose
        self._found = None  # the tangent of the base that the tangent of a view was taken from

    @property
    def tangent(self):
        """The derivative, or None for zeros."""
        if self.base is not None:
            whole = self.base.tangent
            if whole is not self._found:
                self._found, self._tangent = whole, None if whole is None else self.view(whole)
        return self._tangent

    def own(self, incoming):
        """The tangent as memory for `incoming` to be written to, which views of this share and nobody else."""
        if self.base is not None:
            self.base.own(incoming)
            return self.tangent
        if self._tangent is None:
            self._tangent = _blank(incoming, self.primal)
        elif self.loose or not carriers(incoming) <= carriers(self._tangent):
            self._tangent = _blank(self._tangent + incoming.new_zeros(()), self.primal).copy_(self._tangent)
        self.loose = False
        return self._tangent

    def clear(self):
        """Zeros are written."""
        if self.base is None:
            self._tangent = None
        elif self.tangent is not None:
            self.own(self.tangent).zero_()


def _blank(like, primal):
    """Zeros in the order of a primal's memory, for each sample where `like` is batched."""
    strides = primal.stride()
    if any(s == 0 and n > 1 for s, n in zip(strides, primal.shape)):
        return like.new_zeros(primal.shape)
    return like.new_empty_strided(primal.shape, strides).zero_()


class Dual(Observer):
    """Carries pairs of a primal and its tangent for one forward pass.

    Attributes:
        resting: above zero while gradients are computed below the level, of which it should see nothing.
    """

    def __init__(self):
        self.known = OF_GEOMETRY

    def __repr__(self):
        return "forward-mode differentiation"

    # ---- values ----------------------------------------------------------------------------------------------------

    def owns(self, value):
        return type(value) is Carried and value.level is self

    def pair(self, primal, tangent=None):
        """A dual tensor."""
        return self.shown(Pair(primal, tangent))

    def shown(self, pair):
        primal = pair.primal
        # (it is no mere number, whatever autograd has to do with it: the flag says so where an op takes either)
        return self.carry(pair, primal.shape, primal.dtype, primal.device, requires_grad=True)

    def parts(self, value):
        pair = value.value
        return pair.primal, pair.tangent

    def primal(self, value):
        """A value without its tangent; of one that a level above carries, too."""
        if type(value) is not Carried:
            return value
        if value.level is self:
            return value.value.primal
        outer = above(self, value)
        return value if outer is None else outer.over(self.primal, (value,))

    def tangent(self, value):
        """The tangent of a value, or None for zeros; of one that a level above carries, too."""
        if type(value) is not Carried:
            return None
        if value.level is self:
            return value.value.tangent
        outer = above(self, value)
        return None if outer is None else outer.over(self.filled_tangent, (value,))

    def filled_tangent(self, value):
        found = self.tangent(value)
        return functions["zeros_like"](self.primal(value)) if found is None else found

    # ---- operations ------------------------------------------------------------------------------------------------

    def process(self, operation, args):
        if not isinstance(operation, OpForm):
            return tangents.host(self, operation, args)
        if operation.kind == "functional":
            return self.functional(operation, args)
        target = args[0] if operation.kind == "inplace" else args[-1]
        return (self.inplace if operation.kind == "inplace" else self.out)(operation, target, args)

    def functional(self, operation, args):
        op = operation.op
        duals = self.found(args, [])
        if not duals:
            return self.made(operation, args)
        rule = tangents.rule_of(op)
        if rule is None:
            return NotImplemented  # opened without tangents too: it may return a view, which is to be written to
        if not any(d.tangent is not None for d in duals):
            return self.untouched(operation, args, duals)
        if op.record.view:
            return self.viewed(operation, args, rule)
        primals = self.stripped(args)
        result, found = rule(operation, primals, self.derivatives(args))
        return self.joined(result, found, duals)

    def made(self, operation, args):
        """An operation on what nobody carries: memory made inside."""
        shares = operation.op.record.view or operation.op.name == "aten::detach"
        if shares or operation.composite or operation.reads or operation.mutates:
            return NotImplemented
        result = operation(*args)
        if isinstance(result, Tensor) and any(result is a for a in args):
            return result
        return self.joined(result, None, ())

    def untouched(self, operation, args, duals):
        """An operation on values of which none has a tangent."""
        if operation.op.record.view:
            return self.viewed(operation, args, tangents.rule_of(operation.op))
        return self.joined(operation(*self.stripped(args)), None, duals)

    def viewed(self, operation, args, rule):
        """Views, whose tangents are views of the tangent."""
        if not self.owns(args[0]):
            return operation(*self.stripped(args))  # like a dual one, but of memory that is captured
        base, rest = args[0].value, self.stripped(args[1:])
        view = lambda tensor: operation(tensor, *rest)
        result = view(base.primal)
        if not tangents.differentiable(operation.op):
            return self.joined(result, None, ())
        if isinstance(result, Tensor):
            return args[0] if result is base.primal else self.shown(Pair(result, None, base, view))
        return type(result)([self.shown(Pair(r, None, base, lambda t, i=i: view(t)[i])) for i, r in enumerate(result)])

    def joined(self, result, found, duals):
        """Results with their tangents, as the program sees them."""
        if isinstance(result, Tensor):
            if not (result.is_floating_point() or result.is_complex()):
                return result
            for d in duals:
                if d.primal is result:
                    return self.shown(d)  # the argument itself, whose memory may be written to by either name
            pair = Pair(result, found)
            if found is not None:
                shared = [d for d in duals if d.tangent is found]
                pair.loose = bool(shared) or type(found) is Carried or found._is_view()
                for d in shared:
                    root = d
                    while root.base is not None:
                        root = root.base
                    root.loose = True
            return self.shown(pair)
        if isinstance(result, (list, tuple)):
            row = [self.joined(r, None if found is None else found[i], duals) for i, r in enumerate(result)]
            return row if type(result) is list else tuple.__new__(type(result), row)
        return result

    def found(self, args, duals):
        """The pairs among arguments."""
        for a in args:
            if type(a) is Carried:
                if a.level is self:
                    duals.append(a.value)
            elif type(a) in (list, tuple):
                self.found(a, duals)
        return duals

    def stripped(self, args):
        """Arguments with primals for what is dual."""
        return [
            (a.value.primal if a.level is self else a)
            if type(a) is Carried
            else type(a)(self.stripped(a))
            if type(a) in (list, tuple)
            else a
            for a in args
        ]

    def derivatives(self, args):
        """The tangents of arguments, None where there is none."""
        return [
            (a.value.tangent if a.level is self else None)
            if type(a) is Carried
            else self.derivatives(a)
            if type(a) in (list, tuple) and a and any(isinstance(x, Tensor) for x in a)
            else None
            for a in args
        ]

    # ---- memory that is written to ---------------------------------------------------------------------------------

    def inplace(self, operation, target, args):
        op = operation.op
        duals = self.found(args, [])
        if not duals:
            return NotImplemented
        if isinstance(target, (list, tuple)):
            raise NotImplementedError(
                f"{operation.name}: not supported in forward mode; write to the tensors one by one"
            )
        if not self.owns(target):
            if target.is_floating_point() and any(d.tangent is not None for d in duals):
                raise RuntimeError(
                    f"{operation.name}: in forward mode this would write a value that has a tangent to a captured "
                    "Tensor, which was made outside and has none. Compute a new tensor, make the memory inside the "
                    "function, or pass it as an input"
                )
            return operation(*self.stripped(args))
        pair = target.value
        if op.record.view:
            return self.moved(target, operation, op, args)
        if op.name == "aten::detach":
            pair._tangent = pair.base = None
            return target
        primals = self.stripped(args)
        if not any(d.tangent is not None for d in duals) or "random" in (op.record.tags or ""):
            operation(*primals)
            pair.clear()
            return target
        result = self.resume(tangents.functional(op), *before_write(self, target, args))
        new, tangent = (self.primal(result), self.tangent(result))
        if tuple(new.shape) != tuple(target.shape) or tangents.cannot_cast(new.dtype, target.dtype):
            return operation(*primals)  # which says what is wrong
        pair.primal.copy_(new)
        if tangent is None:
            pair.clear()
        else:
            pair.own(tangent).copy_(tangent)
        return target

    def moved(self, target, operation, op, args):
        """`t_()` and the like: the value shows its memory in another shape from now on."""
        pair, rest = target.value, self.stripped(args[1:])
        view = lambda tensor: tangents.functional(op)(tensor, *rest)
        operation(pair.primal, *rest)
        made = Pair(pair.primal, None, Pair(pair.primal, pair.tangent, pair.base, pair.view, pair.loose), view)
        self.move(target, made, pair.primal.shape)
        return target

    def out(self, operation, target, args):
        duals = self.found(args, [])
        if not duals:
            return NotImplemented
        if any(d.tangent is not None for d in duals):
            raise NotImplementedError(
                f"Trying to use forward AD with {operation.name} that does not support it because it is an out= "
                "function"
            )
        operation(*self.stripped(args))
        return target

    # ---- what is no operation --------------------------------------------------------------------------------------

    def read(self, value, name, args):
        primal = value.value.primal
        if name == "__repr__":
            text = repr(primal)
            tangent = value.value.tangent
            return text if tangent is None else f"{text[:-1]}, tangent={tangent!r})"
        if name == "requires_grad_":
            primal.requires_grad_(*args)
            return value
        if name not in _OF_PRIMAL:
            return super().read(value, name, args)  # what is written in Python computes with the ops it calls
        found = getattr(primal, name)
        return found(*args) if callable(found) else found

    # ---- derivatives -----------------------------------------------------------------------------------------------

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        """Gradients with their tangents: mixed derivatives commute."""
        self.resting += 1
        try:
            return self._gradients(outputs, inputs, seeds, create_graph, allow_unused)
        finally:
            self.resting -= 1

    def _gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        values = [self.primal(o) for o in outputs]
        slopes = [self.tangent(o) for o in outputs]
        given = [None] * len(values) if seeds is None else list(seeds)
        ones = functions["ones_like"]
        weights = [ones(v) if s is None else self.primal(s) for v, s in zip(values, given)]
        bends = [None if s is None else self.tangent(s) for s in given]
        wanted = [self.primal(x) for x in inputs]

        def pulled(roots, weights, unused, keep):
            chosen = [(r, w) for r, w in zip(roots, weights) if r is not None and w is not None and r.requires_grad]
            if not chosen:
                return [None] * len(wanted)
            return gradients_of([r for r, _ in chosen], wanted, [w for _, w in chosen], keep, create_graph, unused)

        if not any(v.requires_grad for v in values):
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        got = pulled(values, weights, allow_unused, True)
        bent = pulled([*slopes, *values], [*weights, *bends], True, True)
        return [
            None if g is None and t is None else self.raised(_filled(g, x), t) for g, t, x in zip(got, bent, wanted)
        ]

    def raised(self, primal, tangent):
        """A dual tensor of parts that levels above may carry."""
        outer = above(self, primal, tangent)
        if outer is None:
            return self.pair(primal, tangent)
        return outer.over(self.raised, (primal, _filled(tangent, primal)))

    def over(self, function, values, gains=0):
        """A linear function of the primals, and of the tangents."""
        primals = [self.primal(v) for v in values]
        slopes = [self.tangent(v) for v in values]
        result = function(*primals)
        if all(t is None for t in slopes):
            return self.pair(result)
        return self.pair(result, function(*[_filled(t, p) for t, p in zip(slopes, primals)]))


def _filled(tensor, like):
    return functions["zeros_like"](like) if tensor is None else tensor
