"""Numerical checks of first and second derivatives."""

from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.core.construct import from_numpy
from tinygrad_ext.core.tensor import Tensor


class GradcheckError(RuntimeError):
    """A numerical and an analytical gradient disagree."""


def _tensors(values):
    return [t for t in values if isinstance(t, Tensor) and t.requires_grad]


def _outputs(result):
    out = result if isinstance(result, (tuple, list)) else (result,)
    return [t for t in out if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)]


def _numerical(fn, inputs, x, eps):
    """d outputs / d x by central differences: one matrix (x elements, output elements) for each output."""
    import numpy as np

    flat = x.detach().numpy().reshape(-1) if x.is_contiguous() else None
    columns = None
    steps = [(eps, 1.0)] if not x.dtype.is_complex else [(eps, 1.0), (1j * eps, 1j)]
    where = list(np.ndindex(*x.shape)) if flat is None else range(x.numel())
    target = x.detach().numpy() if flat is None else flat
    for i in where:
        total = None
        for step, unit in steps:
            saved = target[i]
            target[i] = saved + step
            high = [
                t.detach().numpy().astype(complex if t.dtype.is_complex else float).reshape(-1).copy()
                for t in _outputs(fn(*inputs))
            ]
            target[i] = saved - step
            low = [
                t.detach().numpy().astype(complex if t.dtype.is_complex else float).reshape(-1).copy()
                for t in _outputs(fn(*inputs))
            ]
            target[i] = saved
            d = [(h - lo) / (2 * eps) for h, lo in zip(high, low)]
            total = d if total is None else [a + unit * b for a, b in zip(total, d)]
        if columns is None:
            columns = [[] for _ in total]
        for c, d in zip(columns, total):
            c.append(d)
    return [np.array(c) for c in columns] if columns is not None else []


def _analytical(output, x):
    """d output / d x by one backward pass for each output element."""
    import numpy as np

    rows = []
    # a real input learns of an output's imaginary part only from an imaginary seed
    units = (1, 1j) if output.dtype.is_complex and not x.dtype.is_complex else (1,)
    for j in range(output.numel()):
        row = np.zeros(x.numel())
        for unit in units:
            seed = np.zeros(tuple(output.shape), output.dtype.name)
            seed.reshape(-1)[j] = unit
            (g,) = grad(output, x, from_numpy(seed), retain_graph=True, allow_unused=True)
            row = row if g is None else row + unit * g.detach().numpy().reshape(-1)
        rows.append(row)
    return np.array(rows).T if rows else np.zeros((x.numel(), 0))


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """Compare the derivative of `func` at `inputs` with central differences.

    Arguments:
        func: function of tensors that returns a tensor or a tuple of them.
        inputs: tensor or tuple; those that require grad (float64) are checked.
        eps: step of the differences. atol, rtol: |numerical - analytical| <= atol + rtol * |numerical|.

    Returns True; raises GradcheckError (or returns False) at the first mismatch, ValueError when no input requires
    grad.
    """
    import numpy as np

    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _tensors(inputs)
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    outputs = _outputs(func(*inputs))
    for j, x in enumerate(checked):
        numeric = _numerical(func, inputs, x, eps)
        for i, out in enumerate(outputs):
            analytic = _analytical(out, x) if out.requires_grad else np.zeros((x.numel(), out.numel()))
            want = numeric[i].reshape(analytic.shape) if numeric else analytic
            if not np.allclose(analytic, want, rtol, atol, equal_nan=True):
                if not raise_exception:
                    return False
                worst = np.unravel_index(np.argmax(np.abs(np.nan_to_num(analytic - want, nan=np.inf))), want.shape)
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j}, worst at {worst}: "
                    f"numerical {want[worst]}, analytical {analytic[worst]}\nnumerical:\n{want}\n"
                    f"analytical:\n{analytic}"
                )
    return True


def _random_seed(t):
    """A leaf of t's shape and dtype with normal numbers, the same ones each time."""
    import numpy as np

    draw = np.random.default_rng(0).standard_normal
    values = draw(tuple(t.shape)) + (1j * draw(tuple(t.shape)) if t.dtype.is_complex else 0)
    return from_numpy(np.asarray(values).astype(t.dtype.name)).requires_grad_()


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """Check the derivative of the derivative of `func`; arguments as for `gradcheck`.

    grad_outputs: gradients of the outputs (random ones by default).
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    n = len(inputs)
    outputs = [t for t in _outputs(func(*inputs)) if t.requires_grad]
    if grad_outputs is None:
        grad_outputs = [_random_seed(t) for t in outputs]
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = [grad_outputs]

    def first(*args):
        given, seeds = args[:n], args[n:]
        outs = [t for t in _outputs(func(*given)) if t.requires_grad]
        wanted = _tensors(given)
        got = grad(outs, wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    return gradcheck(first, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
