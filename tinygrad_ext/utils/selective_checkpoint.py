"""Checkpoints that keep what some ops gave: two modes, one around each run of a function.

The first asks a policy about each op and keeps its results, the second hands them out again in place of the op. They
lie below autograd, which records the second run as it recorded the first.
"""

import enum
from collections import defaultdict

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpPacket
from tinygrad_ext.core.call.later import later
from tinygrad_ext.registry.op_namespace import OpOverload

from ._pytree import tree_map

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

_IGNORED = frozenset({"aten::detach"})  # what packing a tensor calls, in one run and not in the other
_AGAIN, _SPENT = object(), object()


class CheckpointPolicy(enum.Enum):
    """What becomes of the results of an op; PREFER and MUST are one without a compiler, and there is one device."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE, False)


class SelectiveCheckpointContext:
    """What a policy is told beside the op and its arguments: which run it is, and what the op gave."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """A result, and the version at which it was kept."""

    def __init__(self, value):
        self.value = value.detach() if isinstance(value, tg.Tensor) else value
        self.version = getattr(self.value, "_version", None)

    def get(self, may_change):
        """The result; RuntimeError when it was written to since."""
        if not may_change and getattr(self.value, "_version", None) != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated: recompute what is written to, "
                "or give allow_cache_entry_mutation=True"
            )
        return self.value


class _Run:
    """A context around one run: hands the ops to `process`."""

    def __init__(self, kept):
        self.kept, self.counts = kept, defaultdict(int)
        self.mode = later("dispatch modes").mode_by(self.ask)

    def __enter__(self):
        self.counts.clear()
        return self.mode.__enter__()

    def __exit__(self, *exc):
        return self.mode.__exit__(*exc)

    def ask(self, op, args, kwargs):
        """What takes the place of an op's results."""
        return op(*args, **kwargs) if op.name() in _IGNORED else self.process(op, args, kwargs)


class _First(_Run):
    """Keeps what the policy says."""

    def __init__(self, kept, policy):
        super().__init__(kept)
        self.policy = policy

    def process(self, op, args, kwargs):
        """Run an op and keep its results, or the note that it is to run again."""
        result = op(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        again = self.policy(context, op, *args, **kwargs) in _RECOMPUTED
        self.kept[op].append(_AGAIN if again else tree_map(_Kept, result))
        return result


class _Second(_Run):
    """Gives what was kept, in the order in which it came."""

    def __init__(self, kept, may_change):
        super().__init__(kept)
        self.may_change = may_change

    def process(self, op, args, kwargs):
        """What the op gave in the first run, or the op."""
        row, at = self.kept[op], self.counts[op]
        self.counts[op] += 1
        if at >= len(row):
            raise RuntimeError(
                f"{op} encountered during backward but not found in storage: the function called it {len(row)} times "
                "when it ran first; it must do the same both times"
            )
        if row[at] is _SPENT:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if row[at] is _AGAIN:
            return op(*args, **kwargs)
        found, row[at] = row[at], _SPENT
        return tree_map(lambda kept: kept.get(self.may_change), found)


@boundary
def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Two contexts for `checkpoint(context_fn=)`: what some ops give is kept, all else is computed again.

    Args:
        policy_fn_or_list: ``policy(context, op, *args, **kwargs)``, which gives a `CheckpointPolicy` or whether to
            keep; or a list of the ops whose results are kept, each an overload.
        allow_cache_entry_mutation: hand out what was kept even where it was written to since.

        >>> import functools
        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.checkpoint import checkpoint
        >>> keep = functools.partial(create_selective_checkpoint_contexts, [tg.ops.aten.mm.default])
        >>> x = tg.ones(2, 2, requires_grad=True)
        >>> checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keep).sum().backward()
    """
    policy = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                more = f" Name one of its overloads, such as {op}.default." if isinstance(op, OpPacket) else ""
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op).__name__}.{more}"
                )

        def policy(context, op, *args, **kwargs):
            return op in policy_fn_or_list

    elif not callable(policy_fn_or_list):
        raise TypeError(
            f"policy_fn_or_list must be either a function or a list of ops, not {type(policy_fn_or_list).__name__}"
        )
    kept = defaultdict(list)
    return _First(kept, policy), _Second(kept, allow_cache_entry_mutation)
