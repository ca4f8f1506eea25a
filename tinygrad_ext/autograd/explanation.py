"""explain: how the gradient of an output travels to an input, and where it is lost."""

import os
from dataclasses import dataclass, field

from tinygrad_ext.autograd.cut import why_disconnected
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.slots import get_slot
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import gradient_edge_of, run_backward
from tinygrad_ext.core.grad.node import place_of
from tinygrad_ext.core.grad.reach import nodes_behind

TEXT_LINES = 40
WORDS = {"none": "is None", "vanished": "is all zero", "nan": "has NaN", "inf": "is infinite"}


@dataclass
class Flow:
    """What is known of one gradient: its norm, or that it is None, all zero, NaN or infinite."""

    norm: float | None = None
    state: str = "unknown"  # fine, vanished, nan, inf, none, unknown

    def __str__(self):
        return {"fine": f"{self.norm or 0:.4g}", "vanished": "0", "none": "None", "unknown": "?"}.get(
            self.state, self.state
        )


@dataclass
class Step:
    """A node of the graph: what arrived there, and what it passed on along each edge that leads on."""

    name: str
    place: str
    arrived: Flow
    edges: list = field(default_factory=list)  # (argument, number of the next step, Flow)
    hooks: bool = False
    error: str | None = None


@dataclass
class Explanation:
    """The answer of `explain`: `str()` is text, `svg()` a picture, which notebooks show.

    connected: whether the input can be reached. grad: its gradient, or None. problems: what went wrong, in the order of
    the backward pass. steps: the nodes on the way, newest first, the last one being the input's.
    """

    output: str
    input: str
    connected: bool
    grad: Tensor | None
    problems: list
    steps: list

    def __str__(self):
        head = f"gradient of the output ({self.output})\nwith respect to the input ({self.input})\n"
        verdict = "\n".join(f"! {p}" for p in self.problems) or f"arrives with norm {flow_of(self.grad)}"
        return "\n".join([head, verdict, "", *_table(self)]).rstrip() + "\n"

    __repr__ = __str__

    def svg(self):
        """The picture as SVG text."""
        from tinygrad_ext.autograd.picture import draw  # lazy: few programs ask

        return draw(self)

    def _repr_html_(self):
        return self.svg()

    def save(self, path):
        """Write the picture to a file, or the text when its name ends in .txt."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(self) if os.fspath(path).endswith(".txt") else self.svg())


@boundary
def explain(output, input, grad_output=None):
    """Follow the gradient of `output` back to `input`, step by step.

    Runs the backward pass between the two once more, with nothing changed by it: the graph is kept, no ``.grad`` is
    filled, no hook runs, the random stream goes on as before. Backward methods of Functions do run.

    Arguments:
        output: tensor to differentiate. input: tensor that should get a gradient; a leaf or not.
        grad_output: gradient of the output, of its shape; ones by default.

    Returns an `Explanation`: the nodes on all paths with the user's line and the norm of the gradient there, and where
    it became None, zero, NaN or infinite. Without a path it names what is known of the cut: detach, `.data`, an op
    without derivative, an integer result, grad mode switched off.

        w = tinygrad_ext.ones(3, requires_grad=True)
        print(explain((w.relu() * 2).sum(), w))
    """
    for name, t in (("output", output), ("input", input)):
        if not isinstance(t, Tensor):
            raise TypeError(f"explain(): argument '{name}' must be Tensor, not {type(t).__name__}")
    told = describe(output), describe(input)
    root, target = gradient_edge_of(output), gradient_edge_of(input)
    nodes = list(reversed(nodes_behind([root[0]]))) if root else []
    if root is None or target is None or target[0] not in nodes:
        return Explanation(*told, False, None, why_disconnected(output, input, nodes), _steps(nodes, {}, set(nodes)))
    leading = _leading_to(target[0], nodes)
    seen, grad, problems = _watch(root, _seed(output, grad_output), target, leading)
    steps = _steps([n for n in nodes if n in leading], seen, leading)
    steps[-1].arrived = flow_of(grad) if not problems else Flow()
    return Explanation(*told, True, grad, problems or _losses(steps, flow_of(grad)), steps)


def describe(t):
    """A tensor in a few words: shape, dtype, where it comes from."""
    origin = f"made by {t.grad_fn.name()}" if t.grad_fn is not None else "leaf"
    return f"{origin}, shape {list(t.shape)}, {t.dtype.name}"


def _seed(output, grad_output):
    if grad_output is None:
        return get_slot("ones_like")(output)
    if not isinstance(grad_output, Tensor) or grad_output.shape != output.shape:
        raise RuntimeError(
            f"explain(): Mismatch in shape: grad_output must be a tensor of the output's shape {list(output.shape)}, "
            f"got {list(grad_output.shape) if isinstance(grad_output, Tensor) else type(grad_output).__name__}"
        )
    return grad_output


def _leading_to(target, nodes):
    """The nodes, given newest first, from which the target can be reached."""
    leading = {target}
    for n in reversed(nodes):
        if any(m in leading for m, _ in n.next_functions):
            leading.add(n)
    return leading


def _watch(root, seed, target, leading):
    """({node: (arrived, passed on or the error)}, gradient of the target, problems) of a backward pass."""
    once = [n for n in leading if getattr(getattr(n, "_forward_cls", None), "clear_saved_tensors_on_access", False)]
    if once:
        return {}, None, [f"{at(once[0])}: its saved tensors can be read once only, so no gradient was computed here"]
    seen, random = {}, default_generator.get_state()

    def observer(node, arrived, passed):
        seen[node] = (
            [flow_of(g) for g in arrived],
            passed if isinstance(passed, BaseException) else [flow_of(g) for g in passed],
        )

    try:
        (grad,) = run_backward([root], [seed], True, False, [target], False, True, observer)
    except Exception as error:  # whatever a backward may raise is what we are here to tell
        failed = next((n for n, (_, passed) in seen.items() if isinstance(passed, Exception)), None)
        where = f"cut at {at(failed)}" if failed is not None else "the backward pass failed"
        return seen, None, [f"{where}: {type(error).__name__}: {error}"]
    finally:
        default_generator.set_state(random)
    return seen, grad, []


def at(node):
    """A node and the line that made it."""
    return f"{node.name()} ({place_of(node)})" if node.name() != "AccumulateGrad" else "the leaf's AccumulateGrad"


def flow_of(grad):
    """The state and norm of a gradient."""
    if grad is None:
        return Flow(None, "none")
    g = grad.detach()
    g = (g.abs() if g.dtype.is_complex else g).double()
    norm = float((g * g).sum())
    if norm != norm or norm == float("inf"):
        nan = bool((g != g).any())
        if nan or bool((g.abs() == float("inf")).any()):
            return Flow(norm, "nan" if nan else "inf")
        scale = float(g.abs().max())  # squares overflowed, the gradient did not
        norm = float(((g / scale) * (g / scale)).sum()) * scale * scale
        return Flow(scale if norm == float("inf") else norm**0.5, "fine")
    if norm == 0 and not bool((g != 0).any()):
        return Flow(0.0, "vanished")
    return Flow(norm**0.5, "fine")


def _steps(nodes, seen, leading):
    """Nodes, newest first, as steps."""
    numbers = {n: i for i, n in enumerate(nodes)}
    steps = []
    for n in nodes:
        arrived, passed = seen.get(n, ([], []))
        failed = isinstance(passed, BaseException)
        step = Step(n.name(), place_of(n), worst(arrived), hooks=n._has_hooks(), error=str(passed) if failed else None)
        for k, (name, (m, _)) in enumerate(zip(n._edge_names(), n.next_functions)):
            if m in leading:
                step.edges.append((name, numbers[m], passed[k] if not failed and k < len(passed) else Flow()))
        steps.append(step)
    return steps


def worst(flows):
    """One flow for several outputs of a node."""
    for state in ("nan", "inf", "fine", "vanished", "none"):
        found = [f for f in flows if f.state == state]
        if found:
            return Flow(sum((f.norm or 0) ** 2 for f in found) ** 0.5, state)
    return Flow()


_NEW = {"fine": tuple(WORDS), "vanished": ("nan", "inf"), "inf": ("nan",)}  # what a node made of what had arrived


def _losses(steps, final):
    """Where a gradient that arrived fine was passed on as None, zero, NaN or infinite."""
    found = []
    for step in steps:
        for name, _, flow in step.edges:
            if flow.state in _NEW.get(step.arrived.state, ()):
                found.append(f"from {step.name} ({step.place}) on, the gradient of '{name}' {WORDS[flow.state]}")
    if final.state in WORDS:
        found.append(f"the gradient of the input {WORDS[final.state]}")
    return found


# ---- text ----------------------------------------------------------------------------------------------------------


def _table(told):
    """A line for each step; the middle of a long way is left out."""
    rows = [_row(i, step, told.connected) for i, step in enumerate(told.steps)]
    shown = [i for i in range(len(rows)) if not _repeats(told.steps, i)]
    if len(shown) > TEXT_LINES:
        half = TEXT_LINES // 2
        troubled = [i for i in shown if told.steps[i].error or any(f.state in WORDS for *_, f in told.steps[i].edges)]
        shown = {*shown[:half], *shown[-half:], *troubled[:half]}
    shown = set(shown)
    widths = [max((len(rows[i][c]) for i in shown), default=0) for c in range(3)]
    lines, left_out = [], 0
    for i, row in enumerate(rows):
        if i in shown:
            if left_out:
                lines.append(f"      ... {left_out} more ...")
            left_out = 0
            lines.append("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), *row[3:]]).rstrip())
        else:
            left_out += 1
    return lines


def _repeats(steps, i):
    """Whether a step is like the one before and the one after: one more of the same line in a loop."""

    def kind(k):
        step = steps[k]
        states = [flow.state for *_, flow in step.edges]
        return step.name, step.place, step.error, states, len(step.edges) == 1 and step.edges[0][1] == k + 1

    return 0 < i < len(steps) - 1 and kind(i - 1) == kind(i) == kind(i + 1) and kind(i)[-1]


def _row(i, step, connected):
    """Cells of a step: number and name, place, norm, where it goes."""
    goes = ", ".join(f"#{to} {flow}" if connected else f"#{to}" for _, to, flow in step.edges)
    notes = [f"-> {goes}" if goes else "", "(has hooks, not run)" if step.hooks else "", "FAILED" if step.error else ""]
    place = "" if step.name == "AccumulateGrad" else shorten(step.place)
    return f"#{i} {step.name}", place, str(step.arrived) if connected else "", " ".join(filter(None, notes))


def shorten(place):
    """A place with its file below the current folder, where it is."""
    here = os.getcwd() + os.sep
    return place[len(here) :] if place.startswith(here) else place
