"""What a process of another's code prints is bounded, and nothing of its family survives it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinygrad_ext import plugins
from tinygrad_ext.cli import main
from tinygrad_ext.plugins import child

linux = pytest.mark.skipif(sys.platform != "linux", reason="the family is found in the table of processes of Linux")
# each leaves a process behind that writes its number into the file argv[1]; `stay` keeps it
STAY = """
import os, signal, subprocess, sys, time
def stay():
    with open(sys.argv[1] + ".part", "w") as f:
        f.write(str(os.getpid()))
    os.rename(sys.argv[1] + ".part", sys.argv[1])
    while True:
        time.sleep(1)
def wait():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
"""
LEFT = {
    "child": "if not os.fork(): stay()\nwait()",
    "setsid": "if not os.fork():\n    os.setsid()\n    stay()\nwait()",
    "forks twice": "if not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n    stay()\nwait()",
    "ignores signals": """
if not os.fork():
    os.setsid()
    for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        try: signal.signal(s, signal.SIG_IGN)
        except (OSError, ValueError): pass
    stay()
wait()""",
    "another program": """
if not os.fork():
    os.setsid()
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    os.execve(sys.executable, [sys.executable, "-S", "-c", code, sys.argv[1]], {})
wait()
time.sleep(0.1)""",
    "closes its files": "if not os.fork():\n    os.setsid()\n    os.closerange(0, 3)\n    stay()\nwait()",
    "forks on and on": """
if not os.fork():
    os.setsid()
    for _ in range(200):
        if os.fork(): os._exit(0)
    stay()
wait()""",
    "kills itself": "if not os.fork():\n    os.setsid()\n    stay()\nwait()\nos.kill(os.getpid(), signal.SIGKILL)",
}


def gone(pid):
    """Whether a process has ended; its status may still wait for somebody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def python(code, *arguments, seconds=30, **options):
    return child.run([sys.executable, "-S", "-c", code, *map(str, arguments)], seconds=seconds, **options)


def test_status_and_output_are_those_of_the_program():
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    assert python(code) == (3, "out\nerr\n")
    assert python("pass") == (0, "")
    assert python("import os; os.abort()")[0] == -6
    assert python("import sys; print(sys.stdin.read())") == (0, "\n")


def test_a_program_that_takes_too_long_is_ended():
    assert python("import time; time.sleep(600)", seconds=0.3) == (child.TIMEOUT, "")


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_is_cut_off_and_its_program_ended(stream):
    code = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
    status, output = python(code, limit=100_000, seconds=600)
    assert (status, len(output)) == (child.FLOOD, 100_000)


def test_a_flood_grows_no_memory():
    program = [sys.executable, "-S", "-c", "import os\nwhile True: os.write(1, b'x' * 65536)"]
    script = f"""
import resource
from tinygrad_ext.plugins import child
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
status, output = child.run({program!r}, seconds=600)
assert status == child.FLOOD and len(output) == child.LIMIT
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10 * child.LIMIT // 1024


@linux
@pytest.mark.parametrize("way", LEFT)
def test_nothing_that_it_started_survives(tmp_path, way):
    note = tmp_path / "pid"
    status, _ = python(STAY + LEFT[way], note, seconds=120)
    assert status == (-9 if way == "kills itself" else 0)
    assert gone(int(note.read_text()))


@linux
def test_a_family_of_a_flooding_program_is_ended_too(tmp_path):
    code = STAY + "if not os.fork():\n    os.setsid()\n    stay()\nwait()\nwhile True: os.write(1, b'x' * 65536)"
    assert python(code, tmp_path / "pid", limit=1000)[0] == child.FLOOD
    assert gone(int((tmp_path / "pid").read_text()))


@linux
def test_the_caller_s_own_children_are_left_alone():
    own = subprocess.Popen(["sleep", "60"])
    try:
        python("pass")
        assert own.poll() is None and not gone(own.pid)
    finally:
        own.kill()
        own.wait()


@linux
def test_it_ends_with_the_process_that_wanted_it(tmp_path):
    note = tmp_path / "pid"
    code = STAY + "if not os.fork():\n    os.setsid()\n    stay()\nstay()"
    program = [sys.executable, "-S", "-c", code, str(note)]
    script = f"from tinygrad_ext.plugins import child\nchild.run({program!r}, seconds=600)"
    caller = subprocess.Popen([sys.executable, "-c", script])
    while not note.exists():
        assert caller.poll() is None, "the caller ended before its child had begun"
        time.sleep(0.01)
    caller.kill()
    caller.wait()
    for _ in range(6000):
        if gone(int(note.read_text())):
            return
        time.sleep(0.01)
    raise AssertionError("it survived")


def test_a_crash_leaves_no_core_file():
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    assert python(code) == (0, "(0, 0)\n")


def test_a_file_of_another_process_is_read_to_a_limit(tmp_path):
    file = tmp_path / "f"
    assert child.read_text(file) == ""
    file.write_text("ä" * 10)
    assert child.read_text(file) == "ä" * 10 and child.read_text(file, 5) == ""


def test_a_long_text_is_cut_in_its_middle():
    assert child.cut("abc", 3) == "abc"
    assert child.cut("a" * 50 + "b" * 50, 20) == "a" * 10 + " ... (80 characters left out) ... " + "b" * 10


# ---- plugins -------------------------------------------------------------------------------------------------------


def test_the_doctor_reports_a_flood(site, capsys):
    site.plugin(text="import os\nwhile True:\n    os.write(1, b'0123456789abcde\\n' * 4096)\n")
    assert main(["plugins", "doctor", "demo"]) == 1
    out = capsys.readouterr().out
    assert "printed more than 4 MB, while it was loaded, and was ended for that" in out and len(out) < 5_000


@linux
def test_the_doctor_leaves_no_daemon_behind(site, capsys, tmp_path):
    note = tmp_path / "pid"
    text = STAY.replace("sys.argv[1]", repr(str(note))) + LEFT["forks twice"].replace("sys.argv[1]", repr(str(note)))
    site.plugin(text=text)
    main(["plugins", "doctor", "demo"])
    assert gone(int(note.read_text()))


def test_the_words_of_a_plugin_s_exception_are_cut(site):
    site.plugin(text="raise ValueError('x' * 10_000_000)\n")
    with pytest.warns(plugins.PluginWarning, match="characters left out") as caught:
        plugins.load_all()
    (failure,) = plugins.failed()
    assert len(str(caught[0].message)) < 10_000 and len(failure.error) < 5_000 and len(failure.traceback) < 50_000


def test_the_battery_s_probe_is_bounded_too(site):
    from tinygrad_ext.testing.battery import loading

    site.plugin(text="import os, sys\nwhile 'PYTHONPATH' in os.environ:\n    os.write(1, b'x' * 65536)\n")
    with pytest.raises(AssertionError, match="ended after 4 MB of output"):
        loading.probe("demo")
