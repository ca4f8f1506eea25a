"""FileCheck: what a text has to hold, and in which order."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import FileCheck

GOOD = [
    (FileCheck().check("a").check("b").check("a"), "aba"),
    (FileCheck().check_not("b").check("a").check_not("a"), "ab"),
    (FileCheck().check_count("ab", 2), "ababab"),
    (FileCheck().check_count(str="ab", count=2, exactly=True).check("c"), "abab c ab"),
    (FileCheck().check_count("mul", 0, exactly=True), "add"),
    (FileCheck().check("a").check_same("b"), "a  b\nc"),
    (FileCheck().check_next("a").check_next("b"), "\na\n  b"),
    (FileCheck().check_dag("a").check_dag("b").check("c"), "b a c"),
    (FileCheck().check_not("x").check_dag("a").check_dag("b").check_not("x"), "b x a"),
    (FileCheck().check_regex(r"a\d+").check("b"), "a12b"),
    (FileCheck().check_source_highlighted("f(x)").check("end"), "f(x)\ny = f(x)\n    ~~~~ <--- HERE\nend"),
    (FileCheck().check_source_highlighted("g"), "  g\n  ^ <--- HERE"),
]
BAD = [
    (FileCheck().check("a").check("a"), "ba", 'Expected to find "a" but did not find it(.|\n)*CHECK: a'),
    (FileCheck().check_not("b").check("a"), "ba", 'Expected to not find "b" but found it\nba\n~ <--- HERE'),
    (FileCheck().check("a").check_not("b"), "ab", "CHECK-NOT: b"),
    (FileCheck().check_count("a", 3), "aa", "CHECK-COUNT-3: a"),
    (FileCheck().check_count("a", 2, exactly=True), "aaa", 'Expected to not find "a"'),
    (FileCheck().check("a").check_same("b"), "a\nb", r'Expected to not find "\\n"(.|\n)*CHECK-SAME: b'),
    (FileCheck().check("a").check_next("b"), "a\n\nb", "CHECK-NEXT: b"),
    (FileCheck().check("a").check_next("b"), "ab", "Expected to find"),
    (FileCheck().check_dag("a").check_dag("b").check("c"), "b c a", 'Expected to find "c"'),
    (FileCheck().check_count("a", 0, exactly=True), "ba", 'Expected to not find "a"'),
    (FileCheck().check_regex("a+"), "b", "CHECK-REGEX"),
    (FileCheck().check_regex("("), "b", "is no pattern"),
    (FileCheck(), "b", "there is nothing to check"),
    (FileCheck().check_source_highlighted("f(x)"), "f(x)\n~~~", "highlighted but it is not"),
    (FileCheck().check_source_highlighted("f"), "f(x)\n~~~~", "Expected to not find more underlined"),
    (FileCheck().check_source_highlighted("f"), "f", "highlighted but it is not"),
]


@pytest.mark.parametrize("place", range(len(GOOD)))
def test_what_holds(place):
    checks, text = GOOD[place]
    checks.run(text)
    checks.run(text)  # it may run again


@pytest.mark.parametrize("place", range(len(BAD)))
def test_what_does_not_hold_is_told(place):
    checks, text, told = BAD[place]
    with pytest.raises(RuntimeError, match=told):
        checks.run(text)


def test_checks_are_read_from_a_text():
    checks = "# CHECK: a\n# CHECK-NEXT:  b\n# CHECK-COUNT-EXACTLY-2: c\n # CHECK-NOT: d\n# CHECK-DAG: e"
    FileCheck().run(checks, "a\nb c c e")
    for text in ("a b c c e", "a\nb c c c e", "a\nb c c d e", "a\nb c c"):
        with pytest.raises(RuntimeError, match="Expected to"):
            FileCheck().run(checks, text)
    FileCheck().run("# CHECK-COUNT-2-EXACTLY: c", "c c")
    with pytest.raises(RuntimeError, match="Expected to not find"):
        FileCheck().run("# CHECK-COUNT-2-EXACTLY: c", "c c c")
    for checks in ("# CHECK1", "# CHECK-NOT a\n# CHECK: a"):
        with pytest.raises(RuntimeError, match="Could not parse check"):
            FileCheck().run(checks, test_file="a")
    with pytest.raises(RuntimeError, match="Check for bad input"):
        FileCheck().run("a\nCHECK: b", "a")
    for count, exactly in ((0, False), (-1, True)):
        with pytest.raises(ValueError, match="expected a count above 0"):
            FileCheck().check_count("a", count, exactly)


def test_a_graph_is_checked_by_what_it_prints():
    @tg.jit.script
    def f(x):
        return (x + 1).relu()

    FileCheck().check("aten::add").check_next("aten::relu").run(f.graph)
    with pytest.raises(RuntimeError, match="aten::mul"):
        FileCheck().check("aten::mul").run(f.graph)
    assert repr(FileCheck().check("a").check_not("b")) == "FileCheck checks:\n\tCHECK: a\n\tCHECK-NOT: b"
