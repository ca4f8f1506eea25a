# cython: language_level=3, wraparound=True, boundscheck=True
"""The level behind forward mode: tensors with a tangent, the derivative along one direction.

Each operation is carried out on the primals, and what its record says gives the tangent of the result (tangents.py). No
tangent stands for zeros: what nothing differentiable went into costs what it costs outside.

The level sees what is made without any dual value, too, and carries that without a tangent: memory made inside the
function may be written to with what has one (`out = zeros(3); out[0] = x`). What was made outside is captured, and
stays as it is.
"""

from tinygrad_ext.core.data.tensor cimport Carried, Tensor

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.registry import functions

from . import tangents
from .nesting import above, before_write
from .pairing import Pair, Pairs

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
        "is_conj",
        "is_neg",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "grad",
        "register_hook",
        "retain_grad",
        "_version",
    ]
)


class Dual(Pairs):
    """Carries pairs of a primal and its tangent for one forward pass."""

    def __repr__(self):
        return "forward-mode differentiation"

    # ---- values ----------------------------------------------------------------------------------------------------

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

    def rule_of(self, op):
        return tangents.rule_of(op)

    def process_other(self, operation, args):
        if not hasattr(operation, "kind"):
            return tangents.host(self, operation, args)
        inplace = operation.kind == "inplace"
        return (self.inplace if inplace else self.out)(operation, args[0] if inplace else args[-1], args)

    def made(self, operation, args):
        """An operation on what nobody carries: memory made inside."""
        shares = operation.op.record.view or operation.op.name == "aten::detach"
        if shares or operation.composite or operation.reads or operation.mutates:
            return NotImplemented
        result = operation(*args)
        if isinstance(result, Tensor) and any(result is a for a in args):
            return result
        return self.joined(result, None, ())

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
            pair.detach()
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
        if name == "detach_":
            if value.value.base is not None:
                raise RuntimeError("Can't detach views in-place. Use detach() instead.")
            primal.detach_()
            value.value.detach()
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
        cdef list values = [self.primal(o) for o in outputs]
        cdef list slopes = [self.tangent(o) for o in outputs]
        cdef list wanted = [self.primal(x) for x in inputs]
        cdef list weights = [], bends = [], found = []
        for i in range(len(values)):
            seed = None if seeds is None else seeds[i]
            weights.append(functions["ones_like"](values[i]) if seed is None else self.primal(seed))
            bends.append(None if seed is None else self.tangent(seed))
        if not any([v.requires_grad for v in values]):
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        got = _pulled(values, weights, wanted, create_graph, allow_unused)
        bent = _pulled(slopes + values, weights + bends, wanted, create_graph, True)
        for i in range(len(wanted)):
            g, t = got[i], bent[i]
            found.append(None if g is None and t is None else self.raised(_filled(g, wanted[i]), t))
        return found

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


cdef list _pulled(list roots, list weights, list wanted, create_graph, unused):
    """The gradients of those roots that have one."""
    cdef list chosen = [], given = []
    for root, weight in zip(roots, weights):
        if root is not None and weight is not None and root.requires_grad:
            chosen.append(root)
            given.append(weight)
    return list(gradients_of(chosen, wanted, given, True, create_graph, unused)) if chosen else [None] * len(wanted)


cdef _filled(tensor, like):
    return functions["zeros_like"](like) if tensor is None else tensor
