"""The derivative of a graph: two graphs, source to source, and one node of eager autograd that runs them.

The graph is written down again under a capture (replay.py), then its backward pass by the rules of the records
(derive.py), through branches, loops and Functions. What stands before the backward pass is the forward graph, which
gives what the rest reads of it besides its own results; the rest is the backward graph. Both run by plans.

A derivative holds for the kinds of its arguments (types, dtypes, ranks, which of them need gradients) and for what its
guards hold; sizes are values. Where none can be made, or its guards fail too often, the ops of eager mode run one by
one, as `interpret` does, and eager autograd keeps the tape; `Derivative.refused` says why.
"""

import gc
from contextlib import contextmanager

from tinygrad_ext.core.call.levels import levels_on
from tinygrad_ext.core.data.random import Generator, default_generator
from tinygrad_ext.core.data.tensor import Tensor

from .capture import Capture
from .items import Items, NotDerived
from .joint import Joint
from .keys import key_of
from .primitives import GuardFailed
from .replay import Replay
from .trees import type_of_tree

MOST = 4  # derivatives for arguments of one kind


def run(graph, inputs, state=()):
    """As `interpret.run`; what autograd needs is recorded in one node where the graph can be derived."""
    return derivative_of(graph)(inputs, state)


def derivative_of(graph):
    if graph.derivative is None:
        graph.derivative = Derivative(graph)
    return graph.derivative


class Derivative:
    """The derivatives of a graph, made when they are first asked for.

    Attributes:
        joints: {kinds of arguments: list of Joint}.
        refused: {kinds of arguments: why there is none}.
    """

    def __init__(self, graph):
        self.graph, self.joints, self.refused, self.tries = graph, {}, {}, {}

    def __call__(self, inputs, state=()):
        values = (*inputs, *state)
        try:
            kind = key_of(values)
            joints = self.joints.get(kind, ())
        except TypeError:  # an object that no graph holds
            return self.graph.execute_one_by_one(inputs, state)
        for joint in () if levels_on() else joints:
            try:
                return self._parted(joint.call(values if joint.flat else _leaves(values)))
            except GuardFailed:
                continue
        return self._first(kind, values, inputs, state)

    def explain(self):
        """Why the graphs that give gradients were planned, and what has none: lines."""
        joints = [joint for found in self.joints.values() for joint in found]
        graphs = [executor for joint in joints for executor in (joint.run_forward, joint.run_backward)]
        lines = [f"with a gradient: {line}" for executor in graphs for line in executor.explain().split("\n")]
        return lines + [f"with a gradient: op by op, for {why}" for why in dict.fromkeys(self.refused.values())]

    def _first(self, kind, values, inputs, state):
        """A call for which there is no derivative yet."""
        graph, leaves = self.graph, _leaves(values)
        if kind in self.refused or leaves is None or graph.effects:
            return graph.execute_one_by_one(inputs, state)
        level = next((x.level for x in leaves if getattr(x, "level", None) is not None), None)
        if level is None and levels_on():  # which see each op
            return graph.execute_one_by_one(inputs, state)
        if level is not None:
            found = _into(graph, level, values) if isinstance(level, Capture) else None
            return graph.execute_one_by_one(inputs, state) if found is None else self._parted(found)
        try:
            if len(self.joints.get(kind, ())) == MOST:
                raise NotDerived(f"guards of {MOST} derivatives failed")
            drawn = default_generator.get_state()
            try:
                with _uncollected():
                    joint = Joint(graph, values, derivative_of)
            finally:
                default_generator.set_state(drawn)  # a loop that is tried on an example may have drawn from it
            result = joint.call(leaves)
        except Exception as error:
            found = graph.execute_one_by_one(inputs, state)  # which raises for what is wrong in the program itself
            self.tries[kind] = self.tries.get(kind, 0) + 1
            if isinstance(error, NotDerived) or self.tries[kind] == MOST:  # else the next arguments may be fit for one
                self.refused[kind] = str(error)
            return found
        self.joints.setdefault(kind, []).append(joint)
        return self._parted(result)

    def _parted(self, results):
        count = len(self.graph.outputs)
        return list(results[:count]), list(results[count:])


@contextmanager
def _uncollected():
    """Let the collector of cycles wait: it would look again and again at thousands of new objects that stay."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _leaves(values):
    """The tensors, numbers and generators in arguments, in order; None where there is what no graph is bound to."""
    found = []
    return found if all([_take(value, found) for value in values]) else None


def _take(value, leaves):
    if isinstance(value, (Tensor, Generator)) or type(value) in (int, float):
        leaves.append(value)
        return True
    if type(value) in (list, tuple, dict):
        return all([_take(part, leaves) for part in (value.values() if type(value) is dict else value)])
    return value is None or isinstance(value, (bool, str))


def _into(graph, level, values):
    """Write a graph into a capture that is under way; what it gives as the user sees it, None where it cannot be."""
    nodes, tape, draws = list(level.block.nodes), list(level.tape), {k: list(v) for k, v in level.generators.items()}
    replay = Replay(level)
    try:
        given = [_carried(replay, value) for value in values]
        frame = dict(zip((id(v) for v in [*graph.inputs, *(s.value for s in graph.state)]), given))
        results = replay.block(graph.block, frame)
        results += [replay.read(s.new, frame) for s in graph.state]
        return [_shown(replay, a) for a in results]
    except NotDerived:
        level.block.nodes[:], level.tape[:] = nodes, tape
        level.generators.update(draws)
        return None


def _carried(replay, value):
    if type(value) in (list, tuple, dict):
        keys = list(value) if type(value) is dict else None
        parts = value.values() if keys is not None else value
        return Items(type_of_tree(value), [_carried(replay, part) for part in parts], keys)
    return replay.capture.lift(value)


def _shown(replay, a):
    if type(a) is Items:
        parts = [_shown(replay, part) for part in a.parts]
        return dict(zip(a.keys, parts)) if a.keys is not None else tuple(parts) if a.type.word == "Tuple" else parts
    return replay.shown(a)
