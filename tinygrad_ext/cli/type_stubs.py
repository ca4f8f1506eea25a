"""`stubs`: type stubs of the ops of installed plugins, as a package that `tinygrad_ext/ops/__init__.pyi` takes in."""

import sys
from pathlib import Path

import click

from tinygrad_ext import plugins, registry
from tinygrad_ext.cli.plugins import BROKEN, load_quietly
from tinygrad_ext.cli.show import as_json, dump
from tinygrad_ext.plugins.model import phrase

PACKAGE = "tinygrad_ext_plugin_ops"
HEAD = "# Written by `tinygrad-ext stubs` from the schemas of installed plugins; do not edit.\n"
# overloads of an op are tried in order, so a later one may overlap an earlier one
CHECKS = '# mypy: disable-error-code="overload-overlap, overload-cannot-match, misc"\n'
# an op is an object: it is called, and its overloads are attributes
OP = """
class _Op:
    def __getattr__(self, overload: _b.str) -> _Any: ...
"""


@click.command()
@click.option("--output", default="typings", show_default=True, metavar="DIR", help="Folder to write into.")
@as_json
def stubs(output, as_json):
    """Write type stubs, so that mypy and pyright know tinygrad_ext.ops.<namespace>.<name>. Loads every plugin.

    pyright looks into `typings` by itself; for mypy set mypy_path = "typings". Exit status 1 when a plugin is broken,
    whose ops are then missing.
    """
    load_quietly()
    folder = Path(output) / PACKAGE
    written = write(folder)
    out = [i for i in plugins.list() if i.state in BROKEN]
    broken = [f"{i.distribution} {i.version} is {phrase(i.state)}: {i.reason}" for i in out]
    if as_json:
        dump({"folder": str(folder), "files": written, "missing": broken})
    else:
        print(f"wrote {len(written)} files in {folder}: {', '.join(written)}")
        for text in broken:
            print(f"its ops are left out: {text}", file=sys.stderr)
    return int(bool(broken))


def write(folder):
    """Write a file for each namespace; those of plugins that are gone leave. Returns the names of the files."""
    namespaces = sorted(n for n in registry.namespaces if n != "aten")
    files = {f"{n}.pyi": namespace_stub(n) for n in namespaces}
    files["__init__.pyi"] = HEAD + "".join(f"from {PACKAGE} import {n} as {n}\n" for n in namespaces)
    foreign = [f.name for f in folder.glob("*") if not _ours(f)]
    if foreign:
        raise click.BadParameter(f"{folder} holds {foreign[0]}, which this command did not write: choose another DIR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.pyi"):
            old.unlink()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"{folder} cannot be written: {error.strerror}; choose another DIR") from None
    return sorted(files)


def _ours(file):
    return file.suffix == ".pyi" and file.read_text(encoding="utf-8", errors="replace").startswith(HEAD)


def namespace_stub(namespace):
    """Text of the stub of ops.<namespace>."""
    from tinygrad_ext.describe.stubs import DTYPES, GENERATOR, PREAMBLE, TENSOR, result_class  # lazy: for this command

    found = dict(sorted(vars(registry.namespaces[namespace]).items()))
    results = dict.fromkeys(result_class(op.schema) for f in found.values() for op in f.candidates)
    parts = [HEAD + CHECKS + PREAMBLE + DTYPES + GENERATOR + TENSOR + OP, *filter(None, results)]
    parts += [_op(name, f) for name, f in found.items()]
    return "\n".join(parts)


def _op(name, f):
    from tinygrad_ext.describe.stubs import stub  # lazy: for this command only

    body = stub(f, "__call__").replace("def __call__(", "def __call__(self, ")
    indented = "\n".join("    " + line if line else "" for line in body.split("\n"))
    return f"class _{name}_op(_Op):\n{indented}\n\n{name}: _{name}_op\n"
