"""What the inputs and outputs of an exported graph stand for."""

from dataclasses import dataclass
from enum import Enum, auto

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.fx.node import Node


class InputKind(Enum):
    """What an input of the graph is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()  # the state of a generator


class OutputKind(Enum):
    """What an output of the graph is."""

    USER_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    USER_INPUT_MUTATION = auto()


@dataclass
class TensorArgument:
    """A value of the graph. Attributes: name."""

    name: str


@dataclass
class SymIntArgument:
    """A whole number of the graph. Attributes: name."""

    name: str


@dataclass
class SymFloatArgument:
    """A number of the graph that need not be whole. Attributes: name."""

    name: str


@dataclass
class SymBoolArgument:
    """A truth value of the graph. Attributes: name."""

    name: str


@dataclass
class CustomObjArgument:
    """A value that is neither tensor nor number, such as a generator. Attributes: name, class_fqn (its type)."""

    name: str
    class_fqn: str


@dataclass
class ConstantArgument:
    """A number, a text or None. Attributes: name, value."""

    name: str
    value: object


@dataclass
class InputSpec:
    """An input. Attributes: kind, arg; target, the path of a parameter, buffer or constant; persistent, of a buffer."""

    kind: InputKind
    arg: object
    target: str | None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """An output. Attributes: kind, arg; target, the path of what is written."""

    kind: OutputKind
    arg: object
    target: str | None


@dataclass
class ExportGraphSignature:
    """Inputs and outputs of an exported graph. Attributes: input_specs, output_specs."""

    input_specs: list
    output_specs: list

    def _targets(self, kind):
        return [spec.target for spec in self.input_specs if spec.kind is kind]

    @property
    def parameters(self):
        """Paths of the parameters that the graph reads."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        """Paths of the buffers that the graph reads."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        """Those of the buffers that state_dict leaves out."""
        return [spec.target for spec in self.input_specs if spec.persistent is False]

    @property
    def lifted_tensor_constants(self):
        """Names of tensors that belong to no module."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self):
        """Names of the arguments."""
        return [spec.arg.name for spec in self.input_specs if spec.kind is InputKind.USER_INPUT]

    @property
    def user_outputs(self):
        """Names of what is returned, and constants."""
        user = [spec.arg for spec in self.output_specs if spec.kind is OutputKind.USER_OUTPUT]
        return [arg.value if isinstance(arg, ConstantArgument) else arg.name for arg in user]

    def _names(self, kind):
        return {spec.arg.name: spec.target for spec in self.input_specs if spec.kind is kind}

    @property
    def inputs_to_parameters(self):
        """Name in the graph -> path."""
        return self._names(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        """Name in the graph -> path."""
        return self._names(InputKind.BUFFER)

    @property
    def buffers_to_mutate(self):
        """Name of the new value in the graph -> path."""
        return {s.arg.name: s.target for s in self.output_specs if s.kind is OutputKind.BUFFER_MUTATION}

    @property
    def inputs_to_lifted_tensor_constants(self):
        """Name in the graph -> name of a tensor that belongs to no module."""
        return self._names(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        """Names of generators that the graph draws from."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def inputs_to_lifted_custom_objs(self):
        """Name in the graph -> name of a generator."""
        return self._names(InputKind.CUSTOM_OBJ)

    @property
    def parameters_to_mutate(self):
        """Name of the new value in the graph -> path."""
        return {s.arg.name: s.target for s in self.output_specs if s.kind is OutputKind.PARAMETER_MUTATION}

    @property
    def user_inputs_to_mutate(self):
        """Name of the new value in the graph -> name of the argument that is written to."""
        return {s.arg.name: s.target for s in self.output_specs if s.kind is OutputKind.USER_INPUT_MUTATION}

    def replace_all_uses(self, old, new):
        """Call a value of the graph `new` wherever it was `old`."""
        for spec in (*self.input_specs, *self.output_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def __str__(self):
        told = ["# inputs"]
        for spec in self.input_specs:
            target = f" target='{spec.target}'" if spec.target else ""
            kept = f" persistent={spec.persistent}" if spec.persistent is not None else ""
            told.append(f"{spec.arg.name}: {spec.kind.name}{target}{kept}")
        told += ["", "# outputs"]
        for spec in self.output_specs:
            name = repr(spec.arg.value) if isinstance(spec.arg, ConstantArgument) else spec.arg.name
            told.append(f"{name}: {spec.kind.name}" + (f" target='{spec.target}'" if spec.target else ""))
        return "\n".join(told)


_ARGUMENTS = {bool: SymBoolArgument, int: SymIntArgument, float: SymFloatArgument}


def argument_of(a):
    """What stands for a node of an fx graph, by what it is for the example; a ConstantArgument for what is no node."""
    if not isinstance(a, Node):
        return ConstantArgument("", a)
    value = a.meta.get("val")
    if isinstance(value, Tensor):
        return TensorArgument(a.name)
    if type(value) in _ARGUMENTS:
        return _ARGUMENTS[type(value)](a.name)
    if value is None or isinstance(value, str):
        return ConstantArgument(a.name, value)
    return CustomObjArgument(a.name, type(value).__name__)
