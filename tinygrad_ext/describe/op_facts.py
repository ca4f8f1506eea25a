"""Facts about an op, read off its record: what the command line prints and the reference pages contain."""

import re
import sys
from pathlib import Path

from tinygrad_ext import plugins
from tinygrad_ext.core.data.table import DTYPES
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry import prefixes, variants
from tinygrad_ext.testing.sweep import supported

PACKAGE = Path(__file__).parent.parent
LIBRARIES = ("numpy", "scipy")
_TAGS = {row.name: row.tag for row in DTYPES}


# ---- single facts --------------------------------------------------------------------------------------------------


def place(op):
    """(file, line) of the record, the file seen from the folder the package stands in."""
    path = Path(op.record.source)
    return (
        path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE.parent) else str(path)
    ), op.record.line


def family(op):
    """Name of the file of records, which is the name of its reference page; plugins' ops go by their namespace."""
    return Path(op.record.source).stem if op.record.owner == BUILTIN else op.name.partition("::")[0]


def dtypes(op):
    """Names of the dtypes an op is computed in; none for an op that only other ops call."""
    return supported(op) if variants(op.record) else []


def derivative(op):
    """How the op is differentiated, in words."""
    if op.kernel_kind == "composite" and not op.record.grad:
        return "through the ops it is written in"
    library = sys.modules.get("tinygrad_ext.library.state")
    if library is not None and (backward := library.backward_place(op)):
        return f"yes, by the backward at {Path(backward[0]).name}:{backward[1]}"
    with_rule = [n for n, rule in (op.record.grad or {}).items() if rule not in ("zero", "none")]
    return f"yes, by {', '.join(with_rule)}" if with_rule else "no"


def callables(op):
    """Spellings a user may call: add(), Tensor.add(), Tensor.add_(), out=, a + b."""
    record, kinds = op.record, variants(op.record)
    found = []
    for name in [op.schema.name, *(record.aliases or "").split()]:
        if "." in name:
            found.append(f"tinygrad_ext.{name}()")
            continue
        if "function" in kinds:
            found += [f"tinygrad_ext.{prefix}{name}()" for prefix in prefixes(record)]
        if "method" in kinds:
            found.append(f"Tensor.{name}()")
        if "inplace" in kinds:
            found.append(f"Tensor.{name}_()")
    return found + ["out="] * ("out" in kinds) + [f"operator {record.operator}"] * bool(record.operator)


def calls_library(op):
    """'numpy' or 'scipy' when the op's Python function calls it, else None.

    Follows functions of the same file, not the ops called: an op's neighbours are counted for themselves.
    """
    return _library_of(op.record.kernel or op.record.compose, set())


def _library_of(fn, seen):
    code = getattr(fn, "__code__", None)
    if code is None or code in seen:
        return None
    seen.add(code)
    for name in code.co_names:
        if name.partition(".")[0] in LIBRARIES:
            return name.partition(".")[0]
        other = fn.__globals__.get(name)
        if getattr(other, "__module__", None) == fn.__module__ and (found := _library_of(other, seen)):
            return found
    return None


def computed_by(op):
    """Kernel kind and what computes the op: the generated loops, the compiled kernel's file, or the Python function."""
    record, kind = op.record, op.kernel_kind
    if record.scalar is not None:
        ident = op.name.partition("::")[2].replace(".", "_")
        computed = [
            d for d in dtypes(op) if "float" not in (record.promote or "") or d.startswith(("float", "bf", "comp"))
        ]
        tags = ",".join(_TAGS[d] for d in computed)
        return f"{kind}, loops {ident}_{{{tags}}} from scalar={record.scalar!r}"
    name = record.kernel or record.compose
    if isinstance(name, str):
        return f"{kind} '{name}'{_kernel_file(name)}"
    fn = record.kernel or record.compose
    code = getattr(fn, "__code__", None)
    library = calls_library(op)
    at = f" at {Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""
    return f"{kind}, Python function {getattr(fn, '__name__', fn)}{at}" + (f", calls {library}" if library else "")


_DECLARED = (
    ("kernels", "*.c", r"^TGX_KERNEL\({name}, (\w+),", r"^static int {function}\("),
    ("native", "*.pyx", r"""register_kernel\(\s*["']{name}["'],\s*(\w+)""", r"^cdef object {function}\("),
)


def _kernel_file(name):
    """', kernels/softmax.c:12' when the sources are at hand: where the kernel's first function begins."""
    for folder, files, declared, begins in _DECLARED:
        pattern = re.compile(declared.format(name=re.escape(name)), re.M)
        for path in sorted((PACKAGE / folder).glob(files)):
            text = path.read_text()
            if found := pattern.search(text):
                start = re.search(begins.format(function=found[1]), text, re.M)
                line = text.count("\n", 0, start.start() if start else found.start()) + 1
                return f", {folder}/{path.name}:{line}"
    return ""


def owner(op):
    """Distribution that brought the op."""
    return str(op.record.owner)


def checks(op):
    """The command that runs the op's tests; "" for an op of the running program."""
    if op.record.owner == BUILTIN:
        return f"pytest -k {op.schema.name}"
    if op.schema.namespace not in plugins.declared():
        return ""
    return f"tinygrad-ext plugins check {op.record.owner.distribution} --op {op.schema.name}"


def page(op):
    """Reference page and anchor; "" for an op that is not the package's own."""
    if op.record.owner != BUILTIN:
        return ""
    anchor = op.name.partition("::")[2].replace(".", "").lower()
    return f"docs/reference/{family(op)}.md#{anchor}"


def facts(op):
    """Everything above as a dict of plain values."""
    file, line = place(op)
    return {
        "name": op.name,
        "schema": op.record.schema,
        "kind": op.kernel_kind,
        "file": file,
        "line": line,
        "computed_by": computed_by(op),
        "library": calls_library(op),
        "dtypes": dtypes(op),
        "derivative": derivative(op),
        "callables": callables(op),
        "owner": owner(op),
        "checks": checks(op),
        "page": page(op),
        "gaps": op.record.gaps or {},
        "doc": " ".join((op.record.doc or "").split()),
    }


# ---- a section of the reference ------------------------------------------------------------------------------------


def section(op):
    """Markdown of one op."""
    f = facts(op)
    rows = [
        ("Call", ", ".join(f"`{c}`" for c in f["callables"]) or "by other ops only"),
        ("Computed by", _kind_words(op)),
        ("Dtypes", ", ".join(f["dtypes"]) or "those of its callers"),
        ("Derivative", f["derivative"]),
        ("Owner", f["owner"]),
        ("Defined in", f"`{f['file']}`"),
    ]
    rows += [(f"Gap: {check}", reason) for check, reason in f["gaps"].items()]
    table = "\n".join(f"- {title}: {text}" for title, text in rows)
    return f"## {op.name.partition('::')[2]}\n\n```\n{f['schema']}\n```\n\n{f['doc']}\n\n{table}\n"


def _kind_words(op):
    words = {
        "pointwise": "generated loops",
        "kernel": "a kernel in C",
        "boxed": "a compiled kernel over Python objects",
        "python": "a Python function, one step for autograd",
        "composite": "other ops",
    }[op.kernel_kind]
    library = calls_library(op)
    return words + (f", calling {library}" if library else "")
