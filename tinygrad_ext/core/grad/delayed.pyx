# cython: language_level=3
"""DelayedError: a node in the place of a derivative that does not exist.

A tensor whose derivative is not known hangs on such a node. Its edges lead where the missing derivative would
have gone, so the engine comes by exactly when somebody asks for it, in grad() as in backward(), and is told why. Raising at
the call would refuse programs that never differentiate; no history at all would leave gradients out in silence.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.grad.edges cimport edge, share_edges
from tinygrad_ext.core.grad.history cimport give_history
from tinygrad_ext.core.grad.node cimport FRESH, Node, next_seq, reserve
from tinygrad_ext.core.data.tensor cimport Tensor, alias, needs_grad
from tinygrad_ext.core.data.types cimport is_inexact


cdef class DelayedError(Node):
    """Raises RuntimeError when a gradient arrives."""

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        raise RuntimeError(self.message)


cdef DelayedError delayed_error(Node source, str message, list sources, int noutputs):
    """A node with the edges of `source` and of further tensors."""
    cdef DelayedError n = DelayedError.__new__(DelayedError)
    cdef int i
    n.message = message
    reserve(n, source.nedges + len(sources), noutputs, 0)
    share_edges(n, source, -1)
    for i in range(len(sources)):
        edge(n, source.nedges + i, <Tensor>sources[i])
    n.place = source.place              # the refusal is about that call
    if n.place.code != NULL:
        Py_INCREF(<object>n.place.code)
    n.seq = next_seq()
    return n


cdef object _hang(DelayedError n, int nr, object got):
    """got as output nr of n, where it could carry a gradient."""
    cdef Tensor t
    if not isinstance(got, Tensor) or not is_inexact((<Tensor>got).tid):
        return got
    t = alias(<Tensor>got)
    give_history(n, nr, t, FRESH)
    return t


def undifferentiable(Node source, grads, got):
    """What a backward marked @once_differentiable returned, such that a second derivative raises.

    source: its ctx; grads: the gradients it was given; got: what it made of them, without recording.
    """
    cdef DelayedError n
    if state().no_grad:
        return got
    row = got if isinstance(got, tuple) else tuple(got.values()) if isinstance(got, dict) else (got,)
    n = delayed_error(source, f"trying to differentiate twice a function that was marked with @once_differentiable: "
                      f"{source.name()}. Its backward is not differentiable itself; write it in differentiable ops and take "
                      "the decorator away.", [g for g in grads if isinstance(g, Tensor) and needs_grad(<Tensor>g)], len(row))
    row = tuple([_hang(n, i, g) for i, g in enumerate(row)])
    if isinstance(got, dict):
        return dict(zip(got, row))
    return row if isinstance(got, tuple) else row[0]
