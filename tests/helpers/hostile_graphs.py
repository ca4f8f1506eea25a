"""Archives of graphs that lie: good ones, and damaged ones whose structure is whole where that is worth something."""

import io
import json
import re
import zipfile

import tinygrad_ext as tg
from tests.helpers import graphs
from tests.helpers import hostile_archives as hostile
from tinygrad_ext import graph as tgx_graph
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, Program

SMALL = """\
graph f(%x: Tensor, %n: int) {
  state %w: Tensor = parameter "w"
  state %k: int = number "k"
  %1: Tensor = aten::add.Tensor(%x, %w, 2)  # f.py:1
  %2: Tensor = prim::Loop(%n, True, %1) {
    block(%i: int, %a: Tensor) {
      %3: Tensor = aten::mul.Tensor(%a, complex(0.5, 0.0))
      yield True, %a
    }
  }
  %4: int = prim::add(%k, 1)
  return [%2, None, "text", float32, device("cpu")], slice(0, %n, 1)
  write "k" = %4
}"""


def saved(program, **more):
    file = io.BytesIO()
    tgx_graph.save(program, file, **more)
    return file.getvalue()


def everything():
    graph, inputs, state = graphs.everything()
    program = Program({"forward": graph}, {s.name: v for s, v in zip(graph.state, state)})
    return saved(program, extra_files={"notes/a.txt": "text"}, examples={"forward": [tuple(inputs)]})


def small():
    w = tg.nn.Parameter(tg.ones(2, 3).t())
    state = {"w": w, "k": 3, "view": w.detach()[0], "z": tg.ones(2, dtype=tg.complex64)}
    return saved(Program({"forward": Graph.parse(SMALL), "a.b": Graph.parse(SMALL)}, state, {"forward": {"x": [1]}}))


class Part(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.words = tg.nn.Linear(2, 3), tg.nn.BatchNorm1d(3), ["a"]

    def forward(self, x, n: int = 2, more: list[float] | None = None):
        if more is None:
            return {"y": [self.bn(self.fc(x)) * n], "n": [x]}
        for f in more:
            x = x + f
        return {"y": [x], "n": []}


def _file_of(compiled):
    file = io.BytesIO()
    jit.save(compiled, file, {"notes/a.txt": "text"})
    return file.getvalue()


def scripted():
    tg.manual_seed(0)
    return _file_of(jit.script(Part()))


def _of_lists(items: list[tg.Tensor], more: dict[str, tg.Tensor], n: int):
    made = [items[0]]
    for i in range(n):
        made.append(made[i] * 0.5 + items[i % len(items)])
        more["last"] = made[-1]
    return tg.stack(made), [made[0], more["last"]]


def listed():
    """A program that takes a list and a dict of tensors."""
    return _file_of(jit.script(_of_lists))


def traced():
    tg.manual_seed(0)
    return _file_of(jit.trace(Part(), (tg.ones(4, 2),), check_trace=False))


def entries(data):
    """name -> bytes of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts):
    return hostile.zipped(parts)


def mutations(data, rng, n):
    """n damaged versions of a good archive, each with one to three things changed."""
    for _ in range(n):
        out = data
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            try:
                out = _mutated(out, rng)
            except Exception:  # what was changed before left no structure
                out = hostile.flipped(out, rng)
        yield out


def _mutated(data, rng):
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([hostile.flipped(data, rng), data[: rng.randrange(len(data))], data[len(data) // 3 :]])
    if kind < 0.3:
        rows = hostile.directory(data)[1]
        field = rng.choice(list(hostile.FIELDS))
        return hostile.edited(data, rng.randrange(rows), field, rng.choice([*hostile.EDGES, rng.randrange(300)]))
    parts = entries(data)
    name = rng.choice(list(parts))
    if kind < 0.36:
        return zipped(_renamed(parts, name, rng))
    if name.endswith(".txt") and name.startswith("graphs"):
        parts[name] = mutated_text(parts[name].decode(), rng).encode("utf-8", "surrogatepass")
    elif name.endswith(".json"):
        parts[name] = json.dumps(hostile.changed(json.loads(parts[name]), rng)).encode()
    elif name.endswith(".safetensors"):
        parts[name] = hostile.mutated_safetensors(parts[name], rng)
    else:
        parts[name] = hostile.flipped(parts[name], rng)
    return zipped(parts)


def _renamed(parts, name, rng):
    other = rng.choice(
        ["", "../a", "/etc/passwd", "extra/../b", "graphs/.txt", "a" * 70000, rng.choice(list(parts)), "\0"]
    )
    return {other if key == name else key: value for key, value in parts.items() if rng.random() < 0.95}


_TOKEN = re.compile(r"[\w.]+|\s+|.", re.S)
_WORDS = [
    *("%x", "%1", "None", "True", "nan", "-1", "1e999", '"', '"\\ud800"', "[", "]", "{", "}", "(", ")", ", ", "yield "),
    *("Tensor", "List[", "Dict[str, int]", "Optional[Tensor]", "int", "Generator", "Any", "float32", 'device("cuda")'),
    *("aten::exp", "aten::cat", "prim::If", "prim::Loop", "prim::Function", "prim::unpack", "demo::none", "@2", "\n"),
    *("slice(", "complex(", "block(", "  # ", "  ! tgx-evil 1.0", "aten::full", "aten::__getitem__", "\r", "\x00", "é"),
]


def mutated_text(text, rng):
    """The text of a graph with one part changed, repeated, nested or left out."""
    kind = rng.random()
    if kind < 0.3:
        lines = text.split("\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        return "\n".join(rng.choice([lines[:i] + lines[i + 1 :], [*lines[:j], lines[i], *lines[j:]], lines[:i]]))
    parts = _TOKEN.findall(text)
    i = rng.randrange(len(parts))
    if kind < 0.4:
        depth = rng.choice([5, 40, 3000])
        parts[i] = rng.choice(["[", "slice(", "List[", "Dict[str, ", "("]) * depth + parts[i]
    elif kind < 0.55:
        parts[i] = str(rng.choice(hostile.EDGES))
    elif kind < 0.6:
        parts[i] = "9" * 5000
    elif kind < 0.8:
        parts[i] = rng.choice(_WORDS)
    else:
        parts[i] = rng.choice(parts)
    return "".join(parts)
