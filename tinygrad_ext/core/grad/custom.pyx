# cython: language_level=3
"""What is known of an op whose Python function, a kernel or a composite, is from elsewhere; custom_call.pyx calls it.

It is read off the schema once, not at each call. A module of its own, since both the call and guard.pyx read it: when it
stood with the call, the two imported each other.
"""
from tinygrad_ext.core.call.dispatch cimport Elsewhere, Op, settle_rules
from tinygrad_ext.core.data.types cimport A_TENSOR, F_LIST, F_WRITE

cdef enum:
    WATCHED_CALLS = 8


cdef class Custom(Elsewhere):
    """What the call of such an op needs to know besides its schema."""

    def __init__(self, Op op, returns):
        """returns: (kind, whether None will do, number of the mutated argument that it is or -1, Python types) of each."""
        cdef int i
        if len(returns) > MAX_RETURNS:
            raise ValueError(f"{op.name}: {len(returns)} returns, at most {MAX_RETURNS} are possible")
        self.op, self.nreturns, self.watch = op, len(returns), WATCHED_CALLS
        for i, (kind, optional, written, _) in enumerate(returns):
            self.returns[i].kind, self.returns[i].optional, self.returns[i].written = kind, optional, written
            self.nfresh += written < 0
            self.lists = self.lists or kind == R_TENSORS
        self.types = tuple([types for _, _, _, types in returns])
        for i in range(op.nargs):
            if op.args[i].flags & F_WRITE:
                self.writes[self.nwrites] = i
                self.nwrites += 1
            if op.args[i].kind != A_TENSOR:
                self.values = True
            elif op.args[i].flags & F_LIST:
                self.lists = True

    def watch_again(self):
        """There is a new kernel, whose first calls are watched."""
        self.watch = WATCHED_CALLS

    def set_autograd(self, plan, node_type, setup, bint keyword_inputs):
        """Differentiate by a backward: its Plan, the class of its nodes, setup_context; None takes it back."""
        self.plan, self.node_type, self.setup, self.keyword_inputs = plan, node_type, setup, keyword_inputs
        settle_rules(self.op)
        self.op.differentiable = plan is not None or self.op.nrules > 0

    def formula(self):
        """(backward, setup_context or None, whether that takes keyword inputs), None where no backward was registered."""
        return None if self.plan is None else (self.node_type.formula, self.setup, self.keyword_inputs)


def attach(Op op, Custom custom):
    """Make op one whose Python kernel is from elsewhere; None: no longer."""
    op.custom = custom


def custom_of(Op op):
    """The op's Custom, or None."""
    return op.custom
