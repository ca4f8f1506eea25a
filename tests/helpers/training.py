"""Training programs as people write them, for tests that run them from graphs.

A program is a function that returns (step, what it trains, batches): `step` is called with each batch in turn, and
changes modules, optimizers and tensors of the second. See training_models.py, training_losses.py,
training_updates.py.
"""

from itertools import pairwise

import tinygrad_ext as tg
from tinygrad_ext import nn

PROGRAMS = {}


def program(function):
    """Add a program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def batches(*shapes, count=5):
    """Tuples of random tensors of these shapes."""
    return [tuple(tg.randn(*shape) for shape in shapes) for _ in range(count)]


def perceptron(*sizes):
    """Linear layers of these sizes, with tanh between them."""
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def held(objects):
    """All tensors of what a program trains, by name."""
    found = {}
    for i, o in enumerate(objects):
        if isinstance(o, nn.Module):
            found.update((f"{i}.{name}", t) for name, t in o.named_parameters())
            found.update((f"{i}.{name}", t) for name, t in o.named_buffers())
        elif isinstance(o, tg.optim.Optimizer):
            params = [p for group in o.param_groups for p in group["params"]]
            entries = [(j, k, v) for j, p in enumerate(params) for k, v in o.state.get(p, {}).items()]
            found.update((f"{i}.{j}.{k}", v) for j, k, v in entries if isinstance(v, tg.Tensor))
        else:
            found[f"{i}"] = o
    found.update([(f"{name}.grad", t.grad) for name, t in found.items() if t.is_leaf and t.grad is not None])
    return found


def trained(program, wrap=None):
    """(results of the steps, tensors afterwards) of a program, its step wrapped by `wrap`(step, first batch)."""
    tg.manual_seed(0)
    step, objects, data = program()
    run = step if wrap is None else wrap(step, data[0])
    tg.manual_seed(1)
    results = [run(*batch) for batch in data]
    return results, held(objects)
