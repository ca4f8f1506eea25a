"""Why the kernel of an op is no C: by the name of one that speaks Python, or of an op whose kernel is a function."""

_DRAW = "one step of three ops, drawing, scaling and adding, so that nothing but the results is kept"
REASONS = {
    "basic_index": "reads an index: ints, slices, None, Ellipsis, tuples of them",
    "basic_index_backward": "reads the same index",
    "tensor": "reads nested lists of anything that is a number",
    "item": "gives a Python number",
    "tolist": "gives nested lists of Python numbers",
    "copy": "carries elements to and from the memory of plugins' devices",
    "_to_copy": "makes its result on another device",
    "aten::normal.Tensor_float": _DRAW,
    "aten::normal.float_Tensor": _DRAW,
    "aten::normal.Tensor_Tensor": _DRAW,
    "aten::logsumexp": "one step of ops, whose derivative, a softmax, is finite where theirs is not",
    "aten::_pinv": "one step of a decomposition and products, whose derivative does not go through singular vectors",
}


def reason(op):
    """Why this op's kernel is Python, or None for one in C and a composite. Plugins say it in their own words."""
    if op.kernel_kind == "boxed":
        return REASONS.get(op.record.kernel)
    if op.kernel_kind == "python":
        return REASONS.get(op.name, "brought by a plugin")
    return None
