"""Pictures of fx graphs."""

import xml.dom.minidom

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.fx.passes.graph_drawer import FxGraphDrawer
from tinygrad_ext.fx.passes.shape_prop import ShapeProp
from tinygrad_ext.fx.passes.split_module import split_module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.scale = nn.Linear(2, 3), nn.Parameter(tg.ones(3))

    def forward(self, x):
        return tg.clamp(self.fc(x) * self.scale, min=0)


def test_text_and_picture_show_each_node(tmp_path):
    made = fx.symbolic_trace(Net())
    ShapeProp(made).propagate(tg.ones(4, 2))
    drawn = FxGraphDrawer(made, 'the "net"').get_dot_graph()
    text = drawn.to_string()
    assert text.startswith('digraph "the \\"net\\"" {') and text.count("->") == 5
    assert "weight: (3, 2)" in text and "shape=(4, 3)" in text and "kwargs=\\{min: 0\\}" in text
    drawn.write_svg(tmp_path / "net.svg")
    drawn.write(tmp_path / "net.dot")
    picture = xml.dom.minidom.parse(str(tmp_path / "net.svg")).documentElement
    assert picture.tagName == "svg" and (tmp_path / "net.dot").read_text() == text
    for node in made.graph.nodes:
        assert node.name in picture.toxml() and f'"{node.name}" [' in text
    plain = FxGraphDrawer(made, "net", ignore_getattr=True, ignore_parameters_and_buffers=True).get_dot_graph()
    assert "weight" not in plain.to_string() and plain.to_string().count("->") == 4 and plain.get_name() == "net"


def test_submodules_that_are_graphs_have_pictures_of_their_own():
    made = fx.symbolic_trace(Net())
    split = split_module(made, made, lambda node: node.op == "call_module")
    drawer = FxGraphDrawer(split, "net")
    parts = [f"net_{name}" for name, _ in split.named_children()]
    assert list(drawer.get_all_dot_graphs()) == ["net", *parts]
    name = parts[0].removeprefix("net_")
    assert drawer.get_submod_dot_graph(name) is drawer.get_dot_graph(parts[0])
    assert drawer.get_main_dot_graph().get_name() == "net"
