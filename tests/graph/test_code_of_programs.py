"""Every scripted program gives the same as Python text, and from an archive, effects on its arguments included."""

import io

import pytest

import tinygrad_ext as tg
from tests.graph.test_code import made
from tests.helpers import script_programs as table
from tinygrad_ext import graph as tgx_graph
from tinygrad_ext import jit
from tinygrad_ext.graph import Program
from tinygrad_ext.graph.interpret import run


def archived(graph):
    file = io.BytesIO()
    tgx_graph.save(Program({"forward": graph}), file)
    file.seek(0)
    return tgx_graph.load(file).methods["forward"]


@pytest.mark.parametrize("stem", table.FILES)
def test_programs_give_the_same(stem):
    for name, case in table.load(stem, tg).items():
        entry = jit.script(case.function)._entry
        text, loaded = made(entry.graph), archived(entry.graph)
        ways = (
            lambda *row: run(entry.graph, entry._bound(row, {}))[0][0],
            lambda *row: text(*entry._bound(row, {})),
            lambda *row: run(loaded, entry._bound(row, {}))[0][0],
        )
        for row in case.rows:
            wanted, *others = (table.outcome(way, row) for way in ways)
            for found in others:
                assert (found[0], str(found[1])) == (wanted[0], str(wanted[1])), f"{name}\n{entry.graph.code}"
