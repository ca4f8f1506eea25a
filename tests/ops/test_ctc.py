"""The derivative of ctc_loss as an op: what it is given has the sizes of the loss."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize("shape", [(), (2,), (4,), (3, 1), (0,)])
def test_a_gradient_of_another_batch_is_refused(shape):
    log_probs, targets = tg.zeros(4, 3, 5).log_softmax(-1), tg.ones(3, 2, dtype=tg.long)
    steps, labels = tg.full((3,), 4), tg.full((3,), 2)
    backward = tg.ops.aten._ctc_loss_backward.default
    with pytest.raises(RuntimeError, match="grad must be of size batch_size"):
        backward(log_probs, targets, steps, labels, 0, False, tg.ones(shape))
    assert backward(log_probs, targets, steps, labels, 0, False, tg.ones(3)).shape == (4, 3, 5)
