"""Modules as one graph with its state: `export(mod, args)` gives an `ExportedProgram`, `save` and `load` keep it.

Sizes are those of the example unless `dynamic_shapes` leaves them open, as in PyTorch's `torch.export`.
"""

from .decompositions import default_decompositions
from .dims import Dim
from .exporting import UserError, export, load, save
from .program import ExportedProgram
from .signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = [
    "ConstantArgument",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
    "UserError",
    "default_decompositions",
    "export",
    "load",
    "save",
]
