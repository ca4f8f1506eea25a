"""The half of a Capture that knows memory: windows are brought up to date when they are read, and writing to one is a
new value of its root (see aliases.py)."""

from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor

from .aliases import Traced, put_back
from .symbols import hint_of


class CaptureError(RuntimeError):
    """The program does something that a graph cannot hold."""


class Windows:
    """Needs of the class it is part of: graph, block, needs, leaves, show(), call(), resume(), outside()."""

    # ---- looking ---------------------------------------------------------------------------------------------------

    def owns(self, o):
        return getattr(o, "level", None) is self and isinstance(o, Tensor)

    def traced(self, tensor):
        """The window behind a tensor, up to date."""
        found = tensor.value if self.owns(tensor) else self.outside(tensor)
        if found.version != found.root.version:
            whole = self.replay_path(found)
            found.value, found.example, found.version = whole.value, whole.example, found.root.version
        return found

    def replay_path(self, window):
        """A window made anew from what its root holds now."""
        whole = Traced(window.root)
        for step in window.path:
            whole = self.resume(lambda w=whole, s=step: self.traced(self.replay(w, s)))
        return whole

    def seen_anew(self, target):
        """A window that is about to be written to, made anew: the gradient that goes back through it then arrives with
        the rest of what the write gives, as in eager mode, where one node does both."""
        traced = self.traced(target)
        if traced.path and is_grad_enabled() and id(traced.root.value) in self.needs:
            return self.show(self.replay_path(traced))
        return target

    def same_window(self, a, b):
        """Whether two carried tensors show the same elements of the same memory."""
        a, b = self.traced(a), self.traced(b)
        return a.root is b.root and a.path == b.path

    # ---- writing ---------------------------------------------------------------------------------------------------

    def assign(self, target, new, operation):
        """Let target hold the elements of `new`, a Carried."""
        if tuple(map(hint_of, new.shape)) != tuple(self.traced(target).example.shape):
            if operation.kind == "inplace":
                raise RuntimeError(
                    f"output with shape {list(self.traced(target).example.shape)} doesn't match the broadcast shape "
                    f"{[hint_of(n) for n in new.shape]}"
                )
            raise CaptureError(
                f"{operation.name}: out= of another shape is resized, which a graph cannot do. Give it that shape"
            )
        if new.dtype != target.dtype:
            new = new.to(target.dtype)
        traced = self.traced(target)
        if traced.root.leaf is not None and is_grad_enabled() and id(traced.value) in self.needs:
            if not traced.path:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        self.replace(traced, new)

    def replace(self, traced, new):
        """Replace a window by new; the root has a new value then."""
        root, wholes = traced.root, [Traced(traced.root)]
        apart = any(step.op == "aten::detach" for step in traced.path)
        unseen = apart or not is_grad_enabled()
        sees = (id(root.value) in self.needs and root.leaf is None) or id(self.traced(new).value) in self.needs
        if apart and sees and is_grad_enabled():
            raise CaptureError(
                "memory that a detach() or .data shares with what needs a gradient is written to, and autograd "
                "sees the two differently; that is not captured. Write to the tensor itself, or "
                "to a clone() of the detached one"
            )
        for step in traced.path[:-1]:
            wholes.append(self.traced(self.replay(wholes[-1], step)))
        part = new
        for whole, step in zip(reversed(wholes), reversed(traced.path)):
            part = put_back(self, step, self.show(whole), part)
        found = self.traced(part)
        root.value, root.example = found.value, found.example
        root.version += 1
        if not traced.path:
            traced.value, traced.example, traced.version = root.value, root.example, root.version
        if root.leaf is not None and unseen:
            value = self.fresh(root.value)
            root.value = value
            self.needs.add(id(value))
            self.leaves[id(value)] = root.leaf.tensor

    def fresh(self, value):
        """Another name for a value, so that gradients of the two are told apart."""
        node = self.graph.make(self.block, "prim::cast", (value,), (value.type,), line=user_line())
        node.outputs[0].hint = value.hint
        return node.outputs[0]

    def replay(self, whole, step):
        results = self.call(step.op, self.show(whole), *step.args)
        return results if step.index is None else results[step.index]

    def move_window(self, target, op, args):
        """`t_()` and the like."""
        moved = self.traced(self.compute_op(op, args))
        traced = self.traced(target)
        traced.path, traced.value, traced.example = moved.path, moved.value, moved.example
        raise CaptureError(
            f"{op.name}_ changes the shape of a tensor in place, which is not captured: use the form without '_'"
        )
