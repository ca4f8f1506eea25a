"""Recorded runs: what a program gave when it was saved, compared to the bit with what it gives when it is loaded."""

import copy
import hashlib

from tinygrad_ext.archive import layout
from tinygrad_ext.autograd.modes import no_grad
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor

from . import interpret
from .types import BOOL, COMPLEX, FLOAT, GENERATOR, INT, STR, TENSOR

_CLASSES = {TENSOR: Tensor, BOOL: bool, INT: int, FLOAT: float, STR: str, COMPLEX: complex, GENERATOR: Generator}


def record(program, examples):
    """Method -> rows of {"inputs", "outputs", "state"}: the last a hash for each state that is written."""
    told = {}
    for method, rows in examples.items():
        if method not in program.methods:
            raise ValueError(f"save(): examples are given for '{method}', which is no method of the program")
        told[method] = [_row(program, method, inputs) for inputs in rows]
    return told


def _row(program, method, inputs):
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"save(): an example of '{method}' must be a tuple of inputs, not {type(inputs).__name__}")
    outputs, hashes = _run(program, method, inputs)
    return {"inputs": list(inputs), "outputs": outputs, "state": hashes}


def _run(program, method, inputs):
    graph = program.methods[method]
    state = [Generator().manual_seed(0) if v is default_generator else v for v in program.state_of(graph)]
    inputs = list(inputs)
    if graph.effects:
        inputs, state = copy.deepcopy((inputs, state))
    with no_grad():
        outputs, new = interpret.run(graph, inputs, state)
    return outputs, {s.name: digest(value) for s, value in zip(graph.state, new) if s.written or graph.effects}


def verify(program, told, name):
    """Run the examples again. RuntimeError names the method, the example, and the first value that differs."""
    for method, rows in told.items():
        for i, row in enumerate(rows):
            where = f"load: {name}: verify: method '{method}', example {i}"
            try:
                outputs, hashes = _run(program, method, row["inputs"])
            except Exception as error:
                raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error
            found = difference(row["outputs"], outputs, "the outputs")
            found = found or difference(row["state"], hashes, "the hashes of the state written")
            if found:
                raise RuntimeError(f"{where}: {found}")


def checked(told, methods):
    """Examples as `record` made them. ValueError else."""
    if type(told) is not dict or not set(told) <= set(methods):
        raise ValueError("it holds no dict of methods")
    for rows in told.values():
        for row in rows:
            if [type(row[key]) for key in ("inputs", "outputs", "state")] != [list, list, dict]:
                raise ValueError("an example is no inputs, outputs and state")
    return told


def fits(graph, values):
    """ValueError where the value of a state is not of its type."""
    for s, value in zip(graph.state, values):
        wanted = _CLASSES.get(s.value.type)
        if wanted is not None and not (
            isinstance(value, wanted) if wanted in (Tensor, Generator) else type(value) is wanted
        ):
            raise ValueError(
                f"the {s.kind} '{s.name}' is a {type(value).__name__}, and {graph.name} wants {s.value.type}"
            )


# ---- comparing -----------------------------------------------------------------------------------------------------


def bits(t):
    """The bytes of a tensor's elements, row-major."""
    return b"".join(map(bytes, layout.pieces(t.detach().resolve_conj())))


def digest(value):
    """A hash of all bits of a value."""
    made = hashlib.sha256()
    _feed(made, value)
    return made.hexdigest()


def _feed(made, value):
    if isinstance(value, Generator):
        value = value.get_state()
    if isinstance(value, Tensor):
        made.update(f"{value.dtype}{list(value.shape)}".encode())
        for piece in layout.pieces(value.detach().resolve_conj()):
            made.update(piece)
    elif isinstance(value, (list, tuple)):
        made.update(f"[{len(value)}".encode())
        for part in value:
            _feed(made, part)
    else:
        made.update(f"{type(value).__name__} {value!r}".encode())


def difference(a, b, where):
    """Words for the first thing in which b differs from a, "" where all bits are equal."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{where}: {a.dtype} {list(a.shape)} was recorded, got {b.dtype} {list(b.shape)}"
        return "" if bits(a) == bits(b) else f"{where}: {_first_element(a, b)}"
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"{where}: {len(a)} values were recorded, got {len(b)}"
        return next(filter(None, (difference(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b)))), "")
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{where}: the keys {list(a)[:10]} were recorded, got {list(b)[:10]}"
        return next(filter(None, (difference(a[k], b[k], f"{where}[{k!r}]") for k in a)), "")
    same = type(a) is type(b) and repr(a) == repr(b)
    return "" if same else f"{where}: {a!r} was recorded, got {b!r}"


def _first_element(a, b):
    size, x, y = a.itemsize, bits(a), bits(b)
    odd = [i for i in range(a.numel()) if x[i * size : (i + 1) * size] != y[i * size : (i + 1) * size]]
    first = odd[0]
    return (
        f"{len(odd)} of {a.numel()} elements differ, the first at {first} in row-major order: "
        f"{a.reshape(-1)[first].item()!r} was recorded, got {b.reshape(-1)[first].item()!r}"
    )
