"""Whether two graphs are the same program, without writing either: what equal texts say."""

from .values import alike


def same_program(a, b):
    """Whether two graphs have the same text."""
    return (
        (a.name, a.effects, _told(a.state)) == (b.name, b.effects, _told(b.state))
        and _same_block(a.block, b.block)
        and all(s.written == t.written and (not s.written or alike(s.new, t.new)) for s, t in zip(a.state, b.state))
    )


def _told(states):
    return [(s.kind, s.name, s.value.name, s.value.type) for s in states]


def _same_block(a, b):
    if len(a.nodes) != len(b.nodes) or not _same_values(a.inputs, b.inputs) or not alike(a.outputs[:], b.outputs[:]):
        return False
    for m, n in zip(a.nodes, b.nodes):
        if m.op != n.op or m.line != n.line or not alike(m.args, n.args) or not _same_values(m.outputs, n.outputs):
            return False
        if m.version != n.version or m.owner != n.owner or len(m.blocks) != len(n.blocks):
            return False
        if m.blocks and not all(map(_same_block, m.blocks, n.blocks)):
            return False
    return True


def _same_values(a, b):
    return len(a) == len(b) and all([v.name == w.name and v.type is w.type for v, w in zip(a, b)])
