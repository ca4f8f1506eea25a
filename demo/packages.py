"""The packages below plugins/ that `make demo` installs: shown before the run, checked after it."""

import subprocess
import sys

from tinygrad_ext import plugins

WANTED = ("hello", "sparse", "special", "vision")


def show(console):
    """One line for each plugin that is installed; exits when one of ours is not."""
    found = plugins.list()
    missing = set(WANTED) - {p.name for p in found}
    if missing:
        sys.exit(f"not installed: {', '.join(sorted(missing))}. `make demo` does it: pip install ./plugins/<name>")
    console.print("plugins found by their entry points (none of them imported yet):")
    for p in found:
        brings = [f"namespace {n}" for n in p.namespaces] + [f"overrides of {n}" for n in p.prefixes]
        console.print(f"  {p.distribution:11} {p.version}: {', '.join(brings)}", highlight=False)


def used():
    """What the run has loaded, in words."""
    active = [p for p in plugins.list() if p.state == "active"]
    return ", ".join(f"{p.distribution} ({len(p.ops)} ops, {len(p.modules)} modules)" for p in active)


def check_all(console):
    """Run `plugins check` on each, as its author would; False when one fails."""
    passed = True
    for name in WANTED:
        command = [sys.executable, "-m", "tinygrad_ext", "plugins", "check", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip().splitlines()
        console.print("plugins check  " + "\n".join(lines[:1] if done.returncode == 0 else lines), highlight=False)
        passed = passed and done.returncode == 0
    return passed
