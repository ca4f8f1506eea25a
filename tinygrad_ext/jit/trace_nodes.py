"""What `_get_trace_graph` gives: a graph of the ops that ran, with the questions that PyTorch's graphs answer.

It is told, and never run: the graphs that `trace` makes are `graph.Graph`. Every constant, list and tuple is a node of
its own, as in PyTorch's, so that the inputs of a node are values without exception.
"""

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph.types import ANY, OF_PYTHON, TENSOR, Type, list_of

_SCALARS = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16",
    "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
_MARKS = {int: "i", bool: "i", float: "f", str: "s", Tensor: "t"}  # of what an attribute holds


class ValueType:
    """The type of a value; of a tensor with what was seen of it: `sizes()`, `strides()`, `dtype()`."""

    def __init__(self, type, example=None):
        self._type = type
        if isinstance(example, Tensor):
            self._sizes, self._strides = [int(n) for n in example.shape], [int(n) for n in example.stride()]
            self._dtype, self._device, self._grad = example.dtype, example.device, example.requires_grad

    def kind(self):
        """PyTorch's word: "TensorType", "ListType"."""
        return self._type.kind()

    def sizes(self):
        return list(self._sizes)

    def strides(self):
        return list(self._strides)

    def dim(self):
        return len(self._sizes)

    def dtype(self):
        return self._dtype

    def device(self):
        return self._device

    def scalarType(self):
        """ "Float", "Long"."""
        return _SCALARS.get(str(self._dtype).rpartition(".")[2])

    def requires_grad(self):
        return self._grad

    def getElementType(self):
        return ValueType(self._type.args[0])

    def elements(self):
        return [ValueType(part) for part in self._type.args]

    @property
    def annotation_str(self):
        return str(self._type)

    def str(self):
        return str(self)

    def __str__(self):
        if self._type is not TENSOR:
            return f"{self._type.args[0]}[]" if self._type.word == "List" else str(self._type)
        parts = [*map(str, self._sizes), f"strides={self._strides}"] if self._sizes else []
        return f"{self.scalarType()}({', '.join([*parts, f'requires_grad={self._grad:d}', f'device={self._device}'])})"


class Value:
    """An input of the graph, or what a node makes."""

    def __init__(self, number, node, type, example=None):
        self._number, self._node, self._type, self._uses = number, node, ValueType(type, example), []
        self._constant = None  # the node's, where that is a constant
        self._is_tensor = isinstance(example, Tensor)

    def unique(self):
        return self._number

    def debugName(self):
        return str(self._number)

    def node(self):
        return self._node

    def type(self):
        return self._type

    def uses(self):
        """Each has the node that takes the value as `user`, and at which place as `offset`."""
        return list(self._uses)

    def isCompleteTensor(self):
        return self._is_tensor

    def requires_grad(self):
        return self._is_tensor and self._type.requires_grad()

    requiresGrad = requires_grad

    def toIValue(self):
        """What a constant is; None of anything else."""
        return self._constant

    def __repr__(self):
        return f"%{self._number} : {self._type}"


class Use:
    def __init__(self, user, offset):
        self.user, self.offset = user, offset


class Node:
    """One op that ran. Its `kind()` is the op without the overload: "aten::add_"."""

    def __init__(self, kind, inputs=(), attributes=None, scope="", line="", python=""):
        self._kind, self._inputs, self._attributes = kind, list(inputs), attributes or {}
        self._scope, self._line, self._python, self._outputs = scope, line, python, []
        for i, value in enumerate(self._inputs):
            value._uses.append(Use(self, i))

    def kind(self):
        return self._kind

    def inputs(self):
        return iter(self._inputs)

    def outputs(self):
        return iter(self._outputs)

    def inputsSize(self):
        return len(self._inputs)

    def outputsSize(self):
        return len(self._outputs)

    def inputsAt(self, i):
        return self._inputs[i]

    def outputsAt(self, i):
        return self._outputs[i]

    def input(self):
        (value,) = self._inputs
        return value

    def output(self):
        (value,) = self._outputs
        return value

    def hasUses(self):
        return any(value._uses for value in self._outputs)

    def scopeName(self):
        """The scopes that were entered where it ran, "outer/inner"."""
        return self._scope

    def sourceRange(self):
        """The user's line."""
        return self._line

    def pyname(self):
        """The name of the Function that a "prim::PythonOp" calls."""
        return self._python

    def attributeNames(self):
        return list(self._attributes)

    def hasAttributes(self):
        return bool(self._attributes)

    def hasAttribute(self, name):
        return name in self._attributes

    def kindOf(self, name):
        """ "i", "f", "s" or "t", by what the attribute holds; "ival" for anything else."""
        return _MARKS.get(type(self._attributes[name]), "ival")

    def ival(self, name):
        """An attribute."""
        return self._attributes[name]

    i = f = s = t = ival

    def __str__(self):
        told = "".join(f"[{name}={value!r}]" for name, value in self._attributes.items())
        made = ", ".join(map(repr, self._outputs))
        line = f" # {self._line}" if self._line else ""
        return f"{made} = {self._kind}{told}({', '.join(f'%{v._number}' for v in self._inputs)}){line}"


class TraceGraph:
    """Nodes in the order in which they ran."""

    def __init__(self):
        self._count, self._nodes = 0, []
        self._param, self._return = Node("prim::Param"), Node("prim::Return")

    def inputs(self):
        """What the program was given, then its parameters and buffers."""
        return self._param.outputs()

    def outputs(self):
        return self._return.inputs()

    def nodes(self):
        return iter(list(self._nodes))

    def param_node(self):
        return self._param

    def return_node(self):
        return self._return

    def findAllNodes(self, kind, recurse=True):
        """The nodes of a kind."""
        return [node for node in self._nodes if node._kind == kind]

    def findNode(self, kind, recurse=True):
        """The first node of a kind, or None."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self):
        inputs = ",\n      ".join(map(repr, self.inputs()))
        lines = "".join(f"  {node}\n" for node in self._nodes)
        return f"graph({inputs}):\n{lines}  return ({', '.join(f'%{v._number}' for v in self.outputs())})\n"

    # ---- building -------------------------------------------------------------------------------------------------

    def output_of(self, node, type=TENSOR, example=None):
        """Add an output to a node."""
        made = Value(self._count, node, type, example)
        self._count += 1
        node._outputs.append(made)
        return made

    def add(self, *args):
        """Add a node, see `Node`."""
        node = Node(*args)
        self._nodes.append(node)
        return node

    def constant(self, value, *where):
        """A value that is known; one that Python has no plain type of keeps what it is."""
        node = self.add("prim::Constant", (), {} if value is None else {"value": value}, *where)
        is_tensor = isinstance(value, Tensor)
        made = self.output_of(node, TENSOR if is_tensor else OF_PYTHON.get(type(value), ANY), value)
        made._constant = value
        return made

    def row(self, values, is_list, *where):
        """A list or tuple of values."""
        node = self.add("prim::ListConstruct" if is_list else "prim::TupleConstruct", values, None, *where)
        types = [value._type._type for value in values]
        return self.output_of(node, list_of(types[0] if types else TENSOR) if is_list else Type("Tuple", types))

    def end(self, values):
        """Say what is returned."""
        self._return = Node("prim::Return", values)
