"""The derivative of packing and padding."""

import tinygrad_ext as tg
from tinygrad_ext.nn.utils import rnn


def _nodes(*outputs):
    seen, todo = set(), [t.grad_fn for t in outputs]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [after for after, _ in node.next_functions]
    return len(seen)


def test_packing_derives_in_as_many_nodes_for_any_number_of_steps():
    """One for each step would write zeros for all steps as often as there are steps."""

    def nodes(steps):
        packed = rnn.pack_padded_sequence(tg.rand(steps, 2, 3, requires_grad=True), [steps, steps - 1])
        return _nodes(packed.data), _nodes(rnn.pad_packed_sequence(packed)[0])

    assert nodes(3) == nodes(40)
