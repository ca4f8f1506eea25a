"""Modules as one graph with its state: `export(mod, args)` gives an `ExportedProgram`, `save` and `load` keep it.

Sizes are those of the example unless `dynamic_shapes` leaves them open, as in PyTorch's `torch.export`.
"""

from .decompositions import default_decompositions
from .dynamic_shapes import Dim, ShapesCollection, dims
from .exporting import UserError, export, load, save
from .graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from .program import ExportedProgram
from .unflatten import UnflattenedModule, unflatten

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "ShapesCollection",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "UnflattenedModule",
    "UserError",
    "default_decompositions",
    "dims",
    "export",
    "load",
    "save",
    "unflatten",
]
