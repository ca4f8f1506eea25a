"""Writes the list of PyTorch's public names, present and absent: `python -m tools.torch_names [--check]`.

The names are read off an installed PyTorch of the version that is compared with; without one, those of the list stay
and only the marks are made anew: `make stubs docs` does that after a name was added. The list is shipped as
tinygrad_ext/errors/torch_names.json, errors speak by it, docs/torch_names.md shows it, and docs/differences.md has
how many there are of each module.
"""

import importlib
import json
import sys
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tinygrad_ext" / "errors" / "torch_names.json"
PAGE = ROOT / "docs" / "torch_names.md"
DIFFERENCES = ROOT / "docs" / "differences.md"
MARKS = ("<!-- Counts: written by tools/torch_names.py; do not edit. -->\n", "<!-- End of counts. -->\n")
VERSION = "2.13"
# what programs import; "" is torch itself. Submodules of these are names of theirs.
NAMESPACES = """
    nn nn.functional nn.init nn.parameter nn.attention nn.modules nn.utils nn.utils.rnn nn.utils.parametrize
    nn.utils.parametrizations optim optim.lr_scheduler optim.swa_utils autograd autograd.function autograd.functional
    autograd.graph autograd.forward_ad autograd.profiler linalg fft special utils utils.data utils.checkpoint
    utils.hooks utils.dlpack library overrides func jit distributions return_types random testing serialization storage
    types signal.windows sparse nested masked amp backends cuda cpu mps xpu accelerator compiler export fx onnx
    profiler quasirandom hub package futures multiprocessing distributed
"""
CONSTANTS = ("dtype", "layout", "memory_format", "qscheme")


# ---- PyTorch's names -----------------------------------------------------------------------------------------------


def installed():
    """The PyTorch that is compared with, its build for CPUs, or None: others have further names."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.__version__.startswith(VERSION) and torch.version.cuda is None else None


def read():
    """{"torch.nn": ["AdaptiveAvgPool1d", ...]} of the installed PyTorch."""
    torch = importlib.import_module("torch")
    torch = importlib.import_module("torch")
    out = {"torch": _public(torch), "torch.Tensor": _public(torch.Tensor)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in NAMESPACES.split():
            out["torch." + place] = _public(importlib.import_module("torch." + place))
    return out


def _public(place):
    return sorted(n for n in dir(place) if not n.startswith("_") and _is_public(place, n))


def _is_public(place, name):
    if isinstance(place, type) or name in getattr(place, "__all__", ()):
        return True
    value = getattr(place, name, None)
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{place.__name__}.{name}"
    own = getattr(value, "__module__", None)
    if place.__name__ == "torch":
        return type(value).__name__ in CONSTANTS or (callable(value) and str(own).startswith("torch"))
    if isinstance(value, types.BuiltinFunctionType) or (isinstance(value, type) and issubclass(value, Exception)):
        # compiled, as nn.functional.conv2d; where there is an __all__, that would name it
        return not hasattr(place, "__all__") and "torch_function" not in name
    return callable(value) and f"{own}.".startswith(place.__name__ + ".")


# ---- the marks -----------------------------------------------------------------------------------------------------


def ours(place):
    """What stands for PyTorch's `place` here, or None."""
    tg = importlib.import_module("tinygrad_ext")
    if place == "torch.Tensor":
        return tg.Tensor
    try:
        return importlib.import_module("tinygrad_ext" + place.removeprefix("torch"))
    except ImportError:
        return None


def is_present(place, name):
    """Whether a name is here and does something."""
    found = ours(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = getattr(found, name, None) if found is not None else None
        if value is None and not hasattr(found, name):
            return False
    return not str(getattr(value, "__doc__", "")).startswith("NotImplementedError")


def marked(names):
    """{"torch.nn": {"present": "...", "absent": "..."}}"""
    out = {}
    for place, listed in names.items():
        here = [n for n in listed if is_present(place, n)]
        out[place] = {"present": " ".join(here), "absent": " ".join(n for n in listed if n not in here)}
    return out


# ---- the files -----------------------------------------------------------------------------------------------------


def render(names=None):
    """Text of the data file: for some names, else for those it has."""
    if names is None:
        names = {
            p: sorted(f"{m['present']} {m['absent']}".split()) for p, m in json.loads(DATA.read_text())["names"].items()
        }
    return json.dumps({"torch": VERSION, "names": marked(names)}, indent=1) + "\n"


def rows_of(data):
    """(place, present names, absent names) of each place."""
    return [(place, m["present"].split(), m["absent"].split()) for place, m in data["names"].items()]


def counted(text, data):
    """The page of differences with the counts between its marks made anew."""
    before, _, rest = text.partition(MARKS[0])
    _, found, after = rest.partition(MARKS[1])
    if not found:
        raise ValueError(f"{DIFFERENCES.name} lacks {MARKS[0]!r} and {MARKS[1]!r} for the counts to stand between")
    rows = rows_of(data)
    total, here = sum(len(p) + len(a) for _, p, a in rows), sum(len(p) for _, p, _ in rows)
    link = lambda place: f"torch_names.md#{place.replace('.', '').lower()}"
    lines = [
        f"{here} of {total} public names of PyTorch {data['torch']} are here:",
        "",
        "| place | present | absent |",
        "|---|---|---|",
        *(f"| [{place}]({link(place)}) | {len(p)} | {len(a)} |" for place, p, a in rows),
        "",
    ]
    return before + MARKS[0] + "\n".join(lines) + MARKS[1] + after


def page(data):
    """Markdown of the list."""
    lines = [
        "<!-- Generated by tools/torch_names.py from an installed PyTorch; do not edit. -->",
        "",
        "# PyTorch's public names, present and absent",
        "",
        "The same list is in the package, as `torch_names.json`, and the error for an absent name is written from it.",
        "A name counts as present when it does something; how it differs, where it does, and how many names of each",
        "module are here stands in [differences](differences.md#not-here).",
        "",
    ]
    for place, present, absent in rows_of(data):
        lines += [f"## {place}", "", f"Present: {_listed(present)}", "", f"Absent: {_listed(absent)}", ""]
    return "\n".join(lines)


def _listed(names):
    return ", ".join(f"`{n}`" for n in names) or "none"


def main(arguments):
    """Write the files, or with --check say which are stale."""
    text = render(read() if installed() else None)
    data = json.loads(text)
    files = {DATA: text, PAGE: page(data), DIFFERENCES: counted(DIFFERENCES.read_text(), data)}
    stale = [path for path, new in files.items() if not path.exists() or path.read_text() != new]
    if "--check" in arguments:
        if stale:
            print(f"stale: {', '.join(p.name for p in stale)}; run python -m tools.torch_names")
        return bool(stale)
    for path in stale:
        path.write_text(files[path])
    print(f"{len(stale)} files of PyTorch's names written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
