"""What a captured program asks of tensors besides ops: sizes, gradients, attributes, values.

Sizes are symbols. Elements are refused, with the line and the ways out. `backward()` and what surrounds it run on the
tape.
"""

from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.core.data.dtype import Size
from tinygrad_ext.core.data.slots import get_slot
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.methods import put_grad

from .derive import Backward
from .function_nodes import capture_function
from .ir import State
from .operands import as_name
from .types import TENSOR, optional

_WAYS_OUT = {
    "__bool__": "torch.where, or jit.script for an if that depends on data",
    "__iter__": "unbind(), or jit.script for a loop",
    "item": "a 0-dim tensor in the place of the number",
    "tolist": "the tensor itself",
}


class Sizes(Size):
    """The shape of a captured tensor: a tuple of symbols."""

    def numel(self):
        total = 1
        for n in self:
            total = n * total
        return total


class Reader:
    """Answers for one Capture."""

    def __init__(self, capture):
        self.capture = capture
        self.swapped = {}  # id of a tensor -> (tensor, its .grad before, its .grad now)
        self.given = set()  # ids of Values that are the .grad of something
        self.new_grads = []  # (State, tensor whose .grad it becomes)
        self.derived = False  # whether a backward pass ran

    def sizes(self, traced):
        rank = traced.example.dim()
        return tuple.__new__(Sizes, [self.capture.size(traced, d) for d in range(rank)])

    def read(self, tensor, name, args):
        answer = getattr(self, f"read_{name.strip('_')}", None)
        if answer is not None:
            return answer(tensor, *args)
        if name in ("tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__", "__index__",
                    "__array__", "__contains__", "data_ptr", "__dlpack__", "__reduce_ex__"):  # fmt: skip
            self.refuse(name)
        return NotImplemented

    def refuse(self, name):
        way = _WAYS_OUT.get(name, "tensors instead of numbers, or compute it outside")
        where = user_line()
        raise RuntimeError(
            f"{name}() reads the elements of a tensor while a graph is captured, and the graph would keep this answer "
            f"for all inputs. Use {way}." + (f" (after {where})" if where else "")
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

    def read_stride(self, tensor, dim=None):
        found = self.capture.traced(tensor).example.stride()
        return found if dim is None else found[dim]

    def read_is_contiguous(self, tensor, *args):
        return self.capture.traced(tensor).example.is_contiguous(*args)

    def read_storage_offset(self, tensor):
        return self.capture.traced(tensor).example.storage_offset()

    def read_device(self, tensor):
        return self.capture.traced(tensor).example.device

    def read_repr(self, tensor):
        traced = self.capture.traced(tensor)
        return f"<captured %{traced.value.name}: {list(traced.example.shape)}, {tensor.dtype}>"

    # ---- gradients -------------------------------------------------------------------------------------------------

    def read_item(self, tensor):
        """A number of the graph: it may go into ops and arithmetic, and is refused where Python decides by it."""
        return self.capture.suspend(self.capture.compute_op, ops["aten::item"], (tensor,))

    def read_unique(self, tensor, *args):
        return self.capture.suspend(self.capture.compute_op, ops["aten::unique"], (tensor, *args))

    def read_unique_consecutive(self, tensor, *args):
        return self.capture.suspend(self.capture.compute_op, ops["aten::unique_consecutive"], (tensor, *args))

    def read_requires_grad(self, tensor):
        return id(self.capture.traced(tensor).value) in self.capture.needs

    def read_is_leaf(self, tensor):
        traced = self.capture.traced(tensor)
        return id(traced.value) in self.capture.leaves or id(traced.value) not in self.capture.needs

    def read_grad_fn(self, tensor):
        return None if self.read_is_leaf(tensor) else repr(self.capture.traced(tensor).value)

    def read_grad(self, tensor):
        return self.swapped.get(id(tensor), (None, None, None))[2]

    def read_data(self, tensor):
        return tensor.detach()

    def read_requires_grad_(self, tensor, on=True):
        value = self.capture.traced(tensor).value
        if on:
            self.capture.needs.add(id(value))
            self.capture.leaves.setdefault(id(value), tensor)
        else:
            self.capture.needs.discard(id(value))
        return tensor

    def read_retain_grad(self, tensor):
        self.capture.leaves.setdefault(id(self.capture.traced(tensor).value), tensor)

    def read_register_hook(self, tensor, hook):
        hooks = self.capture.hooks.setdefault(id(self.capture.traced(tensor).value), [])
        return get_slot("handle")(hooks, hook)

    def read_backward(self, tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        self.capture.resume(self.backward, (tensor,), (gradient,), create_graph, inputs)

    def backward(self, outputs, seeds, create_graph=False, inputs=None):
        """Add the gradients into `.grad` of the leaves, or of `inputs` alone."""
        passed = self.passed(outputs, seeds, create_graph)
        wanted = None if inputs is None else {id(self.capture.traced(t).value) for t in inputs}
        for key, leaf in list(self.capture.leaves.items()):
            if key in passed.grads and (wanted is None or key in wanted):
                passed.hooked(passed.values[key])
                self.accumulate(leaf, passed.grads[key])

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        """Gradients of the inputs, None for those that no output depends on."""
        passed = self.passed(outputs, seeds, create_graph)
        got = [passed.grads.get(id(self.capture.traced(t).value)) for t in inputs]
        if not allow_unused and any(g is None for g in got):
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                f"if this is the desired behavior. It is input number {got.index(None)}."
            )
        return got

    def passed(self, outputs, seeds, create_graph):
        self.derived = True
        values = [self.capture.traced(t).value for t in outputs]
        for i, value in enumerate(values):
            if id(value) not in self.capture.needs:
                raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        ready = [self.seed(t) if s is None else s for t, s in zip(outputs, seeds)]
        return Backward(self.capture, create_graph).run(values, ready)

    def seed(self, tensor):
        if self.capture.traced(tensor).example.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return self.capture.call("aten::ones_like", tensor, None, None, None, None, False, None)

    def accumulate(self, leaf, grad):
        old = leaf.grad
        if old is None:
            found = self.capture.traced(grad)
            shared = found.path or id(found.value) in self.given or not found.example.is_contiguous()
            self.given.add(id(found.value))
            self.set_grad(leaf, grad.detach().clone() if shared else grad.detach())
        else:
            self.capture.resume(old.add_, grad)

    def set_grad(self, leaf, grad):
        """Let `.grad` be a carried value, or None, until the capture ends."""
        before = self.swapped[id(leaf)][1] if id(leaf) in self.swapped else leaf.grad
        self.swapped[id(leaf)] = leaf, before, grad
        if not self.capture.owns(leaf):
            put_grad(leaf, grad)

    def finish(self):
        """Say in the graph what `.grad` of tensors from outside is afterwards."""
        for leaf, before, now in self.swapped.values():
            if now is not before and not self.capture.owns(leaf):
                name = f"{self.capture.outside(leaf).root.state.name}.grad"
                value = self.capture.graph.value(optional(TENSOR), None, None, as_name(name))
                new = None if now is None else self.capture.lift(now)
                state = State(name, "grad", value)
                state.new = new
                self.capture.graph.state.append(state)
                self.new_grads.append((state, leaf))

    def restore(self):
        """Give tensors from outside the `.grad` that they had."""
        for leaf, before, _ in self.swapped.values():
            if not self.capture.owns(leaf):
                put_grad(leaf, before)

    # ---- writing, and what is no op --------------------------------------------------------------------------------

    def write(self, tensor, name, new):
        if name == "grad":
            self.set_grad(tensor, new)
        elif name == "data":
            with_no_history = new.detach() if isinstance(new, Tensor) else new
            self.capture.replace(self.capture.traced(tensor), with_no_history)
        elif name == "requires_grad":
            self.read_requires_grad_(tensor, new)
        else:
            raise RuntimeError(f"cannot set '{name}' of a tensor while a graph is captured")

    def host(self, operation, args):
        if operation.name.startswith("function::"):
            return self.capture.resume(capture_function, self.capture, operation.function, args)
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
            raise RuntimeError(
                f"{operation.name}: an optimizer updates parameters of shape {list(unknown[0].shape)}, and the "
                "function that is captured does not reach it by a variable, so its state could not be kept. Let the "
                "function use it by a name of its own, in jit.trace"
            )
        return self.capture.resume(operation.opened or operation.function, *args)


_HOST = {"optim::zero_grad": Reader.zero_grad, "optim::sgd": Reader.open, "optim::adam": Reader.open}
