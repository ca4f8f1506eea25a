"""A file is read in one sitting: at most 400 lines, those that the build writes excepted."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMIT = 400
FOLDERS = ("benchmarks", "demo", "examples", "plugins", "tests", "tinygrad_ext", "tools")
SUFFIXES = (".c", ".h", ".pxd", ".pxi", ".py", ".pyx")


def too_long():
    found = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)
    written = (p for p in found if "_gen" not in p.stem and "build" not in p.relative_to(ROOT).parts)
    return {p.relative_to(ROOT).as_posix() for p in written if p.read_text().count("\n") > LIMIT}


def test_no_file_is_longer_than_a_sitting():
    assert not too_long()
