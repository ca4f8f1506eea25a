"""`tinygrad-ext plugins list|info|doctor|check`: the doctor reports crashes and hangs, and suffers none."""

import json
import sys
import time
import types
from pathlib import Path

import pytest

from tinygrad_ext import plugins
from tinygrad_ext.cli import main

HEAD = "from tinygrad_ext import hookimpl\n"
GOOD = """
import json, ssl
import tinygrad_ext as tg
from tinygrad_ext import hookimpl, nn
requires_api = ">=1,<2"

class Twice(nn.Module):
    def forward(self, input):
        return input + input

@hookimpl
def tgx_register_ops(register):
    register("demo::twofold(Tensor self) -> Tensor", compose=lambda self: self + self, variants="function method")

@hookimpl
def tgx_register_modules(register):
    register("demo::Twice", Twice)
"""


@pytest.fixture
def cli(capsys):
    """Run a command; (status, what it prints: JSON read, else text)."""

    def run(*arguments):
        code = main(["plugins", *arguments])
        out = capsys.readouterr()
        return code, (json.loads(out.out) if "--json" in arguments else out.out + out.err)

    return run


# ---- list and info -------------------------------------------------------------------------------------------------


def test_list_imports_nothing_and_says_what_is_announced(site, cli):
    site.plugin()
    site.install("tgx-s", entry_points="[tinygrad_ext.overrides]\nscipy.sparse = tgx_s.plugin\n")
    code, text = cli("list")
    rows = [line.split(None, 4) for line in text.splitlines()]
    assert code == 0
    assert rows[1] == ["demo", "tgx-demo", "1.0", "found", "ops.demo"]
    assert rows[2] == ["scipy.sparse", "tgx-s", "1.0", "found", "overrides for scipy.sparse"]
    assert "tgx_demo" not in sys.modules


def test_list_with_load_counts_what_is_registered_and_tells_what_failed(site, cli):
    site.plugin(text=GOOD)
    site.plugin("bad", text="raise ValueError('no luck')\n")
    code, text = cli("list", "--load")
    assert code == 1
    assert "ops.demo; 1 op, 1 module" in text and "active" in text
    assert "failed" in text and "ValueError: no luck (while it was imported" in text
    plugins.disable("bad")
    assert cli("list", "--load")[0] == 0


def test_list_as_json_holds_all_of_PluginInfo(site, cli):
    site.plugin()
    _, listed = cli("list", "--json")
    assert listed == [json.loads(json.dumps(i._asdict())) for i in plugins.list()] and listed[0]["name"] == "demo"


def test_damaged_metadata_is_told_in_a_plain_line(site, cli):
    site.plugin()
    site.install("tgx-odd", entry_points="[tinygrad_ext.plugins]\nno equals sign\n")
    plugins.table._scanned = None  # as in a new process
    code, text = cli("list")
    assert code == 0 and "tgx-demo" in text
    assert text.splitlines()[-1].startswith("warning: the entry points of ")


def test_list_of_nothing_says_how_to_begin(site, cli, monkeypatch):
    monkeypatch.setattr(plugins.table, "_scanned", [])
    assert "plugins new NAME" in cli("list")[1]
    assert cli("list", "--json") == (0, [])


def test_info_before_and_after_loading(site, cli):
    site.plugin(text=GOOD)
    code, text = cli("info", "tgx-demo")
    assert code == 0 and "tinygrad_ext.plugins: demo = tgx_demo.plugin" in text and "demo::twofold" not in text
    code, text = cli("info", "demo", "--load")
    assert code == 0 and "demo::twofold" in text and "demo::Twice" in text and " ms" in text
    assert cli("info", "demo", "--json")[1]["state"] == "active"


def test_info_of_a_broken_one(site, cli):
    site.plugin(text="raise ValueError('no luck')\n")
    code, text = cli("info", "demo", "--load")
    assert code == 1 and "no luck" in text and "plugin.py:1" in text


@pytest.mark.parametrize("command", ["info", "doctor"])
def test_an_unknown_name_ends_with_status_2_and_near_ones(site, cli, command):
    site.plugin()
    code, text = cli(command, "deno")
    assert code == 2 and "no plugin is called 'deno'" in text and "Near: demo" in text


def test_where_nothing_is_installed_an_unknown_name_says_how_to_install_it(site, cli, monkeypatch):
    monkeypatch.setattr(plugins.table, "_scanned", [])
    code, text = cli("info", "demo")
    assert code == 2 and "None is installed: pip install its package" in text and "pip install -e ." in text


@pytest.mark.parametrize("seconds", ["0", "-1"])
def test_the_doctor_refuses_a_time_that_no_plugin_could_keep(site, cli, seconds):
    site.plugin()
    code, text = cli("doctor", "demo", "--timeout", seconds)
    assert code == 2 and "--timeout" in text and "x>0" in text


def test_where_leads_from_an_op_of_a_plugin_to_its_checks_and_to_no_page_of_ours(site, capsys):
    site.plugin(text=GOOD)
    assert main(["ops", "where", "demo::twofold"]) == 0
    out = capsys.readouterr().out
    assert "tgx_demo/plugin.py:13\n" in out and "owner       tgx-demo 1.0\n" in out
    assert "checks      tinygrad-ext plugins check tgx-demo --op twofold\n" in out
    assert "page" not in out


# ---- doctor --------------------------------------------------------------------------------------------------------


def test_a_good_plugin_is_told_with_versions_and_import_times(site, cli):
    site.plugin(text=GOOD.replace("ssl", "tgx_slow", 1))
    site.write("tgx_slow.py", "import time; time.sleep(0.05)")
    code, found = cli("doctor", "--json", "demo")
    (report,) = found["plugins"]
    assert (code, found["ok"], report["state"], report["problems"]) == (0, True, "loaded", [])
    assert report["ops"] == ["demo::twofold"] and report["methods"] == ["Tensor.twofold"]
    assert report["modules"] == ["demo::Twice"] and report["requires_api"] == ">=1,<2"
    assert set(found["versions"]) == {"tinygrad_ext", "plugin API", "table", "python", "numpy"}
    assert 0 < report["own_milliseconds"] < report["milliseconds"]
    assert report["slowest_imports"]["tgx_slow"] >= 50
    assert "tgx_demo" not in sys.modules
    code, text = cli("doctor", "demo")
    assert code == 0 and "ms in all" in text and "plugins examined: 1; with problems: 0" in text


BAD = {
    "import": ("raise ValueError('no luck')\n", "failed", "ValueError: no luck (while it was imported)", "plugin.py:1"),
    "hook": (
        HEAD + "@hookimpl\ndef tgx_register_ops(register):\n    register(7)\n",
        "failed",
        "in its hook tgx_register_ops",
        "plugin.py:4: register(7)",
    ),
    "sys.exit": ("import sys\nsys.exit(3)\n", "failed", "SystemExit: 3", "plugin.py:2: sys.exit(3)"),
    "version": ("requires_api = '>=9'\n", "incompatible", "requires version >=9 of the plugin API", ""),
    "module": ("import no_such_module\n", "failed", "No module named 'no_such_module'", "plugin.py:1"),
    "segfault": (
        "import ctypes\nctypes.string_at(0)\n",
        "crash",
        "crashed the process (SIGSEGV) while it was loaded",
        "plugin.py:2: ctypes.string_at(0)",
    ),
    "os._exit": ("import os\nprint('bye', flush=True)\nos._exit(3)\n", "exit", "ended the process with status 3", ""),
    "hang": (
        "import time\nwhile True:\n    time.sleep(1)\n",
        "hang",
        "did not come to an end in 3 seconds, while it was loaded",
        "plugin.py:3: time.sleep(1)",
    ),
    "hang at exit": (
        "import threading, time\n"
        "def endless():\n    while True:\n        time.sleep(1)\n"
        "threading.Thread(target=endless).start()\n",
        "hang",
        "did not come to an end in 3 seconds, when the process ended, after it had been loaded",
        "plugin.py:4: time.sleep(1)",
    ),
    "at exit": (
        "import atexit, os\natexit.register(os.abort)\n" + HEAD,
        "crash",
        "(SIGABRT) when the process ended, after it had been loaded",
        "",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_plugin_is_reported_and_not_suffered(site, cli, case):
    text, kind, cause, line = BAD[case]
    site.plugin(text=text)
    code, found = cli("doctor", "demo", "--json", "--timeout", "3" if "hang" in case else "600")
    (problem,) = found["plugins"][0]["problems"]
    assert code == 1 and not found["ok"]
    assert problem["kind"] == kind and cause in problem["cause"] and line in problem["line"]
    assert problem["way_out"]
    assert "tgx_demo" not in sys.modules and plugins.info("demo").state == "found"
    if case == "os._exit":
        assert found["plugins"][0]["output"] == "bye"


def test_processes_that_a_plugin_started_end_with_its_own(site, cli, tmp_path):
    note = tmp_path / "pid"
    site.plugin(
        text=f"""
        import os, subprocess
        with open({str(note)!r}, "w") as f:
            f.write(str(subprocess.Popen(["sleep", "60"]).pid))
        os._exit(0)
        """
    )
    assert cli("doctor", "demo", "--json")[1]["plugins"][0]["state"] == "exit"
    assert _ended(int(note.read_text()))


def _ended(pid, seconds=600.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":  # killed; who takes its status is no matter of ours
            return True
        time.sleep(0.05)
    return False


def test_the_report_for_people_names_cause_line_and_way_out(site, cli):
    site.plugin(text="import no_such_module\n")
    code, text = cli("doctor", "demo")
    assert code == 1
    for fragment in (
        "plugin 'demo' of tgx-demo 1.0: failed",
        "problem      failed: ModuleNotFoundError",
        "plugin.py:1: import no_such_module",
        "install the module 'no_such_module'",
        "plugin API 1.5",
        "table 1.1",
        "plugins examined: 1; with problems: 1",
    ):
        assert fragment in text


def test_a_good_plugin_beside_bad_ones_is_well(site, cli):
    site.plugin("good")
    site.plugin("bad", text="import os\nos.abort()\n")
    _, found = cli("doctor", "good", "bad", "--json")
    assert [(r["name"], r["state"]) for r in found["plugins"]] == [("good", "loaded"), ("bad", "crash")]


def test_requirements_that_are_not_met_are_named(site, cli):
    site.plugin()
    info = site.folder / "tgx_demo-1.0.dist-info" / "METADATA"
    needs = [
        "numpy>=1",
        "tinygrad_ext>=0.1",
        "numpy<1",
        "no-such-package>=2",
        "other; extra == 'more'",
        "nope; python_version < '3'",
    ]
    lines = "".join(f"Requires-Dist: {n}\n" for n in needs)
    info.write_text(f"Metadata-Version: 2.1\nName: tgx-demo\nVersion: 1.0\n{lines}\n")
    code, found = cli("doctor", "demo", "--json")
    causes = [p["cause"] for p in found["plugins"][0]["problems"]]
    assert code == 1 and found["plugins"][0]["state"] == "loaded"
    assert causes[0].startswith("it needs numpy<1, and version ")
    assert causes[1:] == ["it needs no-such-package>=2, which is not installed"]


def test_conflicts_of_names_are_found(site, cli):
    op = "@hookimpl\ndef tgx_register_ops(register):\n    register('demo::f(Tensor self) -> Tensor', compose=abs)\n"
    for name, entry in (("tgx-a", "demo"), ("tgx-b", "demo.more")):
        module = name.replace("-", "_")
        site.install(
            name, files={f"{module}.py": HEAD + op}, entry_points=f"[tinygrad_ext.plugins]\n{entry} = {module}\n"
        )
    code, found = cli("doctor", "demo", "--json")
    assert code == 1
    assert [p["cause"] for r in found["plugins"] for p in r["problems"]] == [
        "demo::f is registered by tgx-b 1.0 too",
        "demo::f is registered by tgx-a 1.0 too",
    ]


def test_two_plugins_of_one_name_are_not_even_loaded(site, cli):
    for name in ("tgx-a", "tgx-b"):
        site.install(name, entry_points="[tinygrad_ext.plugins]\ndemo = tgx_none\n")
    code, found = cli("doctor", "demo", "--json")
    assert code == 1 and [r["state"] for r in found["plugins"]] == ["conflict", "conflict"]
    assert "several distributions declare a plugin 'demo'" in found["plugins"][0]["problems"][0]["cause"]


def test_a_disabled_plugin_is_left_alone_until_it_is_named(site, cli, monkeypatch):
    site.plugin(text="import os\nos.abort()\n")
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "demo")
    plugins.rescan()
    code, found = cli("doctor", "--json")
    assert next(r for r in found["plugins"] if r["name"] == "demo")["state"] == "disabled"
    assert cli("doctor", "demo", "--json")[1]["plugins"][0]["state"] == "crash"


def test_the_current_folder_chooses_no_code(site, cli, tmp_path, monkeypatch):
    site.plugin()
    for name in ("json", "faulthandler", "tgx_demo"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    monkeypatch.chdir(tmp_path)
    assert cli("doctor", "demo", "--json")[0] == 0


# ---- check ---------------------------------------------------------------------------------------------------------


def test_check_hands_its_options_on(cli, monkeypatch):
    seen = []
    fake = types.ModuleType("tinygrad_ext.cli.check")
    fake.run = lambda name, **options: seen.append((name, options)) or 1
    monkeypatch.setitem(sys.modules, "tinygrad_ext.cli.check", fake)
    assert main(["plugins", "check", "demo", "--only", "fake", "--op", "double", "--json"]) == 1
    assert seen == [("demo", {"as_json": True, "only": "fake", "op": "double"})]
