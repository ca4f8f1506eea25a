"""What is told when a program cannot be compiled: file, line, the line's text, a caret, what to write instead."""

from tinygrad_ext.graph.primitives.objects import Error

__all__ = [
    "AnnotationError",
    "CompileError",
    "ConstantError",
    "Error",
    "FrontendError",
    "NotSupportedError",
    "UnsupportedNodeError",
    "message",
]


class CompileError(Error):
    """The program does not type, or uses what script does not take."""


class FrontendError(CompileError):
    """The source cannot be read."""


class AnnotationError(CompileError, ValueError):
    """An annotation that is no type, or stands at the wrong place."""


class ConstantError(CompileError, TypeError):
    """An attribute is told to be a constant, and is nothing that a graph can hold."""


class NotSupportedError(FrontendError):
    """Python has it, script does not."""


class UnsupportedNodeError(NotSupportedError):
    """A whole kind of statement or expression that script does not take."""


def message(what, source, node, instead=""):
    """The text of an error about a node of a source."""
    text = f"{what}\n{source.mark(node)}" if source is not None and node is not None else what
    return f"{text}\n{instead}" if instead else text
