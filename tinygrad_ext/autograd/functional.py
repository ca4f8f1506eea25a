"""Derivatives of functions as functions: vjp, jvp, jacobian, hessian, vhp, hvp.

Everything is done by backward. A product with the Jacobian itself (jvp) is the derivative of a vjp by its vector, in
which it is linear.
"""

from tinygrad_ext.autograd import functional_args as args
from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.autograd.modes import enable_grad
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later as _later
from tinygrad_ext.core.data.slots import get_slot

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


@boundary
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """A vector times the Jacobian of `func`: (outputs, products), the products shaped as `inputs`.

    Arguments:
        func: function of tensors that returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, shaped as the outputs; may be left out for a single element.
        create_graph: make outputs and products differentiable.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Raises TypeError when something else than tensors comes in or out, and RuntimeError when v does not fit.

    Example::

        outputs, products = vjp(lambda x: x.exp().sum(dim=1), torch.rand(4, 4), torch.ones(4))
    """
    with enable_grad():
        several, inputs = args.tensors(inputs, "inputs", "vjp")
        inputs = args.fresh(inputs, create_graph)
        many, outputs = args.results(func, inputs, "vjp")
        if strict:
            args.require_graph(outputs, "outputs")
        v = args.vector(v, outputs, many, create_graph, "vjp", "the user-provided function returns")
        products = args.gradients(outputs, inputs, v, create_graph)
        products = args.filled(products, inputs, strict, create_graph, "vjp")
    return args.packed(args.cut(outputs, create_graph), many), args.packed(args.cut(products, create_graph), several)


@boundary
def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The Jacobian of `func` times a vector: (outputs, products), the products shaped as the outputs.

    Arguments as for `vjp`, with v shaped as `inputs`. It takes two backward passes: func must be differentiable twice.

    Example::

        outputs, products = jvp(lambda x: x.exp().sum(dim=1), torch.rand(4, 4), torch.ones(4, 4))
    """
    with enable_grad():
        several, inputs = args.tensors(inputs, "inputs", "jvp")
        inputs = args.fresh(inputs, create_graph)
        v = args.vector(v, inputs, several, create_graph, "jvp", "the input to the user-provided function is")
        many, outputs = args.results(func, inputs, "jvp")
        if strict:
            args.require_graph(outputs, "outputs")
        seeds = tuple(args.zeros(out, requires_grad=True) for out in outputs)
        pulled = args.gradients(outputs, inputs, seeds, create_graph=True)
        if strict:
            args.require_graph(pulled, "gradients")
        products = args.gradients(pulled, seeds, v, create_graph)
        products = args.filled(products, outputs, strict, create_graph, "jvp")
    return args.packed(args.cut(outputs, create_graph), many), args.packed(args.cut(products, create_graph), many)


@boundary
def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of `func`: a tensor, a tuple, or a tuple of tuples, for one or several outputs and inputs.

    ``jacobian[i][j]`` belongs to output i and input j; its shape is the output's followed by the input's.

    Arguments as for `vjp`, and:
        vectorize: compute all rows in one backward pass, by vmap.
        strategy: 'reverse-mode', or with vectorize 'forward-mode': best for more outputs than inputs.

    Raises as `vjp`; RuntimeError for strict together with vectorize or forward mode, and for complex outputs;
    NotImplementedError for forward mode without vectorize or with create_graph.

    Example::

        matrix = jacobian(lambda x: x.exp(), torch.rand(3))        # (3, 3), diagonal
    """
    _check_strategy("jacobian", strategy)
    if strategy == "forward-mode":
        return _pushed(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several, inputs = args.tensors(inputs, "inputs", "jacobian")
        inputs = args.fresh(inputs, create_graph)
        many, outputs = args.results(func, inputs, "jacobian")
        if strict:
            args.require_graph(outputs, "outputs")
        if strict and vectorize:
            raise RuntimeError(
                "jacobian: `strict=True` and `vectorized=True` are not supported together. Leave one of strict and "
                "vectorize out."
            )
        if vectorize:
            blocks = [_rows_at_once(out, inputs, create_graph) for out in outputs]
        else:
            blocks = [_rows(i, out, inputs, create_graph, strict) for i, out in enumerate(outputs)]
    blocks = tuple(args.packed(args.cut(row, create_graph), several) for row in blocks)
    return args.packed(blocks, many)


def _check_strategy(who, strategy):
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'{who}: Expected strategy to be either "forward-mode" or "reverse-mode", got {strategy!r}.'
        )


def _pushed(func, inputs, create_graph, strict, vectorize, differentiates=False):
    """The Jacobian by forward mode, all columns at once; differentiates: func does so itself, for each column."""
    if create_graph or strict:
        error, which = (NotImplementedError, "create_graph=True") if create_graph else (RuntimeError, "strict=True")
        raise error(
            f'jacobian: `{which}` and `strategy="forward-mode"` are not supported together (yet). Leave it out, or set '
            '`strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    several, inputs = args.tensors(inputs, "inputs", "jacobian")
    inputs = tuple([x.detach() for x in inputs])
    shapes, many = [], False

    def push(inputs, *tangents):
        nonlocal many
        run = lambda *x: args.results(func, x, "jacobian")[::-1]
        values, products, many = _later("forward mode").jvp(run, inputs, tangents, has_aux=True)
        shapes[:] = [v.shape for v in values]
        return tuple(products)

    basis = _basis(inputs)
    given, dim = inputs, None
    if differentiates:
        given, dim = tuple([x.expand(len(basis[0]), *x.shape) for x in inputs]), 0
    columns = _later("vmap").vmap(push, (dim, *[0] * len(basis)))(given, *basis)
    blocks = []
    for found, shape in zip(columns, shapes):
        parts = found.split([x.numel() for x in inputs])
        row = [p.movedim(0, -1).reshape((*shape, *x.shape)) for p, x in zip(parts, inputs)]
        blocks.append(args.packed(args.cut(row, create_graph), several))
    return args.packed(tuple(blocks), many)


def _basis(inputs):
    """For each input the unit vectors of all inputs together: one row for each element of any."""
    total, start, found = sum(x.numel() for x in inputs), 0, []
    for x in inputs:
        rows = args.zeros(x).new_zeros((total, x.numel()))
        rows.narrow(0, start, x.numel()).diagonal().fill_(1)
        found.append(rows.reshape((total, *x.shape)))
        start += x.numel()
    return found


def _rows_at_once(out, inputs, create_graph):
    """The Jacobians of an output by each input, from one backward pass for all of its elements."""
    if not (out.requires_grad and out.numel()):
        return [args.zeros(x).new_zeros((*out.shape, *x.shape)) for x in inputs]
    seeds = args.zeros(out).new_zeros((out.numel(), out.numel()))
    seeds.diagonal().fill_(1)
    found = grad(
        out, inputs, seeds.reshape(-1, *out.shape), True, create_graph, allow_unused=True, is_grads_batched=True
    )
    shapes = [(*out.shape, *x.shape) for x in inputs]
    return [x.new_zeros(s) if g is None else g.reshape(s) for g, s, x in zip(found, shapes, inputs)]


def _rows(i, out, inputs, create_graph, strict):
    """The Jacobians of output i by each input, from one backward for each of its elements."""
    if out.requires_grad and out.dtype.is_complex:
        raise RuntimeError(
            f"jacobian: grad can be implicitly created only for real scalar outputs but output {i} is {out.dtype}: "
            "return its .real and .imag"
        )
    rows = [[] for _ in inputs]
    for k in range(out.numel()):
        seed = args.zeros(out)
        seed.view(-1)[k] = 1
        row = args.gradients((out,), inputs, (seed,), create_graph, retain_graph=True)
        for j, (t, x) in enumerate(zip(row, inputs)):
            if t is None and strict:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in "
                    "strict mode."
                )
            if t is not None and strict and create_graph and not t.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {j}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            rows[j].append(args.zeros(x) if t is None else t)
    shapes = [(*out.shape, *x.shape) for x in inputs]
    stack = get_slot("stack_rows")
    return [
        stack(found).reshape(s) if found else args.zeros(x).new_zeros(s) for found, s, x in zip(rows, shapes, inputs)
    ]


@boundary
def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function with a single element: a tensor, or a tuple of tuples for several inputs.

    ``hessian[i][j]`` is the second derivative by inputs i and j; its shape is that of both together.

    Arguments as for `jacobian`; raises RuntimeError when func returns anything but one tensor with one element.

    Example::

        matrix = hessian(lambda x: (x**3).sum(), torch.rand(3))    # (3, 3), diagonal 6 x
    """
    several, inputs = args.tensors(inputs, "inputs", "hessian")
    _check_strategy("hessian", outer_jacobian_strategy)

    def scalar(*given):
        return _single(func, given, strict, "hessian").reshape(())

    def slope(*given):
        if outer_jacobian_strategy == "forward-mode":
            given = tuple([x.requires_grad_() for x in given])
        found = jacobian(scalar, given, create_graph=True)
        if strict:
            args.require_graph(found, "jacobian")
        return found

    if outer_jacobian_strategy == "forward-mode":
        found = _pushed(slope, inputs, create_graph, strict, vectorize, differentiates=True)
    else:
        found = jacobian(slope, inputs, create_graph, strict, vectorize)
    return found if several else found[0][0]


def _single(func, inputs, strict, who):
    """The one output of func, which must be a tensor with one element."""
    many, outputs = args.results(func, inputs, who)
    if strict:
        args.require_graph(outputs, "outputs")
    if many:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {who} should contain a single element, got shape "
            f"{tuple(outputs[0].shape)}"
        )
    return outputs[0]


def _slope(func, inputs, v, create_graph, strict, who):
    """(whether inputs are several, inputs, v, output, gradients): what vhp and hvp begin with."""
    several, inputs = args.tensors(inputs, "inputs", who)
    inputs = args.fresh(inputs, create_graph)
    v = args.vector(v, inputs, several, create_graph, who, "the input to the user-provided function is")
    output = _single(func, inputs, strict, who)
    slope = args.gradients((output,), inputs, create_graph=True)
    if strict:
        args.require_graph(slope, "jacobian")
    return several, inputs, v, output, slope


@boundary
def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """A vector times the Hessian of `func`: (output, products), the products shaped as `inputs`.

    Arguments as for `vjp`, with v shaped as `inputs`; func returns one tensor with one element.

    Example::

        output, products = vhp(lambda x: (x**3).sum(), torch.rand(2), torch.ones(2))
    """
    with enable_grad():
        several, inputs, v, output, slope = _slope(func, inputs, v, create_graph, strict, "vhp")
        products = args.gradients(slope, inputs, v, create_graph)
        products = args.filled(products, inputs, strict, create_graph, "vhp")
    return args.cut((output,), create_graph)[0], args.packed(args.cut(products, create_graph), several)


@boundary
def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The Hessian of `func` times a vector: (output, products), the products shaped as `inputs`.

    As `vhp`, which is cheaper and gives the same for functions with continuous second derivatives: here three backward
    passes are made, and func must be differentiable three times.

    Example::

        output, products = hvp(lambda x: (x**3).sum(), torch.rand(2), torch.ones(2))
    """
    with enable_grad():
        several, inputs, v, output, slope = _slope(func, inputs, v, create_graph, strict, "hvp")
        seeds = tuple(args.zeros(x, requires_grad=True) for x in inputs)
        pulled = args.gradients(slope, inputs, seeds, create_graph=True)
        if strict:
            args.require_graph(slope, "hessian")
        products = args.gradients(pulled, seeds, v, create_graph)
        products = args.filled(products, inputs, strict, create_graph, "hvp")
    return args.cut((output,), create_graph)[0], args.packed(args.cut(products, create_graph), several)
