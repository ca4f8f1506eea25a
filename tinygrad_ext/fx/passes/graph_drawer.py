"""`FxGraphDrawer`: pictures of fx graphs, as SVG and in the language of Graphviz."""

from tinygrad_ext.drawing import svg
from tinygrad_ext.drawing.layers import Box, Style, arrange

from ..node import told
from .tools_common import CALLABLE_NODE_OPS, get_node_target

LAYERS = 200  # that are shown
_STYLES = {
    "placeholder": Style("#e9f7ef", "#2f855a"),
    "get_attr": Style("#e6f6f7", "#1f7a85"),
    "call_module": Style("#fdf8ec", "#b7791f"),
    "call_function": Style("#eef4fb", "#3b6ea5"),
    "call_method": Style("#f5effc", "#7c4dbb"),
    "output": Style("#f3f4f6", "#374151"),
}
_EDGE = Style("", "#3b6ea5")


class FxGraphDrawer:
    """Draws a GraphModule, and those among its submodules.

    Args:
        graph_module: the module. name: of the picture.
        ignore_getattr: leave out get_attr. ignore_parameters_and_buffers: leave out what a module call holds.
        skip_node_names_in_args: tell arguments without the nodes that edges show.
    """

    def __init__(
        self,
        graph_module,
        name,
        ignore_getattr=False,
        ignore_parameters_and_buffers=False,
        skip_node_names_in_args=True,
    ):
        self._name, self._asked = name, (ignore_getattr, ignore_parameters_and_buffers, skip_node_names_in_args)
        self._all = {name: self._drawn(graph_module, name)}
        for path, part in graph_module.named_modules():
            if path and hasattr(part, "graph") and hasattr(part, "code"):
                self._all[f"{name}_{path}"] = self._drawn(part, f"{name}_{path}")

    def get_dot_graph(self, submod_name=None):
        """The Drawn of the module, or of a submodule by its path."""
        return self._all[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self):
        """The Drawn of the module."""
        return self._all[self._name]

    def get_submod_dot_graph(self, submod_name):
        """The Drawn of a submodule: `<name>_<path>`."""
        return self._all[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        """Name -> Drawn, of the module and of those below it that are graphs."""
        return self._all

    def _drawn(self, module, name):
        skip_attributes, skip_state, skip_names = self._asked
        submodules = dict(module.named_modules())
        rows, edges = [], []
        for node in module.graph.nodes:
            if skip_attributes and node.op == "get_attr":
                continue
            rows.append((node, _lines(node, submodules, skip_state, skip_names)))
            edges += [(used, node) for used in node.all_input_nodes if not (skip_attributes and used.op == "get_attr")]
        return Drawn(name, rows, edges)


class Drawn:
    """A picture: `to_string()` is text for Graphviz, `create_svg()` needs nothing else; `write*` put them in files."""

    def __init__(self, name, rows, edges):
        """rows: (node, lines of text); edges: (node, node)."""
        self._name, self._rows, self._edges = name, rows, edges

    def get_name(self):
        """The name of the picture."""
        return self._name

    def to_string(self):
        """The graph in the language of Graphviz."""
        lines = [f"digraph {_quoted(self._name)} {{", "rankdir=TB;"]
        for node, texts in self._rows:
            style = _STYLES[node.op]
            label = _quoted("{" + "|".join(map(_escaped, texts)) + "}")
            colors = f'fillcolor="{style.fill}", color="{style.line}"'
            lines.append(f'{_quoted(node.name)} [label={label}, shape=record, style="filled,rounded", {colors}];')
        lines += [f"{_quoted(a.name)} -> {_quoted(b.name)};" for a, b in self._edges]
        return "\n".join([*lines, "}"]) + "\n"

    def create_svg(self):
        """The picture as the bytes of an SVG file."""
        boxes = {}
        for node, (first, *rest) in self._rows:
            tip = "\n".join([first, *rest])
            boxes[node] = Box(node.name, ", ".join(rest[:1]), _STYLES[node.op], tip)
        for a, b in self._edges:
            boxes[a].edges.append((boxes[b], "", _EDGE))
        drawing = arrange(list(boxes.values()), LAYERS, "left out here; to_string() has them")
        head = svg.text(20, 24, 13, svg.INK, self._name)
        return svg.picture(max(drawing.width, 360.0), 44 + drawing.height, [head, *svg.drawn(drawing, top=44)]).encode()

    def write_svg(self, path):
        """Write the picture."""
        with open(path, "wb") as file:
            file.write(self.create_svg())

    def write_raw(self, path):
        """Write the text for Graphviz."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_string())

    write = write_raw


def _lines(node, submodules, skip_state, skip_names):
    """What is told of a node."""
    lines = [f"name=%{node.name}", f"op_code={node.op}"]
    if node.op in CALLABLE_NODE_OPS:
        lines.append(f"target={get_node_target(submodules, node)}")
    else:
        lines.append(f"target={node.target}")
    if node.op == "call_module" and not skip_state:
        part = submodules[node.target]
        held = [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]
        lines += [f"{name}: {tuple(t.shape)}" for name, t in held]
    if node.op in CALLABLE_NODE_OPS:
        shown = [a for a in node.args if not (skip_names and a in node.all_input_nodes)] if node.args else []
        lines += [f"args={told(tuple(shown))}"] if shown else []
        lines += [f"kwargs={told(dict(node.kwargs))}"] if node.kwargs else []
    meta = node.meta.get("tensor_meta")
    if hasattr(meta, "shape"):
        lines += [f"shape={tuple(meta.shape)}", f"dtype={meta.dtype}"]
    return [*lines, f"num_users={len(node.users)}"]


def _quoted(text):
    return '"' + str(text).replace('"', '\\"') + '"'


def _escaped(text):
    for mark in "\\{}|<>":
        text = text.replace(mark, f"\\{mark}")
    return text
