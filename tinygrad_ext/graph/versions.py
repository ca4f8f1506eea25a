"""Ops of a saved graph and ops of today: versions, schemas, owners.

The version of an op stands in its record, and rises when a graph saved before would mean something else. An upgrader
says how such a node is told in today's words:

    @upgrader("demo::roll", 1)
    def no_shift_was_one(graph, node):
        node.args = (*node.args[:1], 1)
        node.version = 2

A schema may grow without a new version, by arguments with defaults; nodes saved before get the defaults.
"""

import re

from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.ops.schema import Schema
from tinygrad_ext.registry.scope import application

from .check import GraphError
from .signature import signature_of

UPGRADERS = {}
ROUNDS = 100  # of upgraders over one node
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", re.A)
_FOLDERS = re.compile(r"^.*[/\\]")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,50}", re.A)


class Unfit(RuntimeError):
    """A graph is written in ops that are not those of today; the message says what to install."""


def upgrader(op, version):
    """Decorator: function(graph, node) rewrites a node of an op in an older version, to a later one or to other ops.

    It changes the node, raising `node.version`, or puts others in its place (`block_of` finds where). Those of a plugin
    stand in the module that registers its ops.
    """

    def take(function):
        UPGRADERS[op, version] = function
        return function

    return take


def block_of(graph, node):
    """The Block that holds a node."""
    waiting = [graph.block]
    for block in waiting:
        for other in block.nodes:
            if other is node:
                return block
            waiting += other.blocks
    raise LookupError(f"{node!r} is in no block of {graph!r}")


def stamp(graph):
    """Give each node version and owner of its op's record, and its line without folders, which are nobody's business;
    returns the ops that the graph uses, name -> Op."""
    used = {}
    for node in graph.walk():
        node.line = _FOLDERS.sub("", node.line)
        if node.op == "prim::guard":
            node.args = (*node.args[:2], _FOLDERS.sub("", node.args[2]))
        if not node.op.startswith("prim::"):
            used[node.op] = op = signature_of(node.op).op
            node.version, node.owner = op.record.version, str(op.record.owner)
    return used


def refuse_python(graph):
    """The graph; GraphError where it calls a Python function, which is no part of it and stays in its process."""
    for node in graph.walk():
        if node.op == "prim::boxed":
            called = str(node.args[0]).rpartition(".")[0]
            raise GraphError(
                f"{graph.name} calls {called} of an autograd.Function whose body could not be captured, because it "
                f"leaves the library, and no file can hold that ({node.line}). Write its forward and backward with ops "
                "of tinygrad_ext, or make it an op of a plugin."
            )
        if node.op == "prim::python":
            called = str(node.args[0]).rpartition(".")[0]
            raise GraphError(
                f"{graph.name} calls the Python function {called}, which is marked ignore, and no file can hold that "
                f"({node.line}). Mark it unused, or compile it."
            )
    return graph


def bring_up(graph, ops):
    """Make the nodes of a graph that was saved those of today.

    Args:
        ops: op name -> {"version", "schema"} that it was saved with.

    Raises Unfit for an op that is not here or is newer than what is here, with the pip command.
    """
    for node in list(graph.walk()):
        for _ in range(ROUNDS):
            upgrade = UPGRADERS.get((node.op, node.version))
            if upgrade is None:
                break
            before = node.op, node.version
            upgrade(graph, node)
            if (node.op, node.version) == before:
                break  # others stand in its place
    for node in graph.walk():
        _fit(node, ops.get(node.op))


def _fit(node, saved):
    if node.op.startswith("prim::"):
        if node.version != 1:
            raise Unfit(_at(node, f"version {node.version} of it is newer than this tinygrad_ext: update it"))
        return
    try:
        op = signature_of(node.op).op
    except LookupError as error:
        raise Unfit(_at(node, f"{error}. {_told(node.owner)}")) from None
    record = op.record
    said = f"was saved with version {node.version}"
    if node.version > record.version:
        raise Unfit(_at(node, f"{said}, and {record.owner} has {record.version}: {newer(node.owner)}"))
    if node.version < record.version:
        what = f"{said}, {record.owner} has {record.version} and no upgrader for that: report it to its author"
        raise Unfit(_at(node, what))
    node.owner = str(record.owner)
    if saved is not None and saved["version"] == record.version and saved["schema"] != str(op.schema):
        node.args = _arranged(node, Schema.parse(saved["schema"]), op.schema)


def _arranged(node, old, new):
    """The arguments of a node in the order of today's schema, new ones with their defaults."""
    if len(old.args) != len(node.args):
        raise ValueError(f"{node.op} has {len(node.args)} arguments, but the schema it was saved with {len(old.args)}")
    given = dict(zip((a.name for a in old.args), node.args))
    args = []
    for a in new.args:
        if a.name not in given and not a.has_default:
            raise Unfit(_at(node, f"lacks '{a.name}': it was saved as {old}, and is {new} without a new version"))
        args.append(given.pop(a.name, a.default))
    for a in old.args:
        if a.name in given and not (a.has_default and repr(given[a.name]) == repr(a.default)):
            raise Unfit(_at(node, f"has '{a.name}': it was saved as {old}, and is {new} without a new version"))
    return tuple(args)


def _at(node, what):
    return f"{node.op}{f' at {node.line}' if node.line else ''}: {what}"


# ---- owners --------------------------------------------------------------------------------------------------------


def _told(owner):
    """Who brought an op that is missing, and the command."""
    if owner == str(application.owner):
        return "The program that saved it defines it itself: define it before loading"
    command = install(owner)
    return f"It came with {owner}: {command}" if command else "The file does not say where it came from"


def newer(owner):
    """What brings a version as new as that of an owner."""
    distribution, version = parts(owner)
    if distribution is None:
        return "update what brings it"
    return f"python -m pip install --upgrade '{distribution}{f'>={version}' if version else ''}'"


def install(owner):
    """The command that installs an owner, "" where the text is no name and version: it may come from a stranger."""
    distribution, version = parts(owner)
    if distribution is None or owner == str(application.owner):
        return ""
    return f"python -m pip install '{distribution}{f'=={version}' if version else ''}'"


def parts(owner):
    """(distribution, version or "") of an owner's text; (None, "") of another text."""
    distribution, _, version = owner.partition(" ")
    if not _DISTRIBUTION.fullmatch(distribution) or (version and not _VERSION.fullmatch(version)):
        return None, ""
    return distribution, version


def is_foreign(owner):
    """Whether an owner's text is that of neither this package nor the program itself."""
    return owner not in (str(BUILTIN), str(application.owner))
