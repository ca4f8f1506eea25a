"""What tests of autograd.Function share: Functions from two bodies, and situations run with two libraries."""

import warnings
from dataclasses import dataclass

SAME = object()


def point(T, *values):
    """A leaf that requires grad; 1 and 2 when no values are given."""
    return T.tensor(list(values) or [1.0, 2.0], dtype=T.float64, requires_grad=True)


def make(T, forward=None, backward=lambda ctx, g: g * 3, **body):
    """A Function of library T from two bodies, x * 3 when none are given; backward=None leaves it out."""
    body["forward"] = staticmethod(forward or (lambda ctx, x, *rest: x * 3))
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("Made", (T.autograd.Function,), body)


def cube(T):
    """x ** 3, saving x."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    return make(T, forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)


def run_backward(T, backward, *rest):
    """The gradient of a point that went through a Function with this backward."""
    x = point(T)
    make(T, None, backward).apply(x, *rest).sum().backward()
    return x.grad


def run_forward(T, forward, **body):
    """The result of this forward for a tensor that needs a gradient and is no leaf."""
    return make(T, forward, lambda ctx, g: g, **body).apply(point(T) * 1)


def title(node):
    """Name of a node, without the namespace that PyTorch gives to some."""
    return None if node is None else node.name().split("::")[-1]


def node(t):
    """Name of the node that made a tensor."""
    return title(t.grad_fn)


def kind_of_error(run):
    """Name of the exception that something raises."""
    try:
        run()
    except Exception as error:
        return type(error).__name__
    return None


def check_engine(T):
    """Modes are as before, and a Function and a plain graph still differentiate."""
    assert T.is_grad_enabled() and not T.is_inference_mode_enabled()
    x = point(T, 2.0)
    (cube(T).apply(x) + x).sum().backward()
    assert x.grad.tolist() == [13.0]


class Scenarios(dict):
    """Functions of a library, by name; each returns what must be the same in PyTorch."""

    def add(self, run):
        """Decorator."""
        self[run.__name__] = run
        return run


@dataclass
class Situation:
    """Something that goes wrong: what runs, what it raises or warns, and what PyTorch does."""

    run: object
    error: type | None
    fragment: str
    torch: object

    def in_torch(self):
        """(type, fragment) that PyTorch ends with."""
        return (self.error, self.fragment) if self.torch is SAME else self.torch or (None, "")


class Situations(dict):
    """Situations by name.

    `fragment` is in our message, and in PyTorch's unless the row says otherwise (`torch=None`: PyTorch says nothing;
    `torch=(type, fragment)`: it says something else).
    """

    def row(self, error, fragment="", torch=SAME):
        """Decorator of a function of the library."""

        def add(run):
            self[run.__name__] = Situation(run, error, fragment, torch)
            return run

        return add


def outcome(run, T):
    """(type, message) of what a situation raises or warns."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(T)
    except BaseException as error:
        return type(error), str(error)
    return (caught[0].category, str(caught[0].message)) if caught else (None, "")
