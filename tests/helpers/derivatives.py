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
