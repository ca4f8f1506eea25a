"""The two functions of `torch.optim.lbfgs` that minimisers of their own call: the line search of `optim.LBFGS`."""

from tinygrad_ext.optim import _wolfe


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with these slopes is least, within bounds, or else between the points."""
    return _wolfe.cubic_minimum(_wolfe._Point(x1, f1, None, g1), _wolfe._Point(x2, f2, None, g2), bounds)


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """(loss, gradient, length, calls) of a step from x along d; ``obj_func(x, t, d)`` gives loss and gradient."""
    return _wolfe.strong_wolfe(
        lambda t: obj_func(x, t, d), t, f, g, gtd, d, tolerance_change, decrease=c1, curvature=c2, tries=max_ls
    )
