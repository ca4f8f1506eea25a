"""Random autograd programs beside PyTorch: writes of every form, views made in every mode, hooks, retained gradients,
frozen leaves, out=.

`check(seed)` is for whoever wants to run many: it draws a program, runs it with both libraries and raises
AssertionError with the program where they part. A program is a list of (step, number, number): the numbers choose
among the tensors that there are. Both libraries must allow and refuse the same steps and uses, and agree in values,
gradients, retained gradients and what hooks saw. Where PyTorch refuses more, for views of ops with several outputs and
in a backward, the run ends there: nothing is compared behind it.
"""

import random
import warnings

LEAVES = [[[1.0, 2.0], [3.0, 4.0]], [[0.5, -1.0], [2.0, 0.25]]]
PLAIN = [[1.5, 0.1], [0.2, -0.3]]
MODES = ("enable_grad", "enable_grad", "enable_grad", "no_grad", "inference_mode")
STEPS = {}


def step(run):
    """A step: run(machine, x, y) with two tensors of the pool; returns the tensor or tensors it makes."""
    STEPS[run.__name__] = run
    return run


def _steps(table):
    for name, run in table.items():
        STEPS[name] = run


_steps(
    {
        "add": lambda m, x, y: x + y,
        "mul": lambda m, x, y: x * y,
        "double": lambda m, x, y: x * 2,
        "sin": lambda m, x, y: x.sin(),
        "exp": lambda m, x, y: (x * 0.1).exp(),
        "clone": lambda m, x, y: x.clone(),
        "gather": lambda m, x, y: x[m.T.tensor([0, 0])],
        "cat": lambda m, x, y: m.T.cat([x, y]),
        "where": lambda m, x, y: m.T.where(x > 0.3, x, x * 2),
        "slice": lambda m, x, y: x[:1],
        "row": lambda m, x, y: x[0],
        "column": lambda m, x, y: x[..., 0],
        "turn": lambda m, x, y: x.t(),
        "flat": lambda m, x, y: x.view(-1),
        "lifted": lambda m, x, y: x.unsqueeze(0),
        "narrow": lambda m, x, y: x.narrow(-1, 0, 1),
        "expand": lambda m, x, y: x.expand(2, *x.shape)[0],
        "detach": lambda m, x, y: x.detach(),
        "data": lambda m, x, y: x.data,
        "unbind": lambda m, x, y: x.unbind(0)[0],
        "split": lambda m, x, y: x.split(1)[0],
    }
)


def apart(x, y):
    return x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr()


VIEWS = ("slice", "row", "column", "turn", "flat", "lifted", "narrow", "detach")
WRITES = {
    "mul_number": lambda m, x, y: x.mul_(0.5),
    "mul_": lambda m, x, y: x.mul_(y),
    "add_": lambda m, x, y: x.add_(y, alpha=0.5),
    "sin_": lambda m, x, y: x.sin_(),
    "copy_": lambda m, x, y: x.copy_(y),
    "zero_": lambda m, x, y: x.zero_(),
    "fill_": lambda m, x, y: x.fill_(y.sum()) if y.dim() == 0 else x.fill_(0.7),
    "set_number": lambda m, x, y: x.__setitem__(0, 0.9),
    "set_row": lambda m, x, y: x.__setitem__(0, y[0]),
    "set_all": lambda m, x, y: x.__setitem__(slice(None), y),
    "set_mask": lambda m, x, y: x.__setitem__(x > 0.5, 0.1),
    "put": lambda m, x, y: x.__setitem__(m.T.tensor([0]), y[:1]),
    "index_fill_": lambda m, x, y: x.index_fill_(0, m.T.tensor([0, 0]), y.reshape(-1)[0]),
    "clamp_": lambda m, x, y: x.clamp_(y - 0.5, y + 0.5),
    "masked_fill_": lambda m, x, y: x.masked_fill_(x > 1, 0.2),
    "out": lambda m, x, y: m.T.mul(m.plain, 2, out=x) if x.shape == m.plain.shape else None,
    "out_of": lambda m, x, y: m.T.mul(y, 2, out=x) if x.shape == y.shape else None,
}


def _in_mode(kind, mode, run):
    def moded(m, x, y):
        with getattr(m.T, mode)():
            return run(m, x, y)

    STEPS[f"{kind} {mode}"] = moded


for _mode in ("no_grad", "inference_mode"):
    for _name in VIEWS:
        _in_mode(_name, _mode, STEPS[_name])
for _name, _write in WRITES.items():
    for _mode in ("enable_grad", "no_grad", "inference_mode"):
        _in_mode(_name, _mode, lambda m, x, y, write=_write: (write(m, x, y if apart(x, y) else y.clone()), None)[1])


@step
def new(m, x, y):
    t = m.T.tensor(PLAIN, dtype=m.T.float64)
    return t, t[0], t.t()


def plain_view(t):
    """A view without a history: PyTorch says that it requires grad where its base does, though it gets no gradient."""
    return t.grad_fn is None and t._base is not None


def settled(t):
    """t as an operand, such that both libraries say the same of what is made of it."""
    return t.detach() if plain_view(t) else t


@step
def retain(m, x, y):
    return None if plain_view(x) else x.retain_grad()


@step
def watch(m, x, y):
    if not plain_view(x):
        x.register_hook(lambda g: m.seen.append(g.tolist()))


@step
def scale(m, x, y):
    if not plain_view(x):
        x.register_hook(lambda g: g * 3)


@step
def watch_node(m, x, y):
    if x._base is None:
        x.grad_fn.register_prehook(lambda row: m.seen.append([None if g is None else g.tolist() for g in row]))


@step
def freeze(m, x, y):
    m.frozen = True  # when the forward is over


@step
def new_leaf(m, x, y):
    return x.detach().clone().requires_grad_()


COMMON = [n for n in STEPS if "inference" not in n and n not in ("unbind", "split", "freeze", "new_leaf")]


# steps that take a view without history as it is: views of it, writes to it, and what is done to a tensor itself
AS_THEY_ARE = (*VIEWS, *WRITES, "expand", "data", "unbind", "split", "retain", "watch", "scale", "freeze")
VIEWS_HERE = (*VIEWS, "expand", "data", "unbind", "split")
SEVERAL = ("unbind", "split")  # PyTorch refuses writes to what these return, and to what that is a view of


def draw(seed):
    """A program, the same for the same seed."""
    rng = random.Random(seed)
    table = COMMON if rng.random() < 0.7 else list(STEPS)
    return [(rng.choice(table), rng.random(), rng.random()) for _ in range(rng.randint(2, 12))]


class Machine:
    """One run of a program with one library."""

    def __init__(self, T):
        self.T, self.seen, self.refusal, self.frozen = T, [], "", False
        self.plain = T.tensor(PLAIN, dtype=T.float64)
        leaves = [T.tensor(v, dtype=T.float64, requires_grad=True) for v in LEAVES]
        self.pool = [*leaves, T.tensor(PLAIN, dtype=T.float64), leaves[0] * 1]

    def step(self, name, i, k):
        """Whether the step was allowed."""
        x, y = self.pool[int(i * len(self.pool))], self.pool[int(k * len(self.pool))]
        try:
            if not name.startswith(AS_THEY_ARE) or (
                name in VIEWS_HERE and x._base is not None and x._base.requires_grad
            ):
                x = settled(x)
            made = STEPS[name](self, x, settled(y))
        except (RuntimeError, IndexError, ValueError, AttributeError, TypeError) as error:
            self.refusal = str(error)
            return False
        self.pool.extend(made if isinstance(made, tuple) else () if made is None else (made,))
        return True

    def use(self, number):
        """A scalar made of a tensor of the pool, or None where it must not be used."""
        t = self.pool[number]
        try:
            return (t * t).sum() * (number + 1)
        except RuntimeError:
            return None

    def finish(self, numbers):
        """What the libraries must agree on after a backward pass through these tensors; None: it is refused."""
        uses = [u for u in map(self.use, numbers) if u.requires_grad]
        self.pool[0].requires_grad_(not self.frozen)
        try:
            if uses:
                sum(uses[1:], uses[0]).backward()
        except RuntimeError:
            return None
        return [t.tolist() for t in self.pool], [_grad(t) for t in self.pool], self.seen


def _grad(t):
    return None if t.grad is None or not t.grad.any() else t.grad.tolist()


def _alike(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1) or (a != a and b != b)
    return a == b


def check(seed):
    """Run the program of a seed with both libraries; how it ended: 'same', or 'refused' where PyTorch refuses more."""
    import torch

    import tinygrad_ext

    program = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = Machine(tinygrad_ext), Machine(torch)
        for at, line in enumerate(program):
            allowed, expected = ours.step(*line), theirs.step(*line)
            several = any(name in SEVERAL for name, _, _ in program[:at])
            # (it takes a view for a leaf whose memory got its history by a write through another view)
            if allowed and not expected and (several or "leaf Variable" in theirs.refusal):
                return "refused"
            assert allowed == expected, f"seed {seed}: allowed {allowed}, in PyTorch {expected}: step {at} of {program}"
        count = range(len(ours.pool))
        usable = [n for n in count if theirs.use(n) is not None]
        refused = [n for n in usable if ours.use(n) is None]
        assert not refused, f"seed {seed}: tensors {refused} cannot be used, in PyTorch they can: {program}"
        got, wanted = ours.finish(usable), theirs.finish(usable)
    if wanted is None:  # it also refuses where a view made under no_grad was saved and then written to
        return "refused"
    assert _alike(got, wanted), f"seed {seed}: {program}\n ours:   {got}\n theirs: {wanted}"
    return "same"
