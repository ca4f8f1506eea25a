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
    "misfit",
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


_MISFITS = {
    "a value to return": "Return value was annotated as having type {wanted} but is actually of type {given}",
    "a list literal": "List type annotation `List[{wanted}]` did not match the types of the given list elements: one "
    "is of type {given}",
    "an item": "Could not match type {given} to {wanted}: Expected a value of type '{wanted}' for an item but instead "
    "found type '{given}'",
    "an index": "Arguments for call are not valid: Expected a value of type '{wanted}' for an index but instead found "
    "type '{given}'",
}


def misfit(what, wanted, given):
    """What is told when an operand, of which it is said what it is for, is not of the type that is wanted there."""
    part, _, whole = what.partition(" of Dict")
    if whole:
        return f"Dict type annotation `Dict{whole}` did not match the type of an actual {part} type `{given}`"
    plain = "Expected a value of type '{wanted}'" + (f" for {what}" if what != "a value" else "")
    text = _MISFITS.get(what, plain + " but instead found type '{given}'")
    return text.format(wanted=wanted, given=given)


def message(what, source, node, instead=""):
    """The text of an error about a node of a source."""
    text = f"{what}\n{source.mark(node)}" if source is not None and node is not None else what
    return f"{text}\n{instead}" if instead else text
