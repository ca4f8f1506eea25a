"""Generators that are made, seeded, or whose state is read and set, in a program that is captured.

Such calls are no ops, so the core asks here (its slot "generator"). In the graph they are primitives: what a generator
draws after `manual_seed` follows from the seed, and one that the program makes itself is no state. The generators
themselves stay as they are.
"""

from tinygrad_ext.core.call.levels import active_levels, calling_line
from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.core.data.slots import set_slot

from .aliases import CaptureError, Root, Traced
from .types import GENERATOR, TENSOR

FIRST_SEED = Generator().initial_seed()


def _asked(generator, name, args):
    """The answer of the capture that is under way, NotImplemented where there is none."""
    for level in reversed(active_levels()):
        if hasattr(level, "generators"):
            return level.suspend(_ANSWERS[name], level, generator, *args)
    return NotImplemented


def _node(level, op, args, hint, type=GENERATOR):
    return level.graph.make(level.block, f"prim::generator.{op}", args, (type,), (hint,), line=calling_line()).output


def _start(level, generator, value):
    """Let a generator go on from a value of the graph."""
    found = level.generators.get(id(generator))
    if found is None:
        level.generator_state(generator)
        found = level.generators[id(generator)]
    found[1], found[2] = value, value.hint._copy()
    if found[0] is not None:
        found[0].new = value


def _made(level, generator):
    level.generators[id(generator)] = [None, None, None, generator]
    _start(level, generator, _seeded(level, FIRST_SEED))


def _seeded(level, seed):
    return _node(level, "seeded", (level.lift(seed),), Generator().manual_seed(level.example(seed)))


def _manual_seed(level, generator, seed):
    _start(level, generator, _seeded(level, seed))


def _get_state(level, generator):
    _, value, example, _ = level.generator_state(generator)
    state = _node(level, "state", (value,), example.get_state(), TENSOR)
    return level.show(Traced(Root(state, state.hint)))


def _set_state(level, generator, state):
    made = _node(level, "from_state", (level.lift(state),), Generator().set_state(level.example(state)))
    _start(level, generator, made)


def _clone_state(level, generator):
    _, value, example, _ = level.generator_state(generator)
    other = example._copy()
    level.generators[id(other)] = [None, value, example._copy(), other]
    return other


def _refused(name):
    def answer(level, generator):
        raise CaptureError(
            f"{name}() of a generator is not captured, as the graph would keep this seed for all calls. Seed it "
            f"outside of what is captured, or with a number that is an argument ({calling_line()})"
        )

    return answer


_ANSWERS = {
    "made": _made, "manual_seed": _manual_seed, "get_state": _get_state, "set_state": _set_state,
    "clone_state": _clone_state, "seed": _refused("seed"), "initial_seed": _refused("initial_seed"),
}  # fmt: skip
set_slot("generator", _asked)
