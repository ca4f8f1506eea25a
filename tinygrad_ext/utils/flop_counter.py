"""How many floating-point operations products, convolutions and attention take, for each module and op."""

import functools
import warnings
from collections import defaultdict

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpPacket
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.levels import mark_range
from tinygrad_ext.errors import refuse_unknown

from ._pytree import tree_map

__all__ = ["FlopCounterMode", "register_flop_formula"]
__getattr__ = refuse_unknown(__name__)

_MARK, _COUNTED = "flops of ", "counted by a formula"
_CAPACITY = 1 << 18  # events of one block
flop_registry = {}  # op -> the formula that it was registered with
_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


@boundary
def register_flop_formula(targets, get_raw=False):
    """Return a decorator that enters a function as the count of an op, or of several: of `library`'s, most of all.

    It gets the op's arguments and the keyword `out_shape`, tensors by their shapes; with get_raw tensors and `out_val`.

    Raises:
        ValueError: a target that is no op, such as `ops.mylib.foo`.
        RuntimeError: one that has a formula.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.flop_counter import FlopCounterMode, register_flop_formula
        >>> @tg.library.custom_op("doc_flops::twice", mutates_args=())
        ... def twice(x: tg.Tensor) -> tg.Tensor:
        ...     return x + x
        >>> @register_flop_formula(tg.ops.doc_flops.twice)
        ... def count(x_shape, *, out_shape=None):
        ...     return x_shape.numel()
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = twice(tg.ones(2, 3))
        >>> counter.get_total_flops()
        6
    """

    def register(formula):
        counts = formula if get_raw else _of_shapes(formula)
        for op in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(op, OpPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be an op, as ops.mylib.foo, got {op!r} "
                    f"of type {type(op).__name__}"
                )
            if op in flop_registry:
                raise RuntimeError(f"duplicate registrations for {op}: FlopCounterMode(custom_mapping=) replaces one")
            flop_registry[op] = counts
        return counts

    return register


def _of_shapes(formula):
    @functools.wraps(formula)
    def counts(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(_shape_of, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return counts


def _shape_of(value):
    return value.shape if isinstance(value, tg.Tensor) else value


@boundary
class FlopCounterMode:
    """Counts what a `with` block computes, its backward passes included, which count to the modules of their forward.

    A multiplication and an addition are two. Counted are products of matrices, convolutions, recurrent layers and
    attention; element by element nothing is. Modules are named by the class of the outermost and the names of
    attributes, as "Net.layers.0"; "Global" is all of them and what is outside.
    A traced or scripted program that is captured in the block counts what its capture computes too.

    Args:
        mods: accepted and not needed, with a warning.
        depth: of the names in the table that is printed; None: all.
        display: whether to print the table at the end of the block.
        custom_mapping: {op: formula}, as `register_flop_formula` takes them, in place of what is counted else.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     product = tg.ones(2, 3) @ tg.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        self._given = {
            op: f if getattr(f, "_get_raw", False) else _of_shapes(f) for op, f in (custom_mapping or {}).items()
        }
        if mods is not None:
            warnings.warn("FlopCounterMode: mods is not needed, modules are found as they are called", stacklevel=3)
        self.depth, self.display = depth, display
        self.flop_counts = defaultdict(lambda: defaultdict(int))

    def __enter__(self):
        self.flop_counts.clear()
        self._names, self._inside = {}, []
        self._formulas = {**flop_registry, **self._given}
        self._mode = later("dispatch modes").mode_by(self._count_by_formula) if self._formulas else None
        hooks = later("module hooks")
        self._handles = (
            hooks.register_module_forward_pre_hook(lambda module, args: mark_range(self._begin(module), True)),
            hooks.register_module_forward_hook(
                lambda module, args, out: mark_range(self._end(module), False), always_call=True
            ),
        )
        self._recording = later("profiler recording").Recording(_CAPACITY, flops=True, shapes=2)
        self._recording.start()
        if self._mode:
            self._mode.__enter__()
        return self

    def __exit__(self, *exc):
        if self._mode:
            self._mode.__exit__(*exc)
        self._recording.stop()
        for handle in self._handles:
            handle.remove()
        events = self._recording.events({})
        if events.dropped:
            warnings.warn(
                f"FlopCounterMode: the block had {events.dropped} events more than the {_CAPACITY} that are counted",
                stacklevel=2,
            )
        self._count(events)
        if self.display and exc[0] is None:
            print(self.get_table(self.depth))

    def _begin(self, module):
        if module not in self._names:
            for path, part in module.named_modules():
                self._names[part] = _MARK + ".".join([type(module).__name__, *([path] if path else [])])
        self._inside.append(self._names[module])
        return self._names[module]

    def _end(self, module):
        return self._inside.pop() if self._inside else self._names[module]

    def _count_by_formula(self, func, args, kwargs):
        """What a dispatch mode calls for each op; those of the backward pass are told from no module."""
        op = getattr(func, "overloadpacket", func)
        if op not in self._formulas:
            return func(*args, **kwargs)
        mark_range(_COUNTED, True)
        try:
            result = func(*args, **kwargs)
        finally:
            mark_range(_COUNTED, False)
        count = self._formulas[op](*args, **kwargs, out_val=result)
        for name in {"Global", *(inside.removeprefix(_MARK) for inside in self._inside)}:
            self.flop_counts[name][op] += count
        return result

    def _count(self, events):
        makers = {e.sequence_nr: e for e in events if e.sequence_nr >= 0 and e.kind != "backward"}
        counted = {id(above) for event in events if event.name == _COUNTED for above in _up_from(event)}
        for event in events:
            if not event.flops or event.name in ("aten::add", "aten::mul") or id(event) in counted:
                continue
            if any(above.name == _COUNTED for above in _up_from(event)):
                continue
            names, above = {"Global"}, event
            while above is not None:
                if above.name.startswith(_MARK):
                    names.add(above.name.removeprefix(_MARK))
                above = makers.get(above.sequence_nr) if above.kind == "backward" else above.cpu_parent
            op = event.name.partition("::")[2]
            op = getattr(tg.ops.aten, op, op)
            for name in names:
                self.flop_counts[name][op] += event.flops

    def get_total_flops(self):
        """All of the last block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{name of a module: {op: count}}"""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """Text with a row for each module, down to a depth, and the ops in it."""
        depth, total = 999_999 if depth is None else depth, self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[name]
            rows.append(_row(" " * level + name, sum(counts.values()), total))
            rows += [_row(" " * level + f" - {_named(op)}", count, total) for op, count in counts.items()]
        widths = [max(map(len, column)) for column in zip(*rows)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)


def _up_from(event):
    """An event, and those that it ran in."""
    while event is not None:
        yield event
        event = event.cpu_parent


def _row(name, count, total):
    unit, sign = next(((u, s) for u, s in _UNITS if count >= u), (1, ""))
    return name, f"{count / unit:.3f}{sign}" if sign else str(count), f"{100 * count / max(total, 1):.2f}%"


def _named(op):
    return f"aten.{getattr(op, '__name__', op)}"
