"""Installed plugins that add one op each, written as pip would leave them."""

_MODULE = """from tinygrad_ext import hookimpl


@hookimpl
def tgx_register_ops(register):
    register("{name}::double(Tensor self) -> Tensor", compose=lambda self: self + self, doc="Twice self.")
"""


def write_plugins(folder, count):
    """Put `count` distributions into a folder that is to stand on sys.path; returns their names."""
    names = [f"dummy{i}" for i in range(count)]
    for name in names:
        info = folder / f"tgx_{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"tgx_{name}.py").write_text(_MODULE.format(name=name))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tgx-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[tinygrad_ext.plugins]\n{name} = tgx_{name}\n")
        (info / "RECORD").write_text(f"tgx_{name}.py,,\n")
    return names
