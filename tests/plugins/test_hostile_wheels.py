"""Bad plugins as real wheels in one real environment: pip installs them, and the host works as if they were not."""

import base64
import hashlib
import json
import re
import zipfile
from pathlib import Path

import pytest
from environments import Environment

HEAD = "import tinygrad_ext as tg\nfrom tinygrad_ext import hookimpl, nn\n"


def hook(*lines, name="ops"):
    body = "".join(f"    {line}\n" for line in lines)
    return f"@hookimpl\ndef tgx_register_{name}(register):\n{body}\n"


def registers(ns, fails_after):
    """An op with all its forms, an overload, a module; an exception after some of them."""
    lines = [
        f'register("{ns}::a(Tensor self) -> Tensor", compose=abs, variants="function method inplace out")',
        f'register("{ns}::a.by(Tensor self, float by) -> Tensor", compose=lambda self, by: self)',
    ]
    modules = ["class M(nn.Module):", "    pass", f'register("{ns}::M", M)']
    cut = {0: (0, None), 1: (1, None), 2: (2, None), 3: (2, 3)}[fails_after]
    ops = lines[: cut[0]] + (["raise KeyError(7)"] if cut[1] is None else [])
    return HEAD + hook(*ops) + hook(*modules, "raise KeyError(7)", name="modules")


GOOD = hook('register("{ns}::same(Tensor self) -> Tensor", compose=lambda self: self + 0)')
# name -> (the plugin's module, hook that fails, what the message must say)
CASES = {
    "raises": (HEAD + "raise ValueError('no luck')\n", "import", "ValueError: no luck"),
    **{
        f"after{k}": (registers(f"after{k}", k), f"tgx_register_{'modules' if k > 2 else 'ops'}", "KeyError: 7")
        for k in range(4)
    },
    "leaves": ("import sys\nsys.exit('good bye')\n", "import", "SystemExit: good bye"),
    "signature": (HEAD + hook("pass").replace("(register)", "(registry)"), "import", "no argument 'registry'"),
    "wrapper": (HEAD + hook("yield").replace("@hookimpl", "@hookimpl(wrapper=True)"), "import", "is a hook wrapper"),
    "twice": (
        HEAD + hook(*['register("twice::f(Tensor self) -> Tensor", compose=abs)'] * 2),
        "tgx_register_ops",
        "twice::f",
    ),
    "old": ("requires_api = '<1'\n", "import", "requires version <1 of the plugin API"),
    "lacks": ("import tgx_no_such_module\n", "import", "No module named 'tgx_no_such_module'"),
    "leans": ("import tgx_raises\n", "import", "The error came from plugin 'raises' of tgx-raises 1.5"),
    "foreign": (
        HEAD + hook('register("good::f(Tensor self) -> Tensor", compose=abs)'),
        "tgx_register_ops",
        "foreign namespace 'good'",
    ),
    "builtin": (
        HEAD + hook('register("aten::add.Tensor(Tensor self, Tensor other) -> Tensor", compose=max)'),
        "tgx_register_ops",
        "may neither add to it nor replace",
    ),
    "method": (
        HEAD + hook('register("method::sum(Tensor self) -> Tensor", compose=abs, variants="function method")'),
        "tgx_register_ops",
        "sum",
    ),
}
DEADLY = {
    "segfaults": ("import ctypes\nctypes.string_at(0)\n", "crash"),
    "hangs": ("while True:\n    pass\n", "hang"),
}
RIVAL = GOOD.format(ns="good")  # the same op from another distribution, which declares good.more
# what the host does with all of them installed; prints one JSON line for each
HOST = """
import json, sys, warnings
sys.path.insert(0, sys.argv[1])
from conftest import snapshot
import tinygrad_ext as tg
from tinygrad_ext import nn, ops, plugins

known = {"tinygrad_ext", *sys.stdlib_module_names}  # what we ourselves may import when a plugin fails
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    owner = str(plugins.owner_of(ops.good.same))
print(json.dumps({"name": "rival", "owner": owner, "warnings": [str(w.message) for w in caught]}))
for name in sys.argv[2:]:
    before, modules = snapshot(), set(sys.modules)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            getattr(ops, name).double
            answer = "it loaded"
        except AttributeError as error:
            answer = str(error)
    x = tg.ones(2, requires_grad=True)
    ops.good.same(x * 2).sum().backward()
    nn.Linear(2, 2)(x)
    print(json.dumps({
        "name": name, "answer": answer, "warnings": [str(w.message) for w in caught],
        "hook": plugins.info(name).state and next((f.hook for f in plugins.failed() if f.plugin == name), None),
        "same": snapshot() == before, "works": x.grad.tolist() == [2, 2],
        "left": [m for m in set(sys.modules) - modules if m.partition(".")[0] not in known],
    }))
"""


def wheel(folder, name, text, version="1.5"):
    """Write a wheel tgx-<name> with one module."""
    entry = "good.more" if name == "rival" else name
    info = f"tgx_{name}-{version}.dist-info"
    files = {
        f"tgx_{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tgx-{name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[tinygrad_ext.plugins]\n{entry} = tgx_{name}\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"tgx_{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, content in files.items():
            archive.writestr(place, content)
    return str(path)


def _digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with a good plugin and all bad ones."""
    folder = tmp_path_factory.mktemp("hostile")
    made = Environment(folder / "environment")
    texts = {
        "good": HEAD + GOOD.format(ns="good"),
        "rival": HEAD + RIVAL,
        **{n: c[0] for n, c in (CASES | DEADLY).items()},
    }
    made.pip("install", *(wheel(folder, name, text) for name, text in texts.items()))
    return made


@pytest.fixture(scope="module")
def told(environment):
    """What a program was told that used all of them in one process, by name."""
    lines = environment.python("-c", HOST, str(Path(__file__).parent), *CASES).splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize("name", CASES)
def test_the_host_works_and_the_message_says_who_where_why_and_what_to_do(told, name):
    _, hook, cause = CASES[name]
    row = told[name]
    assert row["works"] and row["same"] and row["left"] == [], row
    message = row["warnings"][0]
    assert row["hook"] == hook
    for fragment in (f"plugin '{name}' of tgx-{name} 1.5", f"{name} = tgx_{name}", cause, "Way out: "):
        assert fragment in message, (fragment, message)
    assert ("while it was imported" if hook == "import" else f"in its hook {hook}") in message
    assert re.search(r"is installed and (failed|incompatible)", row["answer"]), row["answer"]


def test_of_two_that_register_one_op_the_second_is_undone_and_both_are_named(told):
    (message,) = told["rival"]["warnings"]
    assert told["rival"]["owner"] == "tgx-good 1.5"
    for fragment in ("plugin 'good.more' of tgx-rival 1.5", "tgx-good 1.5", "good::same", "Way out: "):
        assert fragment in message, (fragment, message)


@pytest.mark.slow  # a process for each of them
def test_doctor_finds_every_fault_and_survives_crash_and_hang(environment):
    quick = [name for name in (*CASES, *DEADLY, "good") if name != "hangs"]
    reports = [
        environment.cli("plugins", "doctor", "--timeout", limit, *names, status=1)
        for limit, names in (("600", quick), ("3", ["hangs"]))
    ]
    found = {r["name"]: r for report in reports for r in report["plugins"]}
    for name, other in (("good", "tgx-rival"), ("good.more", "tgx-good")):
        (conflict,) = found.pop(name)["problems"]
        assert conflict["cause"] == f"good::same is registered by {other} 1.5 too"
    assert {name: r["state"] for name, r in found.items() if name in DEADLY} == {n: d[1] for n, d in DEADLY.items()}
    for name, r in found.items():
        problem = r["problems"][0]
        assert problem["way_out"] and (r["distribution"], r["version"]) == (f"tgx-{name}", "1.5")
        assert name not in CASES or name == "leans" or CASES[name][2] in problem["cause"]
    assert "tgx_segfaults.py:2: ctypes.string_at(0)" in found["segfaults"]["problems"][0]["line"]
    assert "tgx_hangs.py:" in found["hangs"]["problems"][0]["line"]


def test_uninstalled_they_are_gone(environment):
    names = [i["distribution"] for i in environment.cli("plugins", "list") if i["version"] == "1.5"]
    assert len(names) == len(CASES) + len(DEADLY) + 2
    environment.pip("uninstall", "--yes", *names)
    assert [i for i in environment.cli("plugins", "list") if i["version"] == "1.5"] == []
    assert list(environment.site.glob("tgx_*")) == []
