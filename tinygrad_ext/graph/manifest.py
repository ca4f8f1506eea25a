"""The manifest of an archive of graphs: written, and judged when it is read."""

import re

from tinygrad_ext.core.data.random import Generator, default_generator

from . import versions

FORMAT = "tinygrad_ext graphs 1"
_METHOD = re.compile(r"[A-Za-z_]\w{0,99}(?:\.\w{1,100}){0,20}", re.A)
_EXTRA = re.compile(r"[\w.\- ]{1,100}(?:/[\w.\- ]{1,100}){0,20}", re.A)


def method_name(name):
    """The name of a method, which is a part of the name of an entry. ValueError where it cannot be one."""
    if type(name) is not str or not _METHOD.fullmatch(name):
        raise ValueError(f"a method's name is made of letters, digits, _ and dots, not {str(name)[:100]!r}")
    return name


def extra_name(name):
    """The name of an extra file. ValueError for what would leave the folder, or means different things to systems."""
    if type(name) is not str or not _EXTRA.fullmatch(name) or any(not part.strip(". ") for part in name.split("/")):
        raise ValueError(
            f"an extra file's name is made of letters, digits, '_', '-', '.', ' ' and '/', not {str(name)[:100]!r}"
        )
    return name


def manifest_of(program, methods, ops, told, extra):
    """What is written, as JSON values."""
    from tinygrad_ext import __version__  # lazy: the package's own door

    owners = {str(op.record.owner) for op in ops.values()}
    return {
        "format": FORMAT,
        "made_by": f"tinygrad_ext {__version__}",
        "methods": {name: {"signature": signature_told(graph)} for name, graph in methods.items()},
        "ops": {
            name: {"version": op.record.version, "schema": str(op.schema), "owner": str(op.record.owner)}
            for name, op in sorted(ops.items())
        },
        "owners": {owner: versions.install(owner) for owner in sorted(owners) if versions.is_foreign(owner)},
        "generators": [name for name, value in program.state.items() if _is_own_generator(value)],
        "examples": {name: len(rows) for name, rows in told.items()},
        "extra_files": list(extra),
        "notes": program.notes,
    }


def _is_own_generator(value):
    return isinstance(value, Generator) and value is not default_generator


def signature_told(graph):
    """'(x: Tensor, n: int) -> 2 values', for people."""
    given = ", ".join(f"{v.name}: {v.type}" for v in graph.inputs)
    return f"({given}) -> {len(graph.outputs)} value{'s' * (len(graph.outputs) != 1)}"


_KINDS = {
    "format": str,
    "made_by": str,
    "methods": dict,
    "ops": dict,
    "owners": dict,
    "generators": list,
    "examples": dict,
    "extra_files": list,
    "notes": dict,
}


def checked(manifest):
    """The manifest, where each part is of its kind. ValueError else."""
    if type(manifest) is not dict or not str(manifest.get("format", "")).startswith("tinygrad_ext graphs "):
        raise ValueError("it says of no format 'tinygrad_ext graphs'")
    if manifest["format"] != FORMAT:
        raise versions.Unfit(
            f"it was written in the format {manifest['format'][:60]!r}, this version reads '{FORMAT}': update "
            "tinygrad_ext"
        )
    for key, kind in _KINDS.items():
        if type(manifest.get(key)) is not kind:
            raise ValueError(f"its '{key}' is no {kind.__name__}")
    for name in manifest["methods"]:
        method_name(name)
    for name in manifest["extra_files"]:
        extra_name(name)
    if len(set(manifest["extra_files"])) != len(manifest["extra_files"]):
        raise ValueError("it names an extra file twice")
    for name, row in manifest["ops"].items():
        if type(row) is not dict or type(row.get("version")) is not int:
            raise ValueError(f"its op {name[:100]!r} has no version")
        if type(row.get("schema")) is not str or type(row.get("owner")) is not str:
            raise ValueError(f"its op {name[:100]!r} has no schema or no owner")
    if any(name not in manifest["methods"] or type(n) is not int for name, n in manifest["examples"].items()):
        raise ValueError("its examples are not numbers of methods")
    if not all(type(text) is str for text in [*manifest["owners"].values(), *manifest["generators"]]):
        raise ValueError("its owners or generators are no texts")
    return manifest
