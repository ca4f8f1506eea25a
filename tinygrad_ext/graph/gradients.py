"""What a captured program does with gradients besides computing them: `requires_grad`, `backward()`, `.grad`, hooks.

Tensors from outside have these attributes themselves. While the program runs their `.grad` is what it says by now, a
carried value or None; afterwards they have the `.grad` and the flag again that they had. What a program changes of them
for good, and a graph could not, is refused.
"""

from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.data.slots import get_slot
from tinygrad_ext.core.grad.methods import hooks_of_leaf, put_grad

from .aliases import CaptureError
from .control_backward import Careful
from .ir import State, values_in
from .operands import as_name
from .types import TENSOR, optional


class GradFn:
    """What stands for the node of eager autograd that a carried value has none of."""

    def __init__(self, value):
        self.value = value

    def name(self):
        return f"captured %{self.value.name}"

    def __repr__(self):
        return f"<{self.name()}>"

    def __getattr__(self, name):
        raise CaptureError(
            f"grad_fn.{name}: there are no nodes of eager autograd while a graph is captured. Use hooks on tensors, or "
            "full backward hooks of modules, with backward() inside of what is captured"
        )


class Gradients:
    """The half of a Reader that answers for gradients. Needs of the class it is part of: capture.

    Attributes:
        swapped: id of a tensor -> (tensor, its .grad before, its .grad now).
        flags: id of a tensor from outside -> (tensor, its requires_grad before).
        given: ids of Values that are the .grad of something.
        new_grads: (State, tensor whose .grad it becomes).
        derived: whether a backward pass ran that gives back what it needs.
        registered: (hooks, handle, whether the tensor is carried, line) of those that the program put on tensors.
        unheard: lines of calls of modules with hooks on their gradients.
    """

    def __init__(self):
        self.swapped, self.flags, self.given = {}, {}, set()
        self.new_grads, self.registered, self.unheard = [], [], []
        self.derived = False

    # ---- requires_grad ---------------------------------------------------------------------------------------------

    def read_requires_grad(self, tensor):
        return id(self.capture.traced(tensor).value) in self.capture.needs

    def read_is_leaf(self, tensor):
        traced = self.capture.traced(tensor)
        return id(traced.value) in self.capture.leaves or id(traced.value) not in self.capture.needs

    def read_grad_fn(self, tensor):
        return None if self.read_is_leaf(tensor) else GradFn(self.capture.traced(tensor).value)

    def read_requires_grad_(self, tensor, on=True):
        self.require(tensor, on)
        return tensor

    def require(self, tensor, on):
        """Let a leaf need a gradient from now on, or none; what was done with it before stays as it is."""
        capture, traced = self.capture, self.capture.traced(tensor)
        if on == (id(traced.value) in capture.needs):
            return
        if not on and id(traced.value) not in capture.leaves:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if on and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            raise RuntimeError(
                f"only Tensors of floating point and complex dtype can require gradients: not {tensor.dtype}"
            )
        if not on:
            traced.root.awake = traced.value
            self.show_as(traced, capture.without_grad(traced.value), None)
        elif traced.root.awake is not None:
            self.show_as(traced, traced.root.awake, tensor)
            traced.root.awake = None
        else:
            used = any(v is traced.value for entry in capture.tape for v in values_in(entry.node.args))
            value = capture.detached_anew(traced.value) if used else traced.value
            capture.needs.add(id(value))
            capture.leaves[id(value)] = tensor
            self.show_as(traced, value, tensor)

    def show_as(self, traced, value, leaf):
        traced.value = value
        if not traced.path:
            traced.root.value = value
            traced.root.leaf = None if leaf is None else self.capture.leaf(leaf)

    def read_detach_(self, tensor):
        capture, traced = self.capture, self.capture.traced(tensor)
        if any(step.op != "aten::detach" for step in traced.path):
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        if id(traced.value) in capture.needs:
            self.show_as(traced, capture.without_grad(traced.value), None)
        return tensor

    # ---- hooks -----------------------------------------------------------------------------------------------------

    def read_retain_grad(self, tensor):
        if not self.read_requires_grad(tensor):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.read_is_leaf(tensor):
            return
        self.capture.retained.setdefault(id(self.capture.traced(tensor).value), tensor)

    def read_retains_grad(self, tensor):
        return id(self.capture.traced(tensor).value) in self.capture.retained

    def read_register_hook(self, tensor, hook):
        value = self.capture.traced(tensor).value
        if id(value) not in self.capture.needs:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        hooks = self.capture.hooks.setdefault(id(value), [])
        handle = get_slot("handle")(hooks, hook)
        self.registered.append((hooks, handle, self.capture.owns(tensor), user_line()))
        return handle

    def read_register_post_accumulate_grad_hook(self, tensor, hook):
        raise CaptureError(
            "register_post_accumulate_grad_hook: a hook that a program puts on a tensor each time it is called is not "
            "captured; register it once, outside of what is captured"
        )

    def check_hooks(self):
        """Refuse hooks that a graph would lose: those that stay on tensors from outside, and those that a derivative
        outside of the graph would have to call."""
        if self.unheard and not self.derived:
            raise CaptureError(
                "the backward hooks of a module would be lost, because its gradient is computed outside of what is "
                f"captured ({self.unheard[0]}). Capture backward() too, remove them, or trace under no_grad()"
            )
        for hooks, handle, inner, line in self.registered:
            if (not inner or not self.derived) and any(number == handle.id for number, _ in hooks):
                raise CaptureError(
                    f"register_hook: the hook of {line or 'the program'} would be lost, because "
                    + (
                        "the gradient that it is for is computed outside of what is captured. Capture backward() too, "
                        "or write the hook as the backward of an autograd.Function"
                        if inner
                        else "each call puts another one on a tensor from outside. Register it once, outside of what "
                        "is captured, or remove() it"
                    )
                )

    # ---- backward --------------------------------------------------------------------------------------------------

    def read_backward(self, tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        self.capture.resume(self.backward, (tensor,), (gradient,), create_graph, inputs)

    def backward(self, outputs, seeds, create_graph=False, inputs=None):
        """Add the gradients into `.grad` of the leaves, or of `inputs` alone."""
        capture = self.capture
        wanted = None if inputs is None else {id(capture.traced(t).value): t for t in inputs}
        passed = self.passed(outputs, seeds, create_graph, wanted)
        filled = {**capture.leaves, **capture.retained} if wanted is None else wanted
        for key, leaf in list(filled.items()):
            if key in passed.grads:
                grad = passed.hooked(passed.values[key]) if key in capture.leaves else passed.grads[key]
                self.accumulate(leaf, grad, create_graph)

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        """Gradients of the inputs, None for those that no output depends on."""
        values = [self.capture.traced(t).value for t in inputs]
        passed = self.passed(outputs, seeds, create_graph, {id(v) for v in values})
        for value in values:
            passed.hooked(value)
        got = [passed.grads.get(id(v)) for v in values]
        if not allow_unused and any(g is None for g in got):
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                f"if this is the desired behavior. It is input number {got.index(None)}."
            )
        return got

    def passed(self, outputs, seeds, create_graph, wanted):
        self.derived = self.derived or not create_graph
        values = [self.capture.traced(t).value for t in outputs]
        for i, value in enumerate(values):
            if id(value) not in self.capture.needs:
                raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        ready = [self.seed(t) if s is None else s for t, s in zip(outputs, seeds)]
        return Careful(self.capture, create_graph).run(values, ready, wanted)

    def seed(self, tensor):
        if self.capture.traced(tensor).example.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return self.capture.call("aten::ones_like", tensor, None, None, None, None, False, None)

    # ---- .grad -----------------------------------------------------------------------------------------------------

    def read_grad(self, tensor):
        return self.look_at_grad(tensor)[2]

    def accumulate(self, leaf, grad, create_graph):
        if not self.capture.resume(lambda: leaf.requires_grad):
            return  # frozen since the forward
        old = self.capture.resume(lambda: leaf.grad)
        if create_graph:
            new = grad.clone() if old is None else self.capture.resume(lambda: old + grad)
            self.set_grad(leaf, new if self.read_requires_grad(new) else new.detach())
        elif old is None:
            found = self.capture.traced(grad)
            shared = found.path or id(found.value) in self.given or not found.example.is_contiguous()
            self.given.add(id(found.value))
            self.set_grad(leaf, grad.detach().clone() if shared else grad.detach())
        else:
            with no_grad():
                self.capture.resume(old.add_, grad)
        if not self.capture.owns(leaf):
            for hook in hooks_of_leaf(leaf)[1]:
                self.capture.resume(hook, leaf)

    def look_at_grad(self, leaf):
        """(tensor, its `.grad` before, and now). That one from outside or an argument has one is remembered: the graph
        holds for that alone."""
        if id(leaf) in self.swapped:
            return self.swapped[id(leaf)]
        argument = self.capture.arguments.get(id(leaf))
        if argument is None and self.capture.owns(leaf):
            return leaf, None, None
        tensor = leaf if argument is None else argument.tensor
        before = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        if argument is not None and before is not None:
            self.capture.names[id(before)] = f"{argument.name}.grad", "grad"
        self.swapped[id(leaf)] = found = leaf, before, before
        return found

    def set_grad(self, leaf, grad):
        """Let `.grad` be a carried value, or None, until the capture ends."""
        self.swapped[id(leaf)] = leaf, self.look_at_grad(leaf)[1], grad
        if not self.capture.owns(leaf):
            put_grad(leaf, grad)

    def name_of(self, leaf):
        argument = self.capture.arguments.get(id(leaf))
        if argument is None:
            return f"{self.capture.outside(leaf).root.state.name}.grad"
        if argument.tensor.grad_fn is not None:
            raise CaptureError(
                f"the argument {argument.name} is no leaf, so its gradient goes on outside of what is captured. Take "
                "autograd.grad, or pass its detach()"
            )
        return f"{argument.name}.grad"

    # ---- the end ---------------------------------------------------------------------------------------------------

    def finish(self):
        """Say in the graph what `.grad` of tensors from outside is afterwards."""
        self.check_hooks()
        for tensor, before in self.flags.values():
            if tensor.requires_grad is not before:
                raise CaptureError(
                    f"requires_grad of a tensor of shape {list(tensor.shape)} from outside is another after the "
                    "program than before it, which a graph cannot do. Change it outside of what is captured"
                )
        for leaf, before, now in self.swapped.values():
            if now is before or (self.capture.owns(leaf) and id(leaf) not in self.capture.arguments):
                continue
            name = self.name_of(leaf)
            if before is not None and id(before) in self.capture.roots:
                state = self.capture.roots[id(before)].root.state
            else:
                state = State(name, "grad", self.capture.graph.value(optional(TENSOR), None, None, as_name(name)))
                self.capture.graph.state.append(state)
            state.new = None if now is None else self.capture.lift(now)
            self.new_grads.append((state, leaf))

    def restore(self):
        """Give tensors from outside the `.grad` and the flag that they had."""
        for leaf, before, _ in self.swapped.values():
            if not self.capture.owns(leaf):
                put_grad(leaf, before)
        for tensor, before in self.flags.values():
            tensor.requires_grad = before
