"""What tests of derivatives of graphs share."""

import tinygrad_ext as tg
from tinygrad_ext.graph import derivative


def tensors(rows=3, sign=1.0):
    tg.manual_seed(rows)
    x = (tg.randn(rows, 4).abs() * sign).requires_grad_()
    return x, (tg.randn(4, 4) + sign).requires_grad_()


def runner(graph):
    def call(*args):
        outputs, _ = derivative.run(graph, list(args))
        return outputs[0]

    return call


def orders(call, args, count):
    """For each order of derivative, the gradients of the tensors in args; fewer where nothing flows any more."""
    out, found = call(*args), []
    total, leaves = out[0] if isinstance(out, tuple) else out, [a for a in args if isinstance(a, tg.Tensor)]
    while len(found) < count and isinstance(total, tg.Tensor) and total.requires_grad:
        grads = tg.autograd.grad(total.sum(), leaves, create_graph=True, allow_unused=True)
        found.append([None if g is None else g.numpy(force=True) for g in grads])
        total = sum(g.sin().sum() for g in grads if g is not None)
    return found


def refused(graph):
    """Why there is no derivative of a graph, or of one of its derivatives."""
    if graph.derivative is None:
        return []
    wholes = [joint.whole for joints in graph.derivative.joints.values() for joint in joints]
    return [*graph.derivative.refused.values(), *(why for whole in wholes for why in refused(whole))]
