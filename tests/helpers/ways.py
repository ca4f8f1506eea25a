"""A call of an op in every way that a program can run: eager, traced, scripted, each of those saved and loaded."""

import io
import itertools
import linecache
import math
import types

from captured import leaves, mapped, same_bits

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.testing import sweep

_numbers = itertools.count()


class Call:
    """An op with the arguments of a sample, as a function of its tensors.

    Attributes: op, tensors.
    """

    def __init__(self, op, sample):
        self.op, self.sample = op, sample
        self.tensors = leaves((sample.args, sample.kwargs))
        self.writes = any(a.is_write for a in op.schema.args)
        self.run = sweep.function(op)

    def __call__(self, *tensors):
        """What the op gives for these tensors; an op that writes to arguments writes to copies, and returns them
        too."""
        rest = iter(tensors)
        args, kwargs = mapped(lambda _: next(rest), (self.sample.args, self.sample.kwargs))
        if not self.writes:
            return self.run(*args, **kwargs)
        args, kwargs = mapped(tg.clone, (args, kwargs))
        return self.run(*args, **kwargs), sweep.written(self.op, args, kwargs)

    def __repr__(self):
        return f"{self.op.name} of {self.sample}"

    def scripted(self):
        """The call as a scripted function. TypeError for an argument that has no literal."""
        names = iter(f"x{i}" for i in range(len(self.tensors)))
        args, kwargs = mapped(lambda _: Name(next(names)), (self.sample.args, self.sample.kwargs))
        lines, copies = [], self.writes
        if copies:
            lines = [f"    x{i} = x{i}.clone()" for i in range(len(self.tensors))]
            told = ", ".join(map(literal, sweep.written(self.op, args, kwargs)))
        call = self.told(args, kwargs)
        result = f"{call}, [{told}]" if copies else call
        head = f"def call({', '.join(f'x{i}' for i in range(len(self.tensors)))}):"
        source = "\n".join([head, *lines, f"    return {result}", ""])
        filename = f"<call {next(_numbers)} of {self.op.name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        names = {"run": self.run, "tg": tg}
        exec(compile(source, filename, "exec"), names)
        return jit.script(names["call"])

    def told(self, args, kwargs):
        """The call as an expression."""
        name = self.op.schema.name
        if name == "__getitem__":
            return f"{args[0]}[{subscript(args[1])}]"
        texts = [*map(literal, args), *(f"{k}={literal(v)}" for k, v in kwargs.items())]
        if isinstance(self.run, types.FunctionType):  # there is only the in-place method
            return f"{texts[0]}.clone().{name}_({', '.join(texts[1:])})"
        return f"run({', '.join(texts)})"


class Name(str):
    """The name of an argument in a source."""


def literal(a):
    """A value as Python, TypeError for one that cannot be written down."""
    if isinstance(a, Name) or a is None or type(a) in (bool, int, str):
        return str(a) if isinstance(a, Name) else repr(a)
    if type(a) is float:
        return repr(a) if math.isfinite(a) else f'float("{a}")'
    if isinstance(a, (tg.dtype, tg.memory_format, tg.layout)):
        return f"tg.{str(a).rpartition('.')[2]}"
    if isinstance(a, tg.device):
        return f'tg.device("{a}")'
    if a is Ellipsis:
        return "..."
    if isinstance(a, (list, tuple)):
        return f"[{', '.join(map(literal, a))}]" if len(a) != 1 or type(a) is list else f"[{literal(a[0])}]"
    raise TypeError(f"{type(a).__name__} has no literal")


def subscript(index):
    """What stands between the brackets of an index."""
    if type(index) is tuple and index:
        return ", ".join(map(subscript, index)) + ("," if len(index) == 1 else "")
    if type(index) is slice:
        return ":".join("" if n is None else str(n) for n in (index.start, index.stop, index.step))
    return "()" if index == () and type(index) is tuple else literal(index)


def filed(program):
    """A compiled program, saved and loaded."""
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


def fresh(tensors, requires_grad=False):
    """Copies of tensors, those that can asking for gradients."""
    return [
        t.detach().clone().requires_grad_(requires_grad and (t.is_floating_point() or t.is_complex())) for t in tensors
    ]


def result(function, tensors, seed=1):
    """What a function gives, with the same random numbers each time."""
    tg.manual_seed(seed)
    return function(*fresh(tensors))


def gradients(function, tensors, seed=1):
    """Gradients of the sum of squares of what a function gives; None where it has no history."""
    tg.manual_seed(seed)
    given = fresh(tensors, True)
    outputs = [t for t in leaves(function(*given)) if t.requires_grad]
    if not outputs:
        return None
    loss = sum((t * t.conj()).real.sum() if t.is_complex() else (t * t).sum() for t in outputs)
    return tg.autograd.grad(loss, [t for t in given if t.requires_grad], allow_unused=True)


# ---- checks ---------------------------------------------------------------------------------------------------------

REFUSALS = (RuntimeError, TypeError, IndexError, ValueError)
SIZES = (2, 1, 3, 17)  # the first is what is traced

# Where a way is exempt, and why.
SPLIT = "tensor_split.tensor_indices_or_sections"
READS = "Python decides by elements, which trace refuses with the line; script takes it"
EXEMPT = {
    "trace": {
        **dict.fromkeys(("allclose", "bincount", "equal", "repeat_interleave.self_Tensor", "tolist", SPLIT), READS),
        "_basic_index_backward": "takes an index as a tuple, which a graph does not tell from a list; nobody calls it "
        "while a program is captured",
    },
    "script": {
        **dict.fromkeys(("__setitem__", "_basic_index_backward"), "an index that is an object"),
        "einsum.sublists": "'...' as an element of a list, which script has no type for",
    },
}
# Ops that read elements, which a graph calls whole: their samples are of one size, as the lengths among them say.
WHOLE = ("_pack_padded_sequence", "_pad_packed_sequence")
# Layers of packed sequences: their gradient inside of a trace is refused (tests/jit/test_lengths.py).
PACKED = ("gru.data", "lstm.data", "rnn_relu.data", "rnn_tanh.data")
# What other sizes are captured anew for: Python sees something else then.
BY_SIZE = {
    **dict.fromkeys(
        [f"squeeze{copied}{by}" for copied in ("", "_copy") for by in ("", ".dim", ".dims")],
        "how many dimensions are left",
    ),
    **dict.fromkeys(("chunk", "split.Tensor", "split_copy", "unbind.int"), "how many tensors come out"),
    **dict.fromkeys(("cov", "corrcoef"), "one row gives a number, not a matrix"),
    "combinations": "which rows there are, a list that Python makes",
    "cross": "which dimension has 3 elements",
    "hash_tensor": "how often rows are halved until one element is left",
    "gaussian_nll_loss": "whether a row has one variance",
    "lstsq": "whether there are more equations than unknowns",
    **dict.fromkeys(("chain_matmul", "multi_dot"), "which order of the products takes the fewest multiplications"),
    "tensor_split.sections": "how many of the parts are one longer",
    "diff": "how often neighbours are subtracted, which n elements allow n - 1 times",
    "einsum": "which operand is repeated to the size of the other, where '...' leaves it open",
    "prelu": "whether there is one weight for all channels",
    **dict.fromkeys(("gru.input", "lstm.input"), "how many steps there are, each of them an op"),
    **dict.fromkeys(
        ("_elman_steps_backward", "_gru_steps_backward", "_lstm_steps_backward"),
        "how many steps there are, which its own derivative takes one by one",
    ),
    "solve": "whether B is a vector, or a row of them, follows from sizes",
    **dict.fromkeys(
        ("svd", "svd.linalg", "_svd"),
        "whether one side is longer, whose vectors then have a gradient outside of their space",
    ),
}


def samples(op, every=False):
    """Calls of an op that eager mode takes: of one dtype and of complex numbers, or of every dtype."""
    supported = sweep.supported(op)
    dtypes = supported if every else [next((d for d in ("float32", "int64", "bool") if d in supported), supported[0])]
    for dtype in dict.fromkeys([*dtypes, *(["complex64"] if "complex64" in supported else [])]):
        for sample in sweep.samples(op, dtype):
            call = Call(op, sample)
            if attempt(result, call, call.tensors) is not REFUSED:
                yield call


REFUSED = object()


def attempt(function, *args):
    """What a function gives; REFUSED where it raises what ops raise."""
    try:
        return function(*args)
    except (*REFUSALS, NotImplementedError):
        return REFUSED


def ways(call, name):
    """(what it is, the program) of each way in which a call runs besides eager mode."""
    for kind, make in (("trace", lambda: traced(call, call.tensors)), ("script", call.scripted)):
        if name not in EXEMPT[kind]:
            program = make()
            yield kind, program
            yield f"{kind}, loaded", filed(program)


def traced(function, tensors, requires_grad=False):
    return jit.trace(function, tuple(fresh(tensors, requires_grad)), check_trace=False)


def check_ways(call, name):
    """Eager mode, trace, script and their archives give the same bits, and the same gradients."""
    expected = result(call, call.tensors)
    grads = attempt(gradients, call, call.tensors)
    for way, program in ways(call, name):
        found = result(program, call.tensors)
        assert same_bits(found, expected), f"{call}, {way}: {found}, eager mode {expected}"
        if grads is not REFUSED:
            found = gradients(program, call.tensors)
            assert same_bits(found, grads), f"{call}, {way}: gradients {found}, eager mode {grads}"


def batches(call):
    """{size: tensors} for every dimension of a call that can have other sizes, alone or with those that equal it."""
    sizes = dict.fromkeys(n for t in call.tensors for n in t.shape if n)
    for leading in (True, False):
        for size in sizes:
            if not leading or any(t.dim() and t.shape[0] == size for t in call.tensors):
                made = {n: [resized(t, size, n, leading) for t in call.tensors] for n in SIZES}
                if all(attempt(result, call, tensors) is not REFUSED for tensors in made.values()):
                    yield made


def resized(t, size, n, leading):
    """A tensor with n in the place of a size, of the first dimension or of every one; elements are repeated."""
    for d in range(t.dim()):
        if t.shape[d] == size and (d == 0 or not leading):
            t = t.index_select(d, tg.arange(n) % size)
    return t


def check_sizes(call, name, made):
    """What was traced at one size gives eager mode's bits at the others: forward, its gradient, and a gradient that is
    inside; from the file too. Returns how many graphs were captured besides the first."""
    again = 0
    steps = [(call, False)]
    if attempt(gradients, call, made[SIZES[0]]) not in (REFUSED, None):
        steps += [(call, True), (inner_gradient(call), True)]
    for number, (function, wants) in enumerate(steps):
        run = gradients if number == 1 else lambda f, ts, w=wants: seeded(f, fresh(ts, w))
        program = traced(function, made[SIZES[0]], wants)
        loaded = filed(program)
        for n, tensors in made.items():
            expected = run(function, tensors)
            count = graphs_of(program)
            found = run(program, tensors)
            assert same_bits(found, expected), f"{call} at {n}: {found}, eager mode {expected}"
            if graphs_of(program) > count or name in BY_SIZE:
                again += graphs_of(program) > count
                assert name in BY_SIZE, f"{call} at {n}: {program.explain()}"
                loaded = filed(program)
            found = run(loaded, tensors)
            assert same_bits(found, expected), f"{call} at {n}, loaded: {found}, eager mode {expected}"
    return again


def graphs_of(program):
    return sum(map(len, program._runner.graphs.values()))


def seeded(function, tensors):
    tg.manual_seed(1)
    return function(*tensors)


def inner_gradient(call):
    """A function that takes the gradient itself, as a training step does."""

    def step(*tensors):
        outputs = [t for t in leaves(call(*tensors)) if t.requires_grad]
        loss = sum((t * t.conj()).real.sum() if t.is_complex() else (t * t).sum() for t in outputs)
        return tg.autograd.grad(loss, [t for t in tensors if t.requires_grad], allow_unused=True)

    return step
