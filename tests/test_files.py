"""Files written by hand: at most 400 lines, one sitting; and what is compiled says first what it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMIT = 400
FOLDERS = ("benchmarks", "demo", "examples", "plugins", "tests", "tinygrad_ext", "tools")
SUFFIXES = (".c", ".h", ".pxd", ".pxi", ".py", ".pyx")
HEADS = {  # the comment that a file begins with
    ".c": r"/\*(.*?)\*/",
    ".h": r"/\*(.*?)\*/",
    ".pxi": r"((?:# [^\n]*\n)+)",
    ".pyx": r'(?:# [^\n]*\n)*"""(.*?)"""',
}


def by_hand(suffixes):
    found = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in suffixes)
    return [p for p in found if "_gen" not in p.stem and "build" not in p.relative_to(ROOT).parts]


def too_long():
    return {p.relative_to(ROOT).as_posix() for p in by_hand(SUFFIXES) if p.read_text().count("\n") > LIMIT}


def test_no_file_is_longer_than_a_sitting():
    assert not too_long()


def test_what_pytest_collects_is_there_without_pytorch():
    """A test that compares with PyTorch is skipped where that is missing; its file must be read all the same."""
    found = [p for folder in ("tests", "plugins") for p in (ROOT / folder).rglob("test_*.py")]
    bare = [p for p in found if re.search(r"^(import|from) torch\b", p.read_text(), re.M)]
    assert found and not [p.name for p in bare if 'find_spec("torch") is None' not in p.read_text()]


def says_what_it_is(suffix, text):
    """Whether a file begins with a comment of at least one sentence that does more than name another file."""
    found = re.match(HEADS[suffix], text, re.DOTALL)
    words = re.sub(r"^ *[*#] ?", "", found[1], flags=re.MULTILINE).split() if found else []
    sentences = re.split(r"(?<=[.:;?])\s", " ".join(words))
    own = (s for s in sentences if s.endswith((".", ":", ";")) and not s.lower().startswith("see "))
    return any(len(s.split()) > 3 for s in own)


@pytest.mark.parametrize(
    "suffix, text",
    [
        (".c", '#include "x.h"\n/* Sums of rows, in blocks. */\n'),
        (".c", '/* See x.h. */\n#include "x.h"\n'),
        (".c", "/* See x.h, y.h and tests/c/z.c. */\n"),
        (".c", "/* x.c - sums */\n"),
        (".c", "/* Sums. */\n"),
        (".pxi", "cdef int f(): pass\n"),
        (".pyx", "# cython: language_level=3\ncimport cython\n"),
        (".pyx", '"""Sums"""\n'),
    ],
)
def test_what_is_no_head_is_told(suffix, text):
    assert not says_what_it_is(suffix, text)


def test_every_compiled_file_says_first_what_it_is():
    assert not {p.relative_to(ROOT).as_posix() for p in by_hand(HEADS) if not says_what_it_is(p.suffix, p.read_text())}
