"""What an archive says of the methods of a program besides their graphs, judged before anybody believes it."""

from tinygrad_ext.archive.budget import Budget
from tinygrad_ext.archive.object_tree import Decoder
from tinygrad_ext.graph import Type

PARTS = 100  # of a path
_TEXTS = ("parameters", "buffers", "passing", "attributes")


def check_notes(program):
    """ValueError where the notes of a program are not as `saving` writes them."""
    for name, note in program.notes.items():
        if type(note) is not dict or (name and name not in program.methods):
            raise ValueError(f"the note '{name[:100]}' is no dict, or of no method")
    told = program.notes.get("", {})
    for key in _TEXTS:
        if not _are_texts(told.get(key, [])):
            raise ValueError(f"its '{key}' are no list of texts")
    modules = told.get("modules", [])
    if type(modules) is not list or not all(type(m) is list and list(map(type, m)) == [str, bool] for m in modules):
        raise ValueError("its 'modules' are no list of a path and a truth value each")
    classes = told.get("classes", {})
    if type(classes) is not dict or not _are_texts(list(classes.values())):
        raise ValueError("its 'classes' are no dict of names")
    for path in (*program.state, *(path for path, _ in modules)):
        if path.count(".") >= PARTS:
            raise ValueError(f"the path {path[:60]}... has more than {PARTS} parts")
    for name, graph in program.methods.items():
        note = program.notes.get(name, {})
        part = note.get("part", "")
        if type(part) is not str or (part and type(note.get("method")) is not str):
            raise ValueError(f"the method '{name[:100]}' has no name of its own in a module")
        check = {"script": _script, "trace": _trace}.get(note.get("kind"))
        if check is not None and not check(note, graph, program.state):
            raise ValueError(f"the note of the method '{name}' does not fit its graph")


def _are_texts(value):
    return type(value) is list and all(type(text) is str for text in value)


def default_of(value, state):
    """A default of a method's argument. ValueError for what `saving` does not write."""
    if type(value) is dict and "state" in value:
        if value["state"] not in state:
            raise ValueError("a default is no state")
        return state[value["state"]]
    return Decoder([], [], Budget()).decode(value)


def _script(note, graph, state):
    names, defaults = note.get("names"), note.get("defaults")
    if not _are_texts(names) or len(set(names)) != len(names) or len(names) != len(graph.inputs):
        return False
    if type(defaults) is not dict or not set(defaults) <= set(names) or type(note.get("returns")) is not str:
        return False
    for value in defaults.values():
        default_of(value, state)
    Type.parse(note["returns"])
    asked = note.get("interfaces", {})
    if type(asked) is not dict or not all(word.isidentifier() and _are_texts(names) for word, names in asked.items()):
        return False
    once = note.get("broadcasts", {})
    counts = type(once) is dict and set(once) <= set(names) and all(type(n) is int for n in once.values())
    if not counts or not all(0 < n < 7 for n in once.values()):
        return False
    if any(graph.inputs[names.index(name)].type.word != "List" for name in once):
        return False
    return type(note.get("positional")) is int and _are_texts(note.get("annotated")) and len(graph.outputs) == 1


def _trace(note, graph, state):
    flags = type(note.get("grad")) is bool and type(note.get("differentiates")) is bool
    key = type(note.get("key")) is dict and len(note["key"].get("tuple", ())) == len(graph.inputs)
    names, returned = {s.name for s in graph.state}, note.get("returned", [])
    arguments = note.get("arguments", {})
    paths = type(arguments) is dict and set(arguments) <= names and all(map(_is_path, arguments.values()))
    rows = type(returned) is list and all(type(row) is list and len(row) == 2 for row in returned)
    if not paths or not rows or not all(_is_path(path, 0) and name in names for path, name in returned):
        return False
    return flags and key and type(note.get("of")) is str


def _is_path(value, least=1):
    return type(value) is list and least <= len(value) < PARTS and all(type(key) in (int, str) for key in value)
