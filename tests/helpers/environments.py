"""Real virtual environments for tests that install packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


class Environment:
    """A virtual environment that sees what the tests' own has installed, but no plugins; pip writes into it alone."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.site = Path(self.python("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        seen = folder / "seen"
        seen.mkdir()
        for place in (Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))):
            for entry in place.iterdir() if place.is_dir() else ():
                if not entry.name.startswith(("tgx_", "__editable__")) and not (seen / entry.name).exists():
                    (seen / entry.name).symlink_to(entry)
        (self.site / "tests_own.pth").write_text(f"{ROOT}\n{seen}\n")

    def python(self, *arguments, cwd=None, status=0):
        """Run Python there; its output."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TINYGRAD_EXT_", "PYTEST"))}
        env |= {"CFLAGS": "-O0", "XDG_CONFIG_HOME": str(self.folder), "PIP_CONFIG_FILE": os.devnull}
        done = subprocess.run(
            [str(self.folder / "bin" / "python"), *arguments],
            cwd=cwd or self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def pip(self, *arguments, **options):
        """Run pip there, without an index."""
        install = ("--no-index", "--no-deps", "--no-build-isolation") if arguments[0] == "install" else ()
        return self.python("-m", "pip", "--quiet", "--disable-pip-version-check", *arguments, *install, **options)

    def cli(self, *arguments, **options):
        """Run a command with --json; what it prints."""
        return json.loads(self.python("-m", "tinygrad_ext", *arguments, "--json", **options))
