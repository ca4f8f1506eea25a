"""FileCheck: what a text has to hold, in which order, as LLVM's tool of that name asks for it.

A list of checks is gone through from the top; each is looked for behind what the one before it found.
"""

import re

_COUNT = r"-COUNT(?P<exactly>-EXACTLY)?-(?P<count>\d+)(?P<also>-EXACTLY)?"
_KINDS = rf"-NOT|-SAME|-NEXT|-DAG|-REGEX|-SOURCE-HIGHLIGHTED|{_COUNT}"
_LINE = re.compile(rf"#\s*CHECK(?P<kind>{_KINDS})?:(?P<text>.*)")
_MEANT = re.compile(r"#\s*CHECK.*")
_UNDERLINES = "~^"  # PyTorch's errors underline with the first, ours and Python's with the second


class FileCheck:
    """Checks of a text, which `run` makes; each of the other methods adds one and gives the FileCheck back.

    >>> from tinygrad_ext.testing import FileCheck
    >>> FileCheck().check("add").check_not("mul").check_count("relu", 2, exactly=True).run("add; relu; relu")
    """

    def __init__(self):
        self._groups = []  # [[(kind, text, count), ...], ...]; CHECK-NOTs and CHECK-DAGs that follow each other are one

    def check(self, text):
        """It stands somewhere behind what was found before."""
        return self._add("CHECK", text)

    def check_not(self, text):
        """It does not stand between what was found before and what the next check finds."""
        return self._add("CHECK-NOT", text)

    def check_same(self, text):
        """It stands in the line of what was found before."""
        return self._add("CHECK-SAME", text)

    def check_next(self, text):
        """It stands in the line that follows."""
        return self._add("CHECK-NEXT", text)

    def check_count(self, str, count, exactly=False):
        """It stands there so many times, one behind the other; exactly: and not once more before the next check.

        Raises:
            ValueError: the count is below zero, or is zero and not exact, which asks for nothing.
        """
        if count < 0 or (count == 0 and not exactly):
            raise ValueError(f"check_count: expected a count above 0, or 0 with exactly=True, got {count}")
        if count:
            self._add(f"CHECK-COUNT{'-EXACTLY' * exactly}-{count}", str, count)
        return self._add("CHECK-NOT", str) if exactly else self

    def check_dag(self, text):
        """It stands there, before or behind what the checks of this kind next to it find."""
        return self._add("CHECK-DAG", text)

    def check_source_highlighted(self, text):
        """It stands there, and is what the line below underlines, as in errors of `script`."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_regex(self, text):
        """Something stands there that the pattern matches."""
        return self._add("CHECK-REGEX", text)

    def run(self, checks_file, test_file=None):
        """Check a text, or a graph by what it prints; with two arguments the first holds lines such as `# CHECK: add`.

        Raises:
            RuntimeError: a check fails, and the message shows the place and the check; there is none, or one of the
                lines of the text that begin so is none.
        """
        if test_file is None:
            return self._run(str(checks_file))
        read = FileCheck()
        for line in _MEANT.findall(checks_file):
            _add_line(read, line)
        read._run(str(test_file))

    def __repr__(self):
        told = "".join(f"\n\t{kind}: {text}" for group in self._groups for kind, text, _ in group)
        return f"FileCheck checks:{told}"

    def _add(self, kind, text, count=1):
        if self._groups and kind in ("CHECK-NOT", "CHECK-DAG") and self._groups[-1][0][0] == kind:
            self._groups[-1].append((kind, text, count))
        else:
            self._groups.append([(kind, text, count)])
        return self

    def _run(self, text):
        if not self._groups:
            raise RuntimeError("Check for bad input: there is nothing to check, such as check('add') or '# CHECK: add'")
        end, absent = 0, []
        for group in self._groups:
            if group[0][0] == "CHECK-NOT":
                absent = group
                continue
            start, new_end = _match(group, text, end)
            _check_absent(absent, text, end, start)
            end, absent = new_end, []
        _check_absent(absent, text, end, len(text))


def _add_line(read, line):
    match = _LINE.match(line)
    if match is None:
        raise RuntimeError(f"Could not parse check: expected a line such as '# CHECK: add', got '{line}'")
    text, kind = match["text"].strip(), (match["kind"] or "")[1:].lower().replace("-", "_")
    if match["count"]:
        read.check_count(text, int(match["count"]), bool(match["exactly"] or match["also"]))
    else:
        getattr(read, f"check_{kind}" if kind else "check")(text)


def _match(group, text, begin):
    """(where the first match of a group begins, where the last one ends), behind `begin`."""
    kind, wanted, count = check = group[0]
    if kind == "CHECK-DAG":
        found = [(_find(text, begin, each), each) for each in group]
        return min(at for at, _ in found), max(at + len(each[1]) for at, each in found)
    if kind == "CHECK-REGEX":
        try:
            match = re.compile(wanted).search(text, begin)
        except re.error as error:
            raise RuntimeError(f"check_regex: '{wanted}' is no pattern: {error}") from None
        if match is None:
            _fail(text, begin, len(text), check, "find", wanted)
        return match.span()
    if kind == "CHECK-NEXT":
        begin = _find(text, begin, check, "\n") + 1
    start = end = _find(text, begin, check)
    if kind in ("CHECK-SAME", "CHECK-NEXT"):
        _check_absent([(kind, "\n", 1)], text, begin, start, wanted)
    if kind == "CHECK-SOURCE-HIGHLIGHTED":
        start = end = _underlined(text, start, check)
    for i in range(count):
        end = (_find(text, end, check) if i else start) + len(wanted)
    return start, end


def _underlined(text, at, check):
    """Where the first place is, from `at` on, that the line below underlines."""
    wanted, first, long = check[1], at, False
    while at >= 0:
        below = text.find("\n", at) + 1
        start = below + at - (text.rfind("\n", 0, at) + 1)
        line_end = text.find("\n", below) if text.find("\n", below) >= 0 else len(text)
        marks = text[start : min(start + len(wanted), line_end)]
        if below and len(marks) == len(wanted) and len(set(marks)) == 1 and marks[0] in _UNDERLINES:
            around = text[start - 1 : start] + text[start + len(wanted) : start + len(wanted) + 1]
            if marks[0] not in around:
                return at
            long = True
        at = text.find(wanted, at + 1)
    more = "Expected to not find more underlined than that" if long else "but it is not"
    raise RuntimeError(f'Expected to find "{wanted}" highlighted {more}.\n{_shown(text, first, len(wanted))}')


def _find(text, begin, check, wanted=None):
    wanted = check[1] if wanted is None else wanted
    at = text.find(wanted, begin)
    if at < 0:
        _fail(text, begin, len(text), check, "find", wanted)
    return at


def _check_absent(checks, text, begin, end, told=None):
    for check in checks:
        at = text.find(check[1], begin, end)
        if at >= 0:
            _fail(text, at, at + len(check[1]), (check[0], told or check[1]), "not find", check[1])


def _fail(text, begin, end, check, word, wanted):
    quoted = wanted.replace("\n", "\\n")
    if word == "find":
        told = f'Expected to find "{quoted}" but did not find it\nSearched string:\n{text[begin:end]}'
    else:
        told = f'Expected to not find "{quoted}" but found it\n{_shown(text, begin, end - begin)}'
    raise RuntimeError(f"{told}\nFrom {check[0]}: {check[1]}\n")


def _shown(text, at, length):
    """The line of a place, underlined, with the lines around it."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    end = len(text) if end < 0 else end
    mark = " " * (at - start) + "~" * max(1, min(length, end - at)) + " <--- HERE"
    return f"{text[:start]}{text[start:end]}\n{mark}{text[end:]}"
