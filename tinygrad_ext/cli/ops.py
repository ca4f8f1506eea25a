"""`ops list`, `ops where NAME`, `ops show NAME`."""

import click

from tinygrad_ext import plugins, registry
from tinygrad_ext.cli.show import as_json, dump, facts, note, table

KINDS = ("pointwise", "kernel", "boxed", "python", "composite")
NAME = "NAME is exp, add.Tensor, aten::add.Tensor, nn.functional.gelu, ..."


@click.group()
def ops():
    """What ops there are, and where each of their parts stands."""


@ops.command("list")
@click.option("--kind", type=click.Choice(KINDS), help="Only ops of one kind of kernel.")
@click.option("--kernel", is_flag=True, help="Only how many there are of each kind, and why some kernels are Python.")
@click.option("--jvp", is_flag=True, help="How the tangents of forward mode are found, in place of the kernel.")
@click.option("--batch", is_flag=True, help="How they go through vmap, in place of the kernel; loop: sample by sample.")
@as_json
def list_ops(kind, kernel, jvp, batch, as_json):
    """All ops with the kind of their kernel, then how many there are of each. Loads every plugin."""
    from tinygrad_ext.describe import op_facts  # lazy: for this command only

    plugins.load_all()
    found = [o for o in registry.ops.values() if kind in (None, o.kernel_kind)]
    if as_json:
        return dump([op_facts.facts(o) for o in found])
    if kernel:
        return by_kernel(found)
    if jvp:
        from tinygrad_ext.func import tangents  # lazy: for this command only

        return by_rule(found, "jvp", lambda op: tangents.kind_of(op.record))
    if batch:
        from tinygrad_ext.func import rules  # lazy: for this command only

        return by_rule(found, "batch", rules.kind_of)
    libraries = [op_facts.calls_library(o) for o in found]
    rows = [
        (o.name, ", ".join(filter(None, (o.kernel_kind, library))), op_facts.family(o), op_facts.owner(o))
        for o, library in zip(found, libraries)
    ]
    table(("op", "kernel", "family", "owner"), rows)
    print()
    note(f"{counted(found)}; {sum(map(bool, libraries))} call NumPy or SciPy")


def counted(found):
    """How many ops, and how many of each kind of kernel."""
    counts = {kind: sum(o.kernel_kind == kind for o in found) for kind in KINDS}
    return f"{len(found)} ops: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)


def by_kernel(found):
    """The ops whose kernels are Python, with the reason, and how many there are of each kind."""
    from tinygrad_ext.describe import op_facts, speaking_python  # lazy: for this command only

    named = [(o, speaking_python.reason(o)) for o in found if o.kernel_kind in ("boxed", "python")]
    table(("op", "kernel", "why", "owner"), [(o.name, o.kernel_kind, why or "", op_facts.owner(o)) for o, why in named])
    print()
    note(counted(found))


def by_rule(found, column, kind_of):
    """Ops with the kind of their rule, and how many there are of each."""
    kinds = [kind_of(o) for o in found]
    table(("op", column), [(o.name, kind) for o, kind in zip(found, kinds)])
    print()
    note(", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds), key=kinds.count, reverse=True)))


@ops.command(epilog=NAME)
@click.argument("name")
@as_json
def where(name, as_json):
    """File, kernel, derivative, owner, checks and page of each overload of an op."""
    from tinygrad_ext.describe import op_facts  # lazy: for this command only

    found = [op_facts.facts(op) for op in registry.find(name)]
    if as_json:
        return dump(found)
    for f in found:
        rows = [("record", f"{f['file']}:{f['line']}"), ("kernel", f["computed_by"])]
        facts(f["name"], rows + [(key, f[key]) for key in ("derivative", "owner", "checks", "page")])


@ops.command(epilog=NAME)
@click.argument("name")
@as_json
def show(name, as_json):
    """Schema, callables, dtypes, type stub and doc of an op."""
    from tinygrad_ext.describe import op_facts, stubs  # lazy: for this command only

    found = registry.find(name)
    if as_json:
        return dump([{**op_facts.facts(op), "stub": stubs.op_lines(op)} for op in found])
    for op in found:
        f = op_facts.facts(op)
        rows = [
            ("schema", f["schema"]),
            ("doc", f["doc"]),
            ("call", ", ".join(f["callables"])),
            ("dtypes", ", ".join(f["dtypes"])),
            ("derivative", f["derivative"]),
            ("kernel", f["kind"]),
            ("owner", f["owner"]),
        ]
        facts(op.name, rows + [("gap", f"{check}: {reason}") for check, reason in f["gaps"].items()])
    for line in dict.fromkeys(line for op in found for line in stubs.op_lines(op)):
        print("  " + line)  # code: whole lines
