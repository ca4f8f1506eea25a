"""A bad plugin harms nobody: all is as before, and one warning says who, where, why and what to do."""

import re
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, ops, plugins
from tinygrad_ext.plugins import PluginWarning

HEAD = "from tinygrad_ext import hookimpl, nn\nimport tinygrad_ext as tg\n\n"
REGISTERS = (
    'register("demo::a(Tensor self) -> Tensor", compose=lambda self: self)',
    'register("demo::a.int(Tensor self, int n) -> Tensor", compose=lambda self, n: self)',
    'register("demo::b(Tensor self) -> Tensor", compose=lambda self: self, variants="function method inplace out")',
    'register("demo::c(Tensor self) -> Tensor", kernel=lambda self: self, grad={"self": "mul(grad, self)"})',
    'register("demo::d(Tensor self) -> Tensor", compose=lambda self: self, aliases="dd ddd")',
)


def hook(*lines, name="ops"):
    body = "".join(f"    {line}\n" for line in lines)
    return f"@hookimpl\ndef tgx_register_{name}(register):\n{body}\n"


def fails(site, tables, text, *fragments, others=("fine",)):
    """Install plugin `demo` with a text beside a good one; use it; check what is told and that nothing is left."""
    site.plugin("fine")
    ops.fine.double
    before = tables()
    site.plugin("demo", text=text)
    with pytest.warns(PluginWarning) as caught:
        with pytest.raises(AttributeError) as refused:
            ops.demo.double
    assert len(caught) == 1
    message = str(caught[0].message)
    for fragment in ("plugin 'demo' of tgx-demo 1.0", "demo = tgx_demo.plugin", "Way out: ", *fragments):
        assert re.search(fragment, message), (fragment, message)
    assert "installed and failed" in str(refused.value) or "installed and incompatible" in str(refused.value)
    assert tables() == before
    assert not [m for m in sys.modules if m.startswith("tgx_demo")]
    assert caught[0].filename == __file__
    assert ops.fine.double(tg.ones(1)).item() == 2
    (failure,) = plugins.failed()
    assert "Traceback" in failure.traceback and failure.milliseconds >= 0
    with pytest.raises(AttributeError, match="installed and"):  # again: no second warning, no second attempt
        ops.demo.double
    return failure, message


def test_it_raises_at_import(site, tables):
    text = HEAD + 'raise ValueError("no such luck")\n'
    failure, _ = fails(
        site, tables, text, "ValueError: no such luck", "while it was imported", "plugin.py:4: raise Value"
    )
    assert failure.hook == "import"


def test_it_raises_in_its_hook_with_the_line_of_its_own_code(site, tables):
    text = HEAD + hook("helper(register)") + "def helper(register):\n    tg.zeros(2).view(3)\n"
    failure, _ = fails(site, tables, text, "in its hook tgx_register_ops", r"plugin.py:9: tg.zeros\(2\).view\(3\)")
    assert failure.error.startswith("RuntimeError: ")


@pytest.mark.parametrize("k", range(len(REGISTERS) + 3))
def test_it_raises_after_its_kth_registration(site, tables, k):
    modules = "class M(nn.Module):\n    pass\n\nclass N(nn.Module):\n    pass\n\n"
    lines = [*REGISTERS, 'register("demo::M", M)', 'register("demo::N", N)']
    lines.insert(k, "raise KeyError(7)")
    cut = len(REGISTERS) + (k <= len(REGISTERS))
    text = HEAD + modules + hook(*lines[:cut]) + hook(*lines[cut:], "pass", name="modules")
    fails(site, tables, text, "KeyError: 7", "plugin.py:[0-9]+: raise KeyError")
    with pytest.raises(AttributeError):
        tg.ones(1).b
    with pytest.raises(AttributeError, match="installed and failed"):
        nn.plugins.demo


@pytest.mark.parametrize(
    "line, error",
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise SystemExit", "SystemExit: no text"),
        ("def f(): f()\nf()", "RecursionError"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E: an exception that cannot be printed"),
        ("def f(:\n", r"SyntaxError: .*plugin.py:4"),
        ("import tgx_no_such_dependency", "No module named 'tgx_no_such_dependency'.*install the module 'tgx_no_such"),
        ("from tinygrad_ext import nosuchname", "ImportError: cannot import name 'nosuchname'"),
        ("try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('x') from e", "caused by ZeroDivisionError"),
    ],
    ids=lambda v: v[:24],
)
def test_whatever_it_raises_at_import_is_told(site, tables, line, error):
    fails(site, tables, HEAD + line + "\n", error)


def test_ctrl_c_goes_through_and_the_plugin_can_be_tried_again(site, tables):
    before = tables()
    site.plugin(text=HEAD + hook(REGISTERS[0], "if tg._tgx_stop: raise KeyboardInterrupt"))
    tg._tgx_stop = True
    try:
        with pytest.raises(KeyboardInterrupt):
            ops.demo
        assert tables() == before
        assert plugins.failed() == []
        tg._tgx_stop = False
        assert ops.demo.a(tg.ones(1)).item() == 1
    finally:
        del tg._tgx_stop


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "@hookimpl\ndef tgx_register_ops(reg): pass\n",
            r"no argument 'reg': it is called as tgx_register_ops\(register\)",
        ),
        ("@hookimpl\ndef tgx_register_op(register): pass\n", "no hook tgx_register_op; did you mean tgx_register_ops"),
        (
            "@hookimpl\ndef something(register): pass\n",
            "no hook something; hooks are tgx_register_devices, tgx",
        ),
        ("def tgx_register_ops(register): pass\n", "not marked as a hook: put @tinygrad_ext.hookimpl"),
        ("def tgx_register_modul(register): pass\n", "not marked as a hook.*did you mean tgx_register_modules"),
        ("@hookimpl(wrapper=True)\ndef tgx_register_ops(register):\n    yield\n", "is a hook wrapper"),
        ("@hookimpl(hookwrapper=True)\ndef tgx_register_ops(register):\n    yield\n", "is a hook wrapper"),
        ("@hookimpl\ndef tgx_register_ops(register):\n    yield\n", "is a generator or coroutine"),
        ("@hookimpl\nasync def tgx_register_ops(register): pass\n", "is a generator or coroutine"),
        ("requires_api = '>=2,<3'\n", "requires version >=2,<3 of the plugin API .* has 1.5.*pip install -U tgx-demo"),
        ("requires_api = 'one'\n", "'one' is not one of >=1"),
        ("requires_api = 1\n", "must be text such as '>=1,<2', not 1"),
    ],
)
def test_a_hook_that_is_none_is_refused(site, tables, text, message):
    fails(site, tables, HEAD + text, message)


def test_an_api_version_that_fits_is_accepted(site):
    site.plugin(text="requires_api = '>=1, <2'\n" + HEAD + hook(REGISTERS[0]))
    assert ops.demo.a(tg.ones(1)).item() == 1


@pytest.mark.parametrize(
    "line, message",
    [
        (REGISTERS[0] + "; " + REGISTERS[0], "demo::a is registered already, by tgx-demo 1.0 at .*plugin.py:6"),
        ('register("fine::x(Tensor self) -> Tensor", compose=len)', "foreign namespace 'fine'; its own is 'demo'"),
        ('register("aten::x(Tensor self) -> Tensor", compose=len)', "'aten' belongs to tinygrad_ext"),
        ('register("aten::relu(Tensor self) -> Tensor", compose=len)', "'aten' belongs to tinygrad_ext"),
        ('register("x(Tensor self) -> Tensor", compose=len)', "has no namespace; write 'demo::x'"),
        (
            'register("demo::x(Tensor self) -> Tensor", compose=len, variants="function method", aliases="relu")',
            "Tensor.relu",
        ),
        ('register("demo::x(Tensor self) -> Tensor", scalar="x + 1")', "a C expression is compiled when the package"),
        ('register("demo::x(Tensor self) -> Tensor", kernel="matmul")', "names of compiled kernels are for built-in"),
        ('register("demo::x(Tensor self) -> Tensor", compose=3)', "take a function, not 3"),
        ('register("demo::x(Tensor self) -> Tensor")', "exactly one of scalar, kernel and compose"),
        ('register("demo::x(Tensor self) -> Tensor", compose=len, operator="add")', "operators of Tensor belong to"),
        ('register("demo::x(Tensor self) -> Tensor", compose=len, where="nn.functional")', "stands in ops.<namespace>"),
        ('register("demo::x(Tensor self) -> Tensor", compose=len, variants="method")', "must hold 'function'"),
        ('register("demo::x(Tensor self) -> Tensor", compose=len, colour="red")', "unknown field 'colour'"),
        (
            'register("demo::x(Tensor self) -> Tensor", kernel=len, grad={"y": "grad"})',
            "rule for 'y', which is no tensor",
        ),
        ('register("demo::x(Tensor self) -> Tensor", kernel=len, grad={"self": len})', "a derivative rule is a Python"),
        (
            'register("demo::x(Tensor self) -> Tensor", kernel=len, grad={"self": "nope(grad)"})',
            "calls an op that does not",
        ),
        (
            'register("demo::x(Tensor self) -> Tensor", kernel=len, grad={"self": lambda grad, q: q})',
            "rule asks for 'q'",
        ),
        ('register("demo::x(Tensor self, Tensor self) -> Tensor", compose=len)', "duplicate argument name"),
        ('register("demo::x(Stream s) -> Tensor", compose=len)', "no op takes a Stream yet"),
        ('register("demo::x(Tensor self -> Tensor", compose=len)', "RuntimeError"),
        ("register(5, compose=len)", "must be a str"),
    ],
)
def test_a_registration_that_may_not_be_is_refused(site, tables, line, message):
    fails(site, tables, HEAD + hook(line), message, "in its hook tgx_register_ops")


@pytest.mark.parametrize(
    "line, message",
    [
        ('register("demo::M", 3)', "expected a subclass of tinygrad_ext.nn.Module, got 3"),
        ('register("demo::M", dict)', "expected a subclass of tinygrad_ext.nn.Module"),
        ('register("fine::M", M)', "foreign namespace 'fine'"),
        ('register("M", M)', "has no namespace; write 'demo::M'"),
        ('register("nn::Linear", M)', "'nn' belongs to tinygrad_ext"),
        ('register("demo::M-1", M)', "'M-1' is no name for a class"),
        ('register("demo::M", M); register("demo::M", N)', "is registered as 'demo::M' already, by tgx-demo 1.0"),
        ('register("demo::M", M); register("demo::N", M)', "is registered as 'demo::M' already"),
        ('register("demo::L", nn.Linear)', "is registered as 'nn::Linear' already, by tinygrad_ext"),
        ("register(M, M)", "name must be a str"),
    ],
)
def test_a_module_that_may_not_be_registered_is_refused(site, tables, line, message):
    classes = "class M(nn.Module):\n    pass\n\nclass N(nn.Module):\n    pass\n\n"
    fails(site, tables, HEAD + classes + hook(line, name="modules"), message, "in its hook tgx_register_modules")


def test_a_register_kept_for_later_is_refused(site):
    site.plugin(text=HEAD + "kept = []\n" + hook("kept.append(register)"))
    plugins.load("demo")
    with pytest.raises(RuntimeError, match="inside the hook only, which is over"):
        sys.modules["tgx_demo.plugin"].kept[0]("demo::late(Tensor self) -> Tensor", compose=len)


def test_a_record_cannot_pass_for_a_built_in_one(site, tables):
    line = 'register.add(Record("aten::x(Tensor self) -> Tensor", "", 1, BUILTIN, {"compose": len}))'
    text = HEAD + "from tinygrad_ext.ops.record import BUILTIN, Record\n" + hook(line)
    fails(site, tables, text, "'aten' belongs to tinygrad_ext; tgx-demo 1.0 may neither")


def test_an_op_name_that_two_distributions_want_names_both_and_the_ways_out(site, tables):
    site.plugin("demo", text=HEAD + hook(REGISTERS[0]))
    site.install(
        "tgx-rival",
        "2.0",
        files={"tgx_rival.py": HEAD + hook(REGISTERS[0])},
        entry_points="[tinygrad_ext.plugins]\ndemo.rival = tgx_rival\n",
    )
    with pytest.warns(PluginWarning, match="plugin 'demo.rival' of tgx-rival 2.0") as caught:
        ops.demo
    for wanted in (
        "by tgx-demo 1.0 at",
        "tgx-rival 2.0 wants it too",
        "TINYGRAD_EXT_DISABLE_PLUGINS=tgx-demo",
        "rename",
    ):
        assert wanted in str(caught[0].message)
    assert plugins.owner_of(ops.demo.a) == ("tgx-demo", "1.0")


def test_an_overload_of_another_s_op_is_a_collision_too(site):
    site.plugin("demo", text=HEAD + hook(REGISTERS[0]))
    site.install(
        "tgx-rival",
        files={"tgx_rival.py": HEAD + hook(REGISTERS[1])},
        entry_points="[tinygrad_ext.plugins]\ndemo.rival = tgx_rival\n",
    )
    with pytest.warns(PluginWarning, match="demo::a is registered already, by tgx-demo 1.0"):
        ops.demo
    assert len(ops.demo.a.overloads()) == 1


def test_two_distributions_of_one_plugin_name_are_both_left_out(site, monkeypatch):
    site.plugin("demo")
    site.install(
        "tgx-rival", "2.0", files={"tgx_rival.py": ""}, entry_points="[tinygrad_ext.plugins]\ndemo = tgx_rival\n"
    )
    with pytest.raises(AttributeError) as caught:
        ops.demo.double
    for wanted in (
        "installed and in conflict",
        "tgx-demo 1.0 in",
        "tgx-rival 2.0 in",
        "DISABLE_PLUGINS=tgx-",
        "demo.<more>",
    ):
        assert wanted in str(caught.value)
    assert [p.state for p in plugins.list()] == ["conflict", "conflict"]
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "tgx-rival")
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_a_plugin_that_imports_a_failing_one_names_both_causes(site, tables):
    site.plugin("demo", text=HEAD + "from tinygrad_ext import ops\nops.broken.double\n")
    site.plugin("broken", text='raise ValueError("broken inside")\n', version="0.3")
    before = tables()
    with pytest.warns(PluginWarning) as caught:
        with pytest.raises(AttributeError):
            ops.demo.double
    first, second = (str(w.message) for w in caught)
    assert "plugin 'broken' of tgx-broken 0.3" in first
    assert "plugin 'demo' of tgx-demo 1.0" in second
    assert "plugin 'broken' of tgx-broken 0.3 is installed and failed: ValueError: broken inside" in second
    assert tables() == before


def test_a_plugin_that_imports_the_module_of_a_failing_one_names_it(site, tables):
    site.plugin("broken", text='raise ValueError("broken inside")\n')
    text = HEAD + "import tgx_broken.plugin\n"
    fails(
        site,
        tables,
        text,
        "broken inside",
        "The error came from plugin 'broken' of tgx-broken 1.0",
        "plugin.py:4: import",
    )


def test_plugins_that_need_each_other_are_told_of_the_circle(site, tables):
    site.plugin("left", text="from tinygrad_ext import ops\nops.right.double\n")
    site.plugin("right", text="from tinygrad_ext import ops\nops.left.double\n")
    before = tables()
    with pytest.warns(PluginWarning) as caught:
        with pytest.raises(AttributeError):
            ops.left.double
    assert "a circle of imports" in str(caught[0].message)
    assert [f.plugin for f in plugins.failed()] == ["left", "right"]
    assert tables() == before


def test_a_shared_dependency_stays_and_the_rest_leaves(site, tables):
    (site.folder / "shared_dependency.py").write_text("")
    site.install(
        "tgx-demo",
        files={
            "tgx_demo/__init__.py": "",
            "tgx_demo/plugin.py": "import shared_dependency, tgx_demo.more, tgx_helper\n1 / 0\n",
            "tgx_demo/more.py": "",
            "tgx_helper.py": "",
        },
        entry_points="[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin\n",
    )
    with pytest.warns(PluginWarning, match="ZeroDivisionError"), pytest.raises(AttributeError):
        ops.demo.double
    assert {m for m in sys.modules if m.startswith(("tgx_", "shared_dependency"))} == {"shared_dependency"}


def test_modules_that_the_program_had_imported_stay(site):
    site.plugin(text="1 / 0\n")
    import tgx_demo

    with pytest.warns(PluginWarning), pytest.raises(AttributeError):
        ops.demo.double
    assert sys.modules["tgx_demo"] is tgx_demo
    assert "tgx_demo.plugin" not in sys.modules
    assert not hasattr(tgx_demo, "plugin")


def test_a_failing_plugin_does_not_take_the_modules_of_a_good_one_in_its_package(site):
    site.install(
        "tgx-suite",
        files={
            "tgx_suite/__init__.py": "",
            "tgx_suite/good.py": HEAD + hook('register("good::a(Tensor self) -> Tensor", compose=lambda self: self)'),
            "tgx_suite/bad.py": "from tinygrad_ext import ops\nops.good.a\n1 / 0\n",
        },
        entry_points="[tinygrad_ext.plugins]\ngood = tgx_suite.good\nbad = tgx_suite.bad\n",
    )
    with pytest.warns(PluginWarning, match="plugin 'bad'"), pytest.raises(AttributeError):
        ops.bad.double
    assert {m for m in sys.modules if m.startswith("tgx_")} == {"tgx_suite", "tgx_suite.good"}
    assert ops.good.a(tg.ones(1)).item() == 1


def test_a_plugin_that_names_a_part_of_the_package_cannot_take_it_away(site):
    site.install("tgx-demo", entry_points="[tinygrad_ext.plugins]\ndemo = tinygrad_ext.nosuch\n")
    with pytest.warns(PluginWarning, match="No module named 'tinygrad_ext.nosuch'"), pytest.raises(AttributeError):
        ops.demo.double
    assert sys.modules["tinygrad_ext.nn"] is nn
