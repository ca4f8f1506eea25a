# cython: language_level=3, wraparound=True, boundscheck=True
"""The level behind vmap: tensors with one dimension more than the program sees.

A carried value stands for a tensor whose dimension 0 is the batch. Each op is carried out once for all of the batch, by
the rule of its record (rules.py); a value that no batched one went into stays as it is.

Rejected: the batch at any dimension, told with each value. A view moves it to the front for nothing, and each rule has
one layout to think of.
"""

from tinygrad_ext.core.data.tensor cimport Carried

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.core.call.levels import OpForm, active_levels
from tinygrad_ext.ops.shapes import wrapped

from .carrying import Pointwise, Rows
from .draws import check_write
from .nesting import above, before_write
from .rules import functional, host, rule_of

_DATA_DEPENDENT = (
    "__bool__",
    "__int__",
    "__float__",
    "__complex__",
    "__index__",
    "item",
    "tolist",
    "numpy",
    "__array__",
)
_OF_VALUE = ("requires_grad", "is_leaf", "is_complex", "is_floating_point", "is_inference", "is_conj", "is_neg")


class Batch(Rows):
    """Carries tensors for one call of vmap."""

    sees_draws = True

    def __repr__(self):
        return f"vmap over {self.size}"

    # ---- values ----------------------------------------------------------------------------------------------------

    def any_owned(self, args):
        return any(
            (type(a) is Carried and a.level is self) or (type(a) in (list, tuple) and self.any_owned(a)) for a in args
        )

    # ---- operations ------------------------------------------------------------------------------------------------

    rule_of = staticmethod(rule_of)

    def process_other(self, operation, args):
        if not isinstance(operation, OpForm):
            return host(self, operation, args)
        op = operation.op
        target = args[0] if operation.kind == "inplace" else args[-1]
        if operation.draws:
            if not check_write(self, op, target, args):
                return NotImplemented
        else:
            self.check_target(operation, target, args)
        if op.record.view and operation.kind == "inplace":
            return self.moved(target, op, args)
        rule = rule_of(op)
        if type(rule) is Pointwise and operation.kind == "inplace":
            rule.write(operation, self, args)
            return target
        given = args if operation.kind == "inplace" else args[:-1]
        # what the op computes, composite or not, is written to the memory of the target
        result = self.resume(functional(op), *before_write(self, target, given))
        for to, new in zip(target, result) if isinstance(target, (tuple, list)) else ((target, result),):
            to.value.copy_(self.whole(new))
        return target

    def check_target(self, operation, target, args):
        if self.any_owned((target,)):
            return
        which = next(
            (a.name for a, v in zip(operation.schema.args, args) if v is not target and self.any_owned((v,))), ""
        )
        raise RuntimeError(
            f"vmap: {operation.name}(self, *extra_args) is not possible because there exists a Tensor `{which}` in "
            "extra_args that has more elements than `self`. This happened due to it being vmapped over but `self` not "
            "being vmapped over in a vmap. Please use the out-of-place operator, or write to memory made from a "
            "batched tensor, as new_zeros() or zeros_like() give it."
        )

    def moved(self, target, op, args):
        """`t_()` and the like: the value shows its memory in another shape from now on."""
        tensor = rule_of(op)(self, op, args)
        self.move(target, tensor, tensor.shape[1:])
        return target

    # ---- what is no operation --------------------------------------------------------------------------------------

    def read(self, value, name, args):
        if name in _OF_VALUE:
            found = getattr(value.value, name)
            return found(*args) if callable(found) else found
        if name == "is_contiguous":
            # of one sample, wherever the batch lies in memory; an order of channels is asked of the whole
            return _in_order(value.value) if not args else value.value.is_contiguous(*args)
        if name == "storage_offset":
            return value.value.storage_offset()  # of the first sample
        if name == "stride":
            strides = value.value.stride()[1:]
            return strides if not args or args[0] is None else strides[wrapped(args[0], len(strides))]
        if name == "grad_fn":
            return value.value.grad_fn
        if name == "__repr__":
            return f"BatchedTensor(lvl={self.at_number()}, bdim=0, value=\n    {value.value!r}\n)"
        if name == "data":
            raise RuntimeError(
                "accessing `data` under vmap transform is not allowed: derivatives would not see what is computed. Use "
                ".detach()"
            )
        if name == "__deepcopy__":
            return self.wrap(value.value.clone())
        if name in _DATA_DEPENDENT:
            raise RuntimeError(_data_dependent(name))
        if name == "register_hook":
            return self.hooked(value, *args)
        if name == "requires_grad_":
            value.value.requires_grad_(*args)
            return value
        return super().read(value, name, args)

    def hooked(self, value, hook):
        return value.value.register_hook(lambda g: self.after_hook(hook(self.wrap(g))))

    def after_hook(self, grad):
        return None if grad is None else self.whole(grad)

    def at_number(self):
        """1 for the outermost vmap, as PyTorch counts them."""
        return 1 + active_levels().index(self) if self in active_levels() else 1

    # ---- derivatives -----------------------------------------------------------------------------------------------

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        """Of all samples at once: they are independent of each other."""
        for i, x in enumerate(inputs):
            if not self.owns(x):
                raise RuntimeError(
                    f"autograd.grad() inside vmap: input {i} is not batched, while the outputs are, so there would be "
                    "one gradient for each sample. Use func.grad inside vmap, which gives them"
                )
        outs = [self.lowered(o) for o in outputs]
        given = [None] * len(outs) if seeds is None else seeds
        ready = [o.new_ones(o.shape) if g is None else self.lowered(g) for o, g in zip(outs, given)]
        ins = [x.value for x in inputs]
        got = gradients_of(outs, ins, ready, True, create_graph, allow_unused)
        return [None if g is None else self.raised(g) for g in got]

    def backward(self, outputs, seeds, create_graph, inputs):
        raise RuntimeError(
            "backward() inside vmap would add up the gradients of all samples in one .grad: use func.grad there, or "
            "call backward() on what vmap returns"
        )

    def lowered(self, value):
        """The tensor behind a value, also behind one that a level above carries."""
        outer = above(self, value)
        return self.whole(value) if outer is None else outer.over(self.lowered, (value,), 1)

    def raised(self, tensor):
        """A tensor whose dimension 0 is the batch as the program sees it, also one that a level above carries."""
        outer = above(self, tensor)
        return self.wrap(tensor) if outer is None else outer.over(self.raised, (tensor,), -1)

    def over(self, function, values, gains=0):
        """function of the tensors behind the values, as the program sees it.

        gains: 1 where it puts a dimension in front of its result, which belongs behind the batch; -1 where it takes
            one off.
        """
        tensors = [self.whole(v).transpose(0, 1) if gains < 0 else self.whole(v) for v in values]
        result = function(*tensors)
        return self.wrap(result.transpose(0, 1) if gains > 0 else result)

    def parts(self, value):
        return (value.value,)


def _in_order(tensor):
    """Whether each sample of a batch lies in memory as a contiguous tensor does."""
    step = 1
    if 0 in tensor.shape[1:]:
        return True
    for size, stride in zip(reversed(tensor.shape[1:]), reversed(tensor.stride()[1:])):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _data_dependent(name):
    if name == "__bool__":
        return (
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow: there is one "
            "truth value for each sample. Use tg.where(condition, a, b), or compute it outside of vmap."
        )
    call = f".{name}()" if name in ("item", "tolist", "numpy") else f"{name.strip('_')}()"
    return (
        f"vmap: It looks like you're calling {call} on a Tensor. There is one value for each sample; keep to "
        "operations on "
        "tensors, or call it outside of vmap."
    )
