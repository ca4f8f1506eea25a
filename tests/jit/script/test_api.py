"""`jit.script` and its relatives: where source is found, what is loaded, names."""

import io
import linecache
import subprocess
import sys
import textwrap
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def test_import_loads_nothing_of_it():
    code = "import sys, tinygrad_ext; assert not [m for m in sys.modules if m.startswith('tinygrad_ext.jit')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_called_like_its_function():
    code = """
        import linecache
        import tinygrad_ext.jit.script.errors
        from tinygrad_ext import jit
        text = "def f(x):\\n    return x + 1\\n"
        linecache.cache["<f>"] = (len(text), None, text.splitlines(True), "<f>")
        exec(compile(text, "<f>", "exec"))
        assert jit.script(f)(1.0 * __import__("tinygrad_ext").ones(1)).item() == 2
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_lambdas_where_source_exists():
    assert jit.script(lambda x: x + 1)(tg.ones(1)).item() == 2.0
    two = [jit.script(lambda x: x * 2), jit.script(lambda x: x * 3)]
    assert [f(tg.ones(1)).item() for f in two] == [2.0, 3.0]


def test_exec_with_an_entry_in_linecache():
    text = "def f(x, n: int):\n    return x * n\n"
    space = {}
    exec(compile(text, "<nowhere>", "exec"), space)
    with pytest.raises(jit.Error, match="linecache"):
        jit.script(space["f"])
    linecache.cache["<nowhere>"] = (len(text), None, text.splitlines(True), "<nowhere>")
    assert jit.script(space["f"])(tg.ones(1), 3).item() == 3.0


def test_decorated_functions_and_types_as_text():
    @jit.script
    def f(x: "tg.Tensor", items: "list[int]") -> "int":
        return len(items) + x.dim()

    assert f(tg.ones(1), [1, 2]) == 3
    assert str(f.schema) == "f(Tensor x, int[] items) -> int" and f.name == "f"


def test_types_as_a_comment():
    @jit.script
    def f(x, n):
        # type: (tg.Tensor, int) -> float
        return float(x[n])

    assert f(tg.tensor([4, 5]), 1) == 5.0


def test_compilation_unit():
    unit = jit.CompilationUnit("""
def double(x):
    return x * 2

def use(x, n: int):
    for i in range(n):
        x = double(x)
    return x
""")
    assert unit.use(tg.ones(1), 3).item() == 8.0
    assert [f.name for f in unit.get_functions()] == ["double", "use"]
    unit.define("def more(x):\n    return use(x, 1) + 1")
    assert unit.more(tg.ones(1)).item() == 3.0
    with pytest.raises(AttributeError):
        unit.nothing


def test_example_inputs_give_types():
    def f(x, n):
        return x * n

    scripted = jit.script(f, example_inputs=[(2, 3)])
    assert scripted(4, 5) == 20 and str(scripted.schema) == "f(int x, int n) -> int"


def test_scripted_functions_call_each_other():
    @jit.script
    def inner(x, n: int = 2):
        return x * n

    @jit.script
    def outer(x):
        return inner(x) + inner(x, n=3)

    assert outer(tg.ones(1)).item() == 5.0
    assert jit.script(inner) is inner


def test_an_error_while_running_names_the_line():
    @jit.script
    def f(items: list[int], i: int):
        return items[i]

    with pytest.raises(IndexError) as error:
        f([1], 3)
    if sys.version_info >= (3, 11):
        assert "test_api.py" in error.value.__notes__[0] and "in f" in error.value.__notes__[0]


def test_what_was_switched_is_switched_back_by_an_error():
    @jit.script
    def f(x, n: int):
        with tg.no_grad():
            assert n > 2
        return x

    with pytest.raises(AssertionError):
        f(tg.ones(1), 1)
    assert tg.is_grad_enabled()


def test_exceptions_are_of_their_class_and_of_jits():
    @jit.script
    def f(n: int):
        raise KeyError("no such key")

    with pytest.raises(KeyError):
        f(1)
    with pytest.raises(jit.Error, match="no such key"):
        f(1)


def test_modules_and_classes():
    with pytest.raises(RuntimeError, match="passing an instance"):
        jit.script(tg.nn.Linear)

    @jit.script
    class Pair:
        def __init__(self, a: int):
            self.a = a

    @jit.script
    def f(n: int):
        return Pair(n).a

    assert f(3) == 3 and Pair(4).a == 4


def test_script_if_tracing_outside_of_a_trace():
    @jit.script_if_tracing
    def f(x):
        return {1, 2}

    assert f(1) == {1, 2}


def half(x: float):
    return x * 0.5


def test_numbers_are_taken_out_of_tensors_where_they_are_wanted():
    @jit.script
    def program(x, n: int, weights: list[float], z: complex | None = None):
        return half(x), weights[n] * n, z

    assert program(tg.tensor(3.0), tg.tensor(2), [1, 2, 3], 2) == (1.5, 6.0, 2 + 0j)
    with pytest.raises(RuntimeError, match="'n'"):
        program(tg.tensor(3.0), tg.tensor(2.5), [])


def test_warnings_seeds_and_tracing():
    @jit.script
    def program(x):
        warnings.warn("it is " + "warned", stacklevel=2)
        tg.manual_seed(7)
        return x + tg.rand(2), jit.is_tracing()

    with pytest.warns(UserWarning, match="it is warned"):
        result, tracing = program(tg.zeros(2))
    tg.manual_seed(7)
    assert result.equal(tg.rand(2)) and not tracing


def test_texts_see_the_names_around_them():
    factor = 3
    unit = jit.CompilationUnit("""
        def scaled(x):
            return x * factor + other(x)

        def other(x):
            # type: (Tensor) -> Tensor
            return x
        """)
    assert unit.scaled(tg.ones(1)).item() == 4.0 and unit.find_function("none") is None


@pytest.mark.parametrize(
    "comment, told",
    [
        ("# type: (int -> int", "cannot be read"),
        ("# type: (int, int, int) -> int", "Number of type annotations .3. did not"),
    ],
)
def test_type_comments_that_cannot_be_read_are_refused(comment, told):
    with pytest.raises(jit.Error, match=told):
        jit.CompilationUnit(f"def f(n):\n    {comment}\n    return n")


def test_schemas_tell_what_is_taken_and_given():
    def f(x, y: tuple[int, tg.Tensor], sizes: list[int], s: str = 'a"b', *, n: int | None = None):
        return x, sizes

    schema = jit.script(f).schema
    assert str(schema) == (
        'f(Tensor x, (int, Tensor) y, int[] sizes, str s="a\\"b", *, int? n=None) -> ((Tensor, int[]))'
    )
    assert [a.name for a in schema.arguments] == ["x", "y", "sizes", "s", "n"] and schema.name == "f"
    assert [a.has_default_value() for a in schema.arguments] == [False, False, False, True, True]
    assert [a.kwarg_only for a in schema.arguments] == [False, False, False, False, True]
    assert schema.arguments[3].default_value == 'a"b' and str(schema.arguments[1].type) == "Tuple[int, Tensor]"
    assert str(schema.returns[0].type) == "Tuple[Tensor, List[int]]" and len(schema.returns) == 1
    unit = jit.CompilationUnit("def f(x: BroadcastingList2[int]) -> int:\n    return x[1]\n")
    assert str(unit.f.schema) == "f(int[2] x) -> int" and unit.f.schema.arguments[0].N == 2 and unit.f(3) == 3
    assert schema == jit.script(f).schema and schema != jit.script(lambda x: x).schema


def test_schemas_of_methods_begin_with_self():
    class Net(tg.nn.Module):
        def forward(self, x, n: int = 2) -> dict[str, tg.Tensor]:
            return {"x": x * n}

    scripted = jit.script(Net())
    schema = scripted.forward.schema
    assert [a.name for a in schema.arguments] == ["self", "x", "n"]
    assert str(schema).endswith(".Net self, Tensor x, int n=2) -> Dict(str, Tensor)")
    assert str(schema).startswith("forward(__torch__.")
    with pytest.raises(RuntimeError, match=r"Position: 2(.|\n)*Declaration: forward\(__torch__"):
        scripted(tg.ones(1), "a")
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    told = str(jit.load(file).forward.schema)
    assert told == "forward(__torch__.Net self, Tensor x, int n=2) -> Dict(str, Tensor)"


def test_graphs_answer_what_programs_ask_them():
    @jit.script
    def f(x, n: int):
        if n > 1:
            x = x + 1
        return x + 2

    graph = f.graph
    assert [node.kind() for node in graph.findAllNodes("aten::add")] == ["aten::add"] * 2
    assert len(graph.findAllNodes("aten::add", recurse=False)) == 1 and graph.findNode("aten::mul") is None
    added = graph.findNode("aten::add", recurse=False)
    assert added.output().node() is added and added.output().type().kind() == "TensorType"
    inputs = list(added.inputs())
    assert inputs[0].node() is graph.findNode("prim::If") and inputs[1].value == 2
    assert added.inputsSize() == len(inputs) and added.outputsSize() == 1


def test_a_generator_is_meant_whose_name_typing_has():
    from typing import Generator  # noqa: F401, UP035 - programs import all that typing has

    unit = jit.CompilationUnit(
        "def f(x, g):\n    # type: (Tensor, Generator) -> Tensor\n    return x.uniform_(generator=g)"
    )
    first, second = (unit.f(tg.zeros(3), tg.Generator().manual_seed(2)) for _ in range(2))
    assert first.equal(second) and first.unique().numel() == 3


def test_names_in_annotations_that_nothing_has():
    with pytest.raises(jit.Error, match="Unknown type name 'Foo'"):
        jit.CompilationUnit("def f(x):\n    # type: (Tuple[Foo, Tensor]) -> Tensor\n    return x[1]\n")
    assert jit.CompilationUnit("def f(x: Tensor) -> Tensor:\n    return x\n").f(tg.ones(1)).item() == 1
