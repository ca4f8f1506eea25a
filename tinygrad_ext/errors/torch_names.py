"""PyTorch's public names, and which of them are here. Read when the error for an unknown name is written, not before.

The list is torch_names.json, written by tools/torch_names.py.
"""

import functools
import json
from pathlib import Path

OWN_MODULES = ("config", "plugins", "as_torch")  # modules for users that PyTorch has not


@functools.cache
def _places():
    listed = json.loads((Path(__file__).parent / "torch_names.json").read_text())["names"]
    return {place: {kind: frozenset(text.split()) for kind, text in kinds.items()} for place, kinds in listed.items()}


def place_of(module):
    """'torch.nn' for 'tinygrad_ext.nn'."""
    return "torch" + module.removeprefix("tinygrad_ext").removeprefix("torch")


def is_torch(module, name):
    """Whether PyTorch has a public `name` in the place of a module of ours."""
    place = place_of(module)
    kinds = _places().get(place, {})
    return any(name in names for names in kinds.values()) or f"{place}.{name}" in _places()


def hint(module, name, near):
    """A sentence for a name that PyTorch has and we have not; else ""."""
    if not is_torch(module, name):
        return ""
    way_out = f"Near: {', '.join(near)}." if near else "Ops and modules can be added: docs/write_a_plugin.md."
    full = f"{place_of(module)}.{name}"
    return f" PyTorch has {full}, tinygrad_ext does not (yet). {way_out} All names: docs/torch_names.md."


def for_users(module, names):
    """Those of a package's modules that are meant for users: PyTorch's, and a few of our own."""
    return sorted(n for n in names if is_torch(module, n) or n in OWN_MODULES)
