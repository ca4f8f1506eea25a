"""`ops list`, `ops where NAME`, `ops show NAME`."""

import json

KINDS = ("pointwise", "kernel", "python", "composite")


def add_parser(commands):
    """Add the `ops` command to the parser."""
    ops = commands.add_parser("ops", help="what ops there are, and where each of their parts stands")
    actions = ops.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="all ops with the kind of their kernel")
    listing.add_argument("--kind", choices=KINDS, help="only ops of one kind of kernel")
    listing.add_argument("--json", action="store_true", help="all facts, as JSON")
    listing.set_defaults(run=list_ops)
    for name, run, text in (
        ("where", where, "file, kernel, derivative, owner, checks and page of an op"),
        ("show", show, "schema, callables, dtypes, stub and doc of an op"),
    ):
        p = actions.add_parser(name, help=text)
        p.add_argument("name", help="exp, add.Tensor, aten::add.Tensor, nn.functional.gelu, ...")
        p.set_defaults(run=run)


def list_ops(options):
    """Print one line an op, then how many there are of each kind."""
    from tinygrad_ext import describe, plugins, registry
    from tinygrad_ext.cli.show import table

    plugins.load_all()
    ops = [o for o in registry.ops.values() if options.kind in (None, o.kernel_kind)]
    if options.json:
        print(json.dumps([describe.facts(o) for o in ops], indent=1))
        return
    rows = [
        (o.name, o.kernel_kind, describe.calls_library(o) or "", describe.family(o), describe.owner(o)) for o in ops
    ]
    table(("op", "kernel", "calls", "family", "owner"), rows)
    counts = {kind: sum(r[1] == kind for r in rows) for kind in KINDS}
    library = sum(bool(r[2]) for r in rows)
    print(
        f"\n{len(rows)} ops: "
        + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
        + f"; {library} call NumPy or SciPy"
    )


def where(options):
    """Print where the parts of each overload stand."""
    from tinygrad_ext import describe
    from tinygrad_ext.cli.show import facts

    for op in describe.find(options.name):
        f = describe.facts(op)
        facts(
            op.name,
            [
                ("record", f"{f['file']}:{f['line']}"),
                ("kernel", f["computed_by"]),
                ("derivative", f["derivative"]),
                ("owner", f["owner"]),
                ("checks", f["checks"]),
                ("page", f["page"]),
            ],
        )


def show(options):
    """Print what a user of the op wants to know."""
    from tinygrad_ext import describe, stubs
    from tinygrad_ext.cli.show import facts

    ops = describe.find(options.name)
    for op in ops:
        f = describe.facts(op)
        rows = [
            ("schema", f["schema"]),
            ("doc", f["doc"]),
            ("call", ", ".join(f["callables"])),
            ("dtypes", ", ".join(f["dtypes"])),
            ("derivative", f["derivative"]),
            ("kernel", f["kind"]),
            ("owner", f["owner"]),
        ]
        rows += [("gap", f"{check}: {reason}") for check, reason in f["gaps"].items()]
        facts(op.name, rows)
    for line in dict.fromkeys(line for op in ops for line in stubs.op_lines(op)):
        print("  " + line)
