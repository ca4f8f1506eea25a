"""How many floating-point operations products, convolutions and attention take, for each module and op."""

import warnings
from collections import defaultdict

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.levels import mark_range
from tinygrad_ext.errors import refuse_unknown

__all__ = ["FlopCounterMode"]
__getattr__ = refuse_unknown(__name__)

_MARK = "flops of "
_CAPACITY = 1 << 18  # events of one block
_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


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

    Raises:
        NotImplementedError: a custom_mapping, for ops have the counts of their records.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     product = tg.ones(2, 3) @ tg.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode: custom_mapping is not supported: formulas are in tinygrad_ext/profiler/flops.py"
            )
        if mods is not None:
            warnings.warn("FlopCounterMode: mods is not needed, modules are found as they are called", stacklevel=3)
        self.depth, self.display = depth, display
        self.flop_counts = defaultdict(lambda: defaultdict(int))

    def __enter__(self):
        self.flop_counts.clear()
        self._names = {}
        hooks = later("module hooks")
        self._handles = (
            hooks.register_module_forward_pre_hook(lambda module, args: mark_range(self._begin(module), True)),
            hooks.register_module_forward_hook(
                lambda module, args, out: mark_range(self._names[module], False), always_call=True
            ),
        )
        self._recording = later("profiler recording").Recording(_CAPACITY, flops=True, shapes=2)
        self._recording.start()
        return self

    def __exit__(self, *exc):
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
        return self._names[module]

    def _count(self, events):
        makers = {e.sequence_nr: e for e in events if e.sequence_nr >= 0 and e.kind != "backward"}
        for event in events:
            if not event.flops or event.name in ("aten::add", "aten::mul"):
                continue
            names, above = {"Global"}, event
            while above is not None:
                if above.name.startswith(_MARK):
                    names.add(above.name.removeprefix(_MARK))
                above = makers.get(above.sequence_nr) if above.kind == "backward" else above.cpu_parent
            op = event.name.partition("::")[2]
            for name in names:
                self.flop_counts[name][getattr(tg.ops.aten, op, op)] += event.flops

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


def _row(name, count, total):
    unit, sign = next(((u, s) for u, s in _UNITS if count >= u), (1, ""))
    return name, f"{count / unit:.3f}{sign}" if sign else str(count), f"{100 * count / max(total, 1):.2f}%"


def _named(op):
    return f"aten.{getattr(op, '__name__', op)}"
