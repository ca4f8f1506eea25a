"""Writes the names of PyTorch that libraries may import and that are not here: `python -m tools.absent_names`.

Read off an installed PyTorch, its private modules too, and marked by what `import torch` gives without the list. The
file is tinygrad_ext/as_torch/absent_names.txt, a module a line; tinygrad_ext/as_torch/absent_names.py reads it.
"""

import contextlib
import importlib
import io
import pkgutil
import sys
import types
import typing
import warnings
from pathlib import Path

FILE = Path(__file__).parent.parent / "tinygrad_ext" / "as_torch" / "absent_names.txt"
# what nothing but PyTorch's own parts and tests imports
INSIDE = [
    "__",
    "include",
    "testing._internal",
    "_vendor",
    "_numpy",
    "_native",
    "_refs",
    "_prims",
    "_decomp",
    "_docs",
    "_torch_docs",
    "_meta_registrations",
    "_strobelight",
    "nativert",
    "_inductor.",
    "_dynamo.",
    "_export.",
    "_logging.",
    "onnx._internal",
    "ao.pruning.",
    "ao.ns.",
    "quantization.",
    "nn.backends",
    "utils.hipify",
    "utils._sympy",
    "utils._strobelight",
    "utils.bottleneck",
    "utils.viz",
    "export.pt2",
    "fx.passes.",
    "fx.experimental.",
    "distributed._pycute",
    "distributed.flight_recorder",
    "distributed._tools",
    "distributed.debug",
    "distributed._shard.",
    "distributed._sharded_tensor.",
    "distributed._sharding_spec.",
    "distributed.elastic.",
    "distributed.tensor._",
    "distributed.pipelining.",
    "distributed.run",
    "distributed.launch",
    "distributed._symmetric_memory",
    "distributed._local_tensor",
    "distributed._ops",
    "distributed.rpc.",
    "distributed.checkpoint._",
    "_higher_order_ops.",
    "_library.",
    "cuda._",
    "utils.data.datapipes.",
    "multiprocessing._",
    "utils._debug",
    "backends._",
    "backends.xeon",
    "utils.serialization",
    "package.",
    "_lazy.",
    "mtia.",
    "_custom_op.",
    "_dispatch.",
    "distributed._composable.",
    "nested._internal.ops",
    "_functorch.partitioners",
    "_functorch._",
    "_functorch.aot",
    "profiler._",
    "utils.data.datapipes.utils",
    "_lobpcg",
    "_linalg_utils",
    "utils.mkldnn",
    "_appdirs",
    "_weights_only",
    "_size_docs",
    "_storage_docs",
    "_tensor_docs",
    "_sources",
    "_guards",
    "_custom_ops",
    "_functorch.pyfunctorch",
    "distributed.optim.",
    "distributed.algorithms._",
    "distributed.nn.",
    "distributed.fsdp._",
    "distributed.checkpoint.examples",
    "cuda.tunable",
]
# parts of those that are imported all the same
WANTED = [
    "_dynamo.eval_frame",
    "_dynamo.utils",
    "_dynamo.decorators",
    "_dynamo.testing",
    "_dynamo.exc",
    "fx.experimental.proxy_tensor",
    "fx.experimental.symbolic_shapes",
    "fx.passes.shape_prop",
    "fx.passes.graph_drawer",
    "_higher_order_ops.flex_attention",
    "distributed.elastic.agent",
    "distributed.elastic.multiprocessing",
    "distributed.elastic.multiprocessing.errors",
    "distributed.elastic.utils",
    "distributed.elastic.metrics",
    "distributed.tensor._utils",
    "distributed._composable.fsdp",
    "distributed._composable.replicate",
    "distributed.pipelining.schedules",
    "distributed.pipelining.stage",
    "utils.data.datapipes.iter",
    "utils.data.datapipes.map",
    "utils.data.datapipes.datapipe",
    "onnx._internal.exporter",
]
# modules that tell what is compiled in PyTorch under its own name
COMPILED = ["torch.overrides", "torch._C"]


def is_read(place):
    """Whether a module's names are listed; any name is taken for one of the others."""
    return place in WANTED or not any(
        (place == part.rstrip(".") and part[-1] != ".") or place.startswith(part) for part in INSIDE
    )


def kind(value):
    """The letter for what stands for a name, with its members or value behind an equals sign; else None."""
    if isinstance(value, type):
        if hasattr(value, "__members__"):
            return "e", "=" + ",".join(filter(None, value.__members__))
        return ("x" if issubclass(value, BaseException) else "t"), ""
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, str) and value.isidentifier()):
        return "v", f"={value!r}"
    if type(value) in (dict, list, set, tuple):
        return "c", f"={type(value).__name__}"
    if type(value).__name__ in ("dtype", "layout", "memory_format", "qscheme"):
        return "o", ""
    return ("f", "") if callable(value) else None


def read():
    """{place: {name: kind}} of the installed PyTorch, its own names alone."""
    torch = importlib.import_module("torch")
    found = {"": torch}
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
            place = info.name.removeprefix("torch.")
            if not place.startswith(("__", "include", "_vendor", "testing._internal.")):
                found[place] = None
            if is_read(place):
                with contextlib.suppress(BaseException):  # some exit, others want packages that are not there
                    found[place] = importlib.import_module(info.name)
    out = {place: dict(names(module)) if module else {"*": ("*", "")} for place, module in found.items()}
    ops = {name.partition("::")[2] for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    ops = {name if "." in name else f"{name}.default" for name in ops}
    return {**out, "ops:aten": dict.fromkeys(ops | {name.partition(".")[0] for name in ops}, ("f", ""))}


def names(module):
    """Pairs of a name that belongs to the module, and its kind."""
    for name, value in vars(module).items():
        # types of the interpreter's own say that they are builtins, and are found in types
        own = "types" if getattr(types, name, types) is value else getattr(value, "__module__", None) or module.__name__
        source = sys.modules.get(own)
        if name[0] != "_" and own.partition(".")[0] in sys.stdlib_module_names and getattr(source, name, None) is value:
            yield name, ("i", f"={own}")
            continue
        if type(value).__module__ == "typing" or isinstance(value, (types.UnionType, types.GenericAlias)):
            if name[0] != "_" or not isinstance(value, (typing.TypeVar, typing.ParamSpec)):  # a name for annotations
                yield name, ("i", "=typing") if getattr(typing, name, None) is value else ("a", "")
            continue
        if isinstance(value, types.ModuleType) and name[0] != "_":
            if value.__spec__ and value.__name__.partition(".")[0] in ("torch", "numpy", *sys.stdlib_module_names):
                yield name, ("m", f"={value.__name__}")
            continue
        if name.startswith("__") or name == "TYPE_CHECKING" or not str(own).startswith("torch"):
            continue
        plain = isinstance(value, (type, types.FunctionType)) and not hasattr(module, "__path__")
        if plain and own != module.__name__ and name not in getattr(module, "__all__", ()):
            if getattr(source, name, None) is value:
                yield name, ("r", f"={own}")
            continue
        if (
            module.__name__ in ("torch", "torch._C")
            and callable(value)
            and not isinstance(value, type)
            and is_op(module, name)
        ):
            continue
        letter = kind(value)
        homes = COMPILED if own == "torch._C" else [] if own.startswith(module.__name__) else [own]
        homes = [home for home in homes if getattr(sys.modules.get(home), name, None) is value]
        if letter and homes and module.__name__ not in homes:
            letter = ("r", f"={homes[0]}", letter)
        if letter:
            yield name, letter


def is_op(module, name):
    """Whether a compiled function is an op or the inside of one, which nobody imports by name."""
    if module.__name__ == "torch":
        return name.startswith("_") and not hasattr(module._C._VariableFunctions, name)
    return (
        name[0] != "_"
        or name.startswith(("_jit", "_cuda", "_nn", "_linalg", "_sparse", "_special", "_fft"))
        or hasattr(module._VariableFunctions, name)
    )


def _is_wanted(name):
    """Whether there is no such op, or of an op that is there no such overload."""
    op, _, overload = name.partition(".")
    packet = getattr(sys.modules["tinygrad_ext"].ops.aten, op, None)
    return (packet is not None and not hasattr(packet, overload)) if overload else packet is None


def lacking(found):
    """What of it `import torch` does not give; every module stays, as a place that can be imported."""
    from tinygrad_ext import as_torch
    from tinygrad_ext.as_torch import absent_names

    absent_names.places.cache_clear()
    absent_names.FILE = Path("/dev/null")
    as_torch.install(replace=True)
    out = {}
    out["ops:aten"] = {n: kind for n, kind in found.pop("ops:aten").items() if _is_wanted(n)}
    for place, listed in found.items():
        try:
            module = importlib.import_module(f"torch.{place}".rstrip("."))
        except ImportError:
            module = None
        out[place] = {
            name: letter for name, letter in listed.items() if name != "*" and module and not hasattr(module, name)
        }
        if module is None:
            out[place] = {
                name: letter
                for name, letter in listed.items()
                if letter[0] not in "tfrm" or (letter[0] == "r" and _is_there(letter[1][1:], name))
            } | {"*": ("*", "")}
        elif module is not None and not out[place]:
            del out[place]
    out = {place: {n: _settled(n, letter) for n, letter in listed.items()} for place, listed in out.items()}
    as_torch.uninstall()
    return out


def _settled(name, letter):
    """The letter of a name, that of what stands for it where the module that it comes from has none here."""
    return letter[:2] if len(letter) == 2 or _is_there(letter[1][1:], name) else letter[2]


def _is_there(place, name):
    """Whether the module that defines a name has it here."""
    from tinygrad_ext.as_torch import helpers

    try:
        found = helpers.find(place.removeprefix("torch."), name)
        return bool(found) or hasattr(importlib.import_module(place), name)
    except ImportError:
        return False


def line(place, listed):
    """The line of a module: its place, then the names of each kind."""
    groups = {}
    for name, (letter, more) in sorted(listed.items()):
        groups.setdefault(letter, []).append(name + more)
    return "|".join([place, *(letter + " " + " ".join(group) for letter, group in sorted(groups.items()))])


def main():
    """Write the file."""
    found = lacking(read())
    FILE.write_text("".join(line(place, listed) + "\n" for place, listed in sorted(found.items())))


if __name__ == "__main__":
    sys.exit(main())
