"""Hooks on the gradients that enter and leave a module.

A full backward hook wants all input gradients at once and may replace them, so all inputs have
to go through one graph node: an identity `Function` with one output per input, whose backward
hands the gradients to a callback. Tensor hooks on aliases of the inputs cannot do this, since
the first gradient has moved on before the last one is known.
"""

import warnings

import tinygrad_ext as tg

_boundary = None


def _get_boundary():
    """Make the identity Function on first use; few programs have backward hooks."""
    global _boundary
    if _boundary is None:

        class ModuleBoundary(tg.autograd.Function):
            """Identity whose backward is a callback on the tuple of gradients."""

            hooks_only = True  # what graph.capture keeps no node of

            @staticmethod
            def forward(ctx, callback, materialize, *tensors):
                ctx.callback = callback
                ctx.set_materialize_grads(materialize)
                return tuple(tensor.view_as(tensor) for tensor in tensors)

            @staticmethod
            def backward(ctx, *grads):
                return (None, None, *ctx.callback(grads))

        _boundary = ModuleBoundary
    return _boundary


class BackwardHook:
    """The backward hooks of one call of one module.

    Args:
        module: passed to the hooks.
        hooks: called with the gradients of inputs and outputs.
        pre_hooks: called with the gradients of the outputs.
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.n_inputs = 0
        self.n_outputs = 0
        self.input_places = []
        self.output_places = []
        self.grad_output = None

    def watch_inputs(self, args):
        """Return the arguments, tensors that require grad led through the boundary."""
        self.n_inputs = len(args)
        # As in PyTorch: an input that was not used has a gradient of zeros, an output that was not, None.
        args, self.input_places = _through(self._on_input_grads, True, args)
        return args

    def watch_outputs(self, result):
        """Return the module's result, led through the boundary in the same way."""
        if not isinstance(result, (tg.Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=5,
            )
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(outputs)
        outputs, self.output_places = _through(self._on_output_grads, False, outputs)
        if not isinstance(result, tuple):
            return outputs[0]
        # A named tuple takes its fields one by one.
        return type(result)(*outputs) if hasattr(result, "_fields") else outputs

    def _on_output_grads(self, grads):
        grad_output = _spread(grads, self.output_places, self.n_outputs)
        for hook in self.pre_hooks:
            replaced = hook(self.module, grad_output)
            if replaced is not None:
                grad_output = _checked(replaced, len(grad_output), "grad_output")
        self.grad_output = grad_output
        if not self.input_places and self.hooks:
            self._call_without_inputs()
        return [grad_output[place] for place in self.output_places]

    def _call_without_inputs(self):
        warnings.warn(
            f"Full backward hook of {type(self.module).__name__} is firing when gradients are computed "
            "with respect to module outputs since no inputs require gradients.",
            stacklevel=2,
        )
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.n_inputs, self.grad_output)
            if replaced is not None and any(grad is not None for grad in replaced):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None "
                    f"or None for all gradients; a hook of {type(self.module).__name__} returned a value."
                )

    def _on_input_grads(self, grads):
        grad_input = _spread(grads, self.input_places, self.n_inputs)
        if self.grad_output is None:
            return grads  # reached by a path around the outputs, e.g. a loss kept as an attribute
        for hook in self.hooks:
            replaced = hook(self.module, grad_input, self.grad_output)
            if replaced is not None:
                grad_input = _checked(replaced, len(grad_input), "grad_input")
        self.grad_output = None
        return [grad_input[place] for place in self.input_places]


def _through(callback, materialize, values):
    """Lead the tensors of a tuple that require grad through one boundary node.

    Returns the new tuple and the places of those tensors in it.
    """
    if not tg.is_grad_enabled():
        return values, []
    places = [i for i, v in enumerate(values) if isinstance(v, tg.Tensor) and v.requires_grad]
    if not places:
        return values, []
    values = list(values)
    led = _get_boundary().apply(callback, materialize, *(values[i] for i in places))
    for place, tensor in zip(places, led):
        values[place] = tensor
    return tuple(values), places


def _spread(grads, places, count):
    """Return a tuple of ``count`` with the gradients at their places and None elsewhere."""
    spread = [None] * count
    for place, grad in zip(places, grads):
        spread[place] = grad
    return tuple(spread)


def _checked(replaced, count, name):
    if not isinstance(replaced, tuple):
        replaced = (replaced,)
    if len(replaced) != count:
        raise RuntimeError(
            f"Backward hook returned an invalid number of {name}, got {len(replaced)}, but expected {count}"
        )
    return replaced


def register_legacy(module, hooks, args, result):
    """Put hooks of the older kind on the node that made ``result``; says what they will not see."""
    tensor = result
    while not isinstance(tensor, tg.Tensor):
        if isinstance(tensor, dict):
            tensor = next(value for value in tensor.values() if isinstance(value, tg.Tensor))
        else:
            tensor = tensor[0]
    if tensor.grad_fn is not None:
        for hook in hooks:
            tensor.grad_fn.register_hook(
                lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output)
            )
        _warn_of_gaps(module, args, result, tensor.grad_fn)


def _warn_of_gaps(module, args, result, node):
    """FutureWarning where the gradients of that one node are not all that went in or out."""
    outputs = (result,) if isinstance(result, tg.Tensor) else result
    nodes = {t.grad_fn for t in outputs if t.grad_fn is not None} if _only_tensors(outputs) else None
    if nodes is None:
        gap = "does not return a single Tensor or a tuple of Tensors", "grad_output"
    elif not _only_tensors(args):
        gap = "does not take as input a single Tensor or a tuple of Tensors", "grad_input"
    elif len(nodes) > 1:
        gap = "is one whose outputs are generated by different autograd Nodes", "grad_output"
    elif node not in nodes:
        gap = "is one whose outputs are nested", "grad_output"
    elif {t.grad_fn for t in args if t.grad_fn is not None} != {next_node for next_node, _ in node.next_functions}:
        gap = "is one where the forward contains multiple autograd Nodes", "grad_input"
    else:
        return
    warnings.warn(
        f"register_backward_hook(): {type(module).__name__} {gap[0]}, so that the hook misses some of {gap[1]}. This "
        "kind of hook is deprecated: register_full_backward_hook sees them all",
        FutureWarning,
        stacklevel=6,
    )


def _only_tensors(values):
    return isinstance(values, tuple) and all(isinstance(value, tg.Tensor) for value in values)
