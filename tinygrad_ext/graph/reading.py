"""What a captured program asks of tensors besides ops: sizes, gradients, attributes, values.

Sizes are symbols. Elements are refused, with the line and the ways out. `backward()` and what surrounds it run on the
tape.
"""

import sys

from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.core.data.dtype import Size
from tinygrad_ext.core.data.tensor import Tensor

from .aliases import CaptureError
from .function_nodes import capture_function
from .gradients import Gradients
from .layouts import Layouts

_WAYS_OUT = {
    "__bool__": "torch.where, or jit.script for an if that depends on data",
    "__iter__": "unbind(), or jit.script for a loop",
    "item": "a 0-dim tensor in the place of the number",
    "tolist": "the tensor itself",
}


_ELEMENTS = {
    "tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "__contains__",
    "data_ptr", "__dlpack__", "__reduce_ex__", "__deepcopy__",
}  # fmt: skip

_OUTSIDE = {"data", "register_hook", "register_post_accumulate_grad_hook"}
_ONCE_KNOWN = {"requires_grad", "is_leaf", "grad_fn", "retain_grad", "retains_grad"}
_LYING = {"stride", "is_contiguous", "storage_offset", "is_conj", "is_neg"}
_REFUSED = {"set_", "resize_", "share_memory_", "apply_", "__setstate__"}


class Unreached(CaptureError):
    """An optimizer that nobody said to belong to the program updates parameters.

    Attributes: owners: what the methods belong to that are running, the innermost first.
    """

    def __init__(self, message):
        super().__init__(message)
        self.owners, frame = [], sys._getframe(1)
        while frame is not None:
            self.owners.append(frame.f_locals.get("self"))
            frame = frame.f_back


class Sizes(Size):
    """The shape of a captured tensor: a tuple of symbols."""

    def numel(self):
        total = 1
        for n in self:
            total = n * total
        return total


class Reader(Gradients, Layouts):
    """Answers for one Capture."""

    def __init__(self, capture):
        Gradients.__init__(self)
        Layouts.__init__(self)
        self.capture = capture

    def sizes(self, traced):
        rank = traced.example.dim()
        return tuple.__new__(Sizes, [self.capture.size(traced, d) for d in range(rank)])

    def read(self, tensor, name, args):
        plain = name.strip("_") if name.startswith("__") else name
        answer = getattr(self, f"read_{plain}", None)
        if answer is not None:
            return answer(tensor, *args)
        if name in _ELEMENTS:
            self.refuse(name)
        return NotImplemented

    def read_outside(self, tensor, name, args):
        """The same of a tensor that was there before; what it answers itself is NotImplemented."""
        if name in _OUTSIDE or (name in _ONCE_KNOWN and id(tensor) in self.capture.roots):
            return self.read(tensor, name, args)
        if name == "grad":
            self.look_at_grad(tensor)
        elif name in _LYING:
            self.look_at_memory(tensor, name, args)
        elif name in ("requires_grad_", "detach_"):
            if not tensor.is_leaf:
                raise CaptureError(f"{name}() of a tensor from outside that is no leaf is not captured")
            self.flags.setdefault(id(tensor), (tensor, tensor.requires_grad))
            self.require(tensor, name == "requires_grad_" and (not args or args[0]))
        elif name in _REFUSED:
            raise CaptureError(f"{name}() of a tensor from outside is not captured: do it outside of what is captured")
        elif name in _ELEMENTS and name != "data_ptr":
            self.refuse(name)
        return NotImplemented

    def refuse(self, name):
        way = _WAYS_OUT.get(name, "tensors instead of numbers, or compute it outside")
        where = user_line()
        raise CaptureError(
            f"{name}() reads the elements of a tensor while a graph is captured, and the graph would keep this answer "
            f"for all inputs. Use {way}." + (f" ({where})" if where else "")
        )

    # ---- sizes -----------------------------------------------------------------------------------------------------

    def read_shape(self, tensor):
        return self.sizes(self.capture.traced(tensor))

    def read_size(self, tensor, dim=None):
        shape = self.read_shape(tensor)
        return shape if dim is None else shape[dim]

    def read_len(self, tensor):
        if tensor.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self.read_shape(tensor)[0])

    def read_numel(self, tensor):
        return self.read_shape(tensor).numel()

    read_nelement = read_numel

    def read_device(self, tensor):
        return self.capture.traced(tensor).example.device

    def read_repr(self, tensor):
        traced = self.capture.traced(tensor)
        return f"<captured %{traced.value.name}: {list(traced.example.shape)}, {tensor.dtype}>"

    # ---- values ----------------------------------------------------------------------------------------------------

    def read_data(self, tensor):
        return self.capture.resume(tensor.detach)

    def read_item(self, tensor):
        """A number of the graph: it may go into ops and arithmetic, and is refused where Python decides by it."""
        found = self.capture.suspend(self.capture.compute_op, ops["aten::item"], (tensor,))
        return self.capture.compute("prim::int", int, found) if type(found.hint) is int else found  # fit for a size

    def read_unique(self, tensor, *args):
        return self.capture.suspend(self.capture.compute_op, ops["aten::unique"], (tensor, *args))

    def read_unique_consecutive(self, tensor, *args):
        return self.capture.suspend(self.capture.compute_op, ops["aten::unique_consecutive"], (tensor, *args))

    def read_resize_(self, tensor, *size):
        """The tensor, where it has that size; another one would be of memory, which a graph does not know."""
        size = tuple(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
        if size != tuple(self.read_shape(tensor)):
            raise CaptureError(
                f"resize_() of a tensor of shape {list(tensor.shape)} to {list(size)} is not captured: reshape() it, "
                "take a part of it, or make one of that size with new_empty()"
            )
        return tensor

    def read_resize_as_(self, tensor, other):
        return self.read_resize_(tensor, *other.shape)

    def read_untyped_storage(self, tensor):
        raise CaptureError("untyped_storage() is not captured: in a graph no tensor has memory of its own")

    # ---- writing, and what is no op --------------------------------------------------------------------------------

    def write(self, tensor, name, new):
        """An attribute is set; NotImplemented where the tensor does it itself."""
        inner = self.capture.owns(tensor)
        if name == "grad":
            if not inner:
                self.look_at_grad(tensor)
            self.set_grad(tensor, new)
        elif name == "data":
            if not isinstance(new, Tensor):
                raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
            self.capture.resume(lambda: self.capture.assign_data(tensor, new.detach()))
        elif name == "requires_grad" and inner:
            self.require(tensor, new)
        elif name == "requires_grad":
            return self.read_outside(tensor, "requires_grad_", (new,))
        elif inner:
            raise RuntimeError(f"cannot set '{name}' of a tensor while a graph is captured")
        return NotImplemented if name not in ("grad", "data") and not inner else None

    def host(self, operation, args):
        if operation.name.startswith("function::"):
            return self.capture.resume(capture_function, self.capture, operation, args)
        answer = _HOST.get(operation.name)
        if answer is not None:
            return answer(self, operation, *args)
        raise NotImplementedError(f"{operation.name} is not captured yet: call it outside of what is captured")

    def zero_grad(self, operation, parameters, set_to_none):
        for p in parameters:
            if p.grad is not None and set_to_none:
                self.set_grad(p, None)
            elif p.grad is not None:
                self.capture.resume(p.grad.zero_)

    def open(self, operation, *args):
        """A step of the host in the ops that it consists of."""
        unknown = [p for p in args[0] if id(p) not in self.capture.optimized]
        if unknown:
            raise Unreached(
                f"{operation.name}: an optimizer updates parameters of shape {list(unknown[0].shape)}, and the "
                "function that is captured does not reach it by a variable, so its state could not be kept. Let the "
                "function use it by a name of its own, in jit.trace"
            )
        return self.capture.resume(operation.opened or operation.function, *args)


_HOST = {"optim::zero_grad": Reader.zero_grad, "optim::sgd": Reader.open, "optim::adam": Reader.open}
