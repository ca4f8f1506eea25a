"""The half of a Capture that knows memory: windows are brought up to date when they are read, and writing to one is a
new value of its root (see aliases.py)."""

import math

from tinygrad_ext.core.call.levels import user_line
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.grad.methods import set_geometry_from

from .aliases import CaptureError, SharedMemoryError, Traced, put_back
from .function_nodes import FollowEntry, follow
from .ir import State, Value, values_in
from .signature import signature_of
from .symbols import hint_of
from .trees import leaves_of
from .types import TENSOR


class Windows:
    """Needs of the class it is part of: graph, block, needs, leaves, show(), call(), resume(), outside()."""

    # ---- looking ---------------------------------------------------------------------------------------------------

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
        before, shown = root.value, traced.value
        if self.frozen is not None and root.value.node not in self.frozen[0].nodes:
            raise CaptureError(
                f"{self.frozen[1]} writes to a tensor that was there before it, which is not captured; return a new one"
            )
        if root.lent is not None:
            raise CaptureError(
                f"{root.lent}: what was returned lies in memory that was there before, and one of the two is "
                "written to; that is not captured. Return a clone()"
            )
        if apart:
            self.overwrite(root.value)
            if id(self.traced(new).value) in self.needs and is_grad_enabled():
                raise CaptureError(
                    "what needs a gradient is written to memory that a detach() or .data shares with another tensor, "
                    "and autograd sees the two differently; that is not captured. Write to a clone(), or write what "
                    "is detached, too"
                )
        for step in traced.path[:-1]:
            wholes.append(self.traced(self.replay(wholes[-1], step)))
        part = new
        for whole, step in zip(reversed(wholes), reversed(traced.path)):
            part = put_back(self, step, self.show(whole), part)
        found = self.traced(part)
        root.value, root.example = found.value, found.example
        root.version += 1
        if root.leaf is not None and unseen:
            value = self.fresh(root.value)
            self.followers.append((value, root.value, before))
            root.value = value
            self.needs.add(id(value))
            self.leaves[id(value)] = root.leaf.tensor
        elif apart and id(before) in self.needs:
            root.value = self.following(before, root.value)
        if not traced.path:
            traced.value, traced.example, traced.version = root.value, root.example, root.version
        elif unseen and id(shown) in self.leaves:  # a leaf that is a window of what it was detached from
            self.stay_leaf(traced, shown)

    def stay_leaf(self, traced, before):
        """Let a window whose memory was written to behind autograd's back be the leaf that it was."""
        now = self.traced(self.show(traced)).value
        value = self.fresh(now)
        self.followers.append((value, now, before))
        self.needs.add(id(value))
        self.leaves[id(value)] = self.leaves[id(before)]
        traced.value, traced.version = value, traced.root.version

    def following(self, before, now):
        """A value whose gradient goes where that of the value before goes."""
        value = self.fresh(now)
        self.followers.append((value, now, before))
        self.needs.add(id(value))
        self.tape.append(FollowEntry(value, before))
        return value

    def finish_followers(self):
        """Let the derivative outside of the graph find its way past what was written behind autograd's back."""
        for value, now, before in self.followers if not self.reader.derived else ():
            if id(before) in self.needs:
                follow(self, value.node, now, before)

    def assign_data(self, tensor, new):
        """`tensor.data = new`."""
        old = self.traced(tensor)
        if new.dtype != tensor.dtype or tuple(map(hint_of, new.shape)) != tuple(old.example.shape):
            raise CaptureError(
                f".data of a tensor of shape {list(old.example.shape)} and {tensor.dtype} is set to one of shape "
                f"{[hint_of(n) for n in new.shape]} and {new.dtype}; a graph takes the same shape and dtype only"
            )
        self.replace(self.traced(tensor.detach()), new)

    def overwrite(self, value):
        """Remember that memory is written to behind autograd's back: derivatives that read it then read what is there
        by now in eager mode, and in a graph what was there."""
        if self.based[0] > len(self.tape):  # a part of it was taken back
            self.based = 0, {}
        seen, values = self.based
        for entry in self.tape[seen:]:
            for v in (*values_in(entry.node.args), *entry.made):
                values.setdefault(id(_base_of(v)), []).append(v)
        self.based = len(self.tape), values
        for v in values.get(id(_base_of(value)), ()):
            self.overwritten.setdefault(id(v), user_line() or "the program")

    def check_memory(self):
        """Refuse what a graph would lose: writes that other tensors from outside see, history that would stay on one,
        and derivatives outside of the graph that read what was overwritten."""
        held = [(traced.root, traced.root.tensor, "a tensor from outside") for traced in self.roots.values()]
        held += [(a.shown.value.root, a.tensor, f"the argument {a.name}") for a in self.arguments.values()]
        shared = _overlapping([tensor for _, tensor, _ in held])
        for i, (root, tensor, what) in enumerate(held):
            if not root.version:
                continue
            if i in shared:
                raise SharedMemoryError(
                    f"{what}, of shape {list(tensor.shape)}, is written to, and another one that the program uses lies "
                    "in the same memory; that is not captured. Make the view inside the program, or pass a clone()"
                )
            if root.leaf is None and id(root.value) in self.needs and not self.reader.derived:
                raise CaptureError(
                    f"{what}, of shape {list(tensor.shape)}, keeps the history of what was written to it, and a graph "
                    "would lose that. Write its detach(), or under no_grad()"
                )
        if self.overwritten and not self.reader.derived:
            for entry in self.tape:
                for value in entry.reads(self.needs):
                    self.check_kept(value)

    def finish_arguments(self, result):
        """Say in the graph what arguments are afterwards, and which results are what was written to itself."""
        states = {id(traced.root): traced.root.state for traced in self.roots.values()}
        for argument in self.arguments.values():
            root = argument.shown.value.root
            if root.version:
                state = State(argument.name, "argument", self.graph.value(TENSOR, None, None, argument.name))
                state.new = root.value
                self.graph.state.append(state)
                states[id(root)] = state
        for path, tensor in leaves_of(result):
            root = tensor.value.root if self.owns(tensor) else self.outside(tensor).root
            state = states.get(id(root))
            if not root.version or state is None:
                continue
            if not self.owns(tensor) or not tensor.value.path:
                self.returned.append((path, state))
            elif state.kind == "argument":
                raise CaptureError(
                    f"a view of the argument {state.name}, which was written to, is returned; a graph gives memory of "
                    "its own. Return its clone(), or make the view outside"
                )

    def check_kept(self, value):
        """Refuse a derivative that reads what was overwritten."""
        if id(value) in self.overwritten:
            raise CaptureError(
                f"{self.overwritten[id(value)]} writes through detach() or .data to memory that a derivative reads "
                "afterwards; that is not captured. Write after backward(), or to a clone()"
            )

    def fresh(self, value):
        """Another name for a value, so that gradients of the two are told apart."""
        node = self.graph.make(self.block, "prim::cast", (value,), (value.type,), line=user_line())
        node.outputs[0].hint = value.hint
        return node.outputs[0]

    def replay(self, whole, step):
        results = self.call(step.op, self.show(whole), *step.args)
        return results if step.index is None else results[step.index]

    def move_window(self, target, op, args):
        """`t_()` and the like: the tensor is another window from now on."""
        if not self.owns(target) or id(target) in self.arguments:
            raise CaptureError(
                f"{op.name}_ changes the shape of a tensor from outside, or of an argument, in place, which is not "
                "captured: use the form without '_'"
            )
        traced = self.traced(target)
        if id(traced.value) in self.leaves and is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        shown = self.compute_op(op, args)
        moved = shown.value
        traced.path, traced.value, traced.example = moved.path, moved.value, moved.example
        set_geometry_from(target, shown)
        return target


def _base_of(value):
    """The value whose memory a value of the graph shows."""
    while value.node is not None and value.node.args and isinstance(value.node.args[0], Value):
        signature = None if value.node.op.startswith("prim::") else signature_of(value.node.op)
        if signature is None or not signature.op.record.view:
            break
        value = value.node.args[0]
    return value


def _overlapping(tensors):
    """Numbers of those tensors that have elements in the memory of another one."""
    spans, found = {}, set()  # of each device
    for i, t in enumerate(tensors):
        if t.numel() and t.device.type != "meta":
            spans.setdefault(t.device, []).append((*_reach(t), i))
    for row in map(sorted, spans.values()):
        furthest = 0
        for (begin, end, i), (after, *_) in zip(row, [*row[1:], (math.inf,)]):
            if begin < furthest or after < end:
                found.add(i)
            furthest = max(furthest, end)
    return found


def _reach(t):
    """The first byte of a tensor, and the one behind the last."""
    last = sum((n - 1) * step for n, step in zip(t.shape, t.stride()))
    return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()
