# cython: language_level=3
"""What a node keeps for backward.

A tensor is kept as it is, with the version that its memory had; an output as a detached alias, because the
node would otherwise own itself. Under `saved_tensors_hooks` a Packed stands in its place: what the pack hook
made, and the history that the unpacked tensor gets back. Rejected: keeping copies, which no write could spoil: a pass and
the memory for each, where the version tells of the write.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from tinygrad_ext.core.call.dispatch cimport state, tgx_state
from tinygrad_ext.core.call.dispatched cimport alike
from tinygrad_ext.core.grad.edges cimport CopySlices, gradient_edge, hang_output
from tinygrad_ext.core.grad.node cimport FRESH, Edge, Node, follow, hang
from tinygrad_ext.core.call.places cimport GUARDED, mutation_text, place_text, watch
from tinygrad_ext.core.data.tensor cimport INFERENCE, Tensor, dtype_title, needs_grad, shape_text, version_of
from tinygrad_ext.core.data.tracking cimport track_all
from tinygrad_ext.core.data.types cimport is_inexact, uint32_t

hooked = 0


# ---- saving --------------------------------------------------------------------------------------------------------

cdef int keep_rare(Node n, int k, object value, int output) except -1:
    """Keep an operand, or output number `output`, at place k of n."""
    cdef uint32_t version = 0
    if isinstance(value, Tensor):
        _refuse_inference(<Tensor>value)
        if hooked and state().saved_hooks != NULL:
            value = _packed(n, <Tensor>value, output)
        else:
            if output >= 0:
                value = alike(<Tensor>value)
            version = version_of(<Tensor>value)
            watch(<Tensor>value)
    elif type(value) is list:       # the caller may change it later
        value = tuple(value)
    if n.counts != NULL and isinstance(value, tuple):
        if hooked and state().saved_hooks != NULL:
            value = tuple([_packed(n, <Tensor>v, -1) if isinstance(v, Tensor) else v for v in value])
        for v in value:
            if isinstance(v, Tensor):
                _refuse_inference(<Tensor>v)
                version += version_of(<Tensor>v)
                watch(<Tensor>v)
    Py_INCREF(value)
    n.saved[k] = <PyObject *>value
    n.versions[k] = version
    follow(n, value)
    return 0


cdef int _refuse_inference(Tensor t) except -1:
    if t.bits & INFERENCE:
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
                           "mode in computation tracked by autograd. To work around this, you can make a clone to get a "
                           "normal tensor and use it in autograd, or use `no_grad()` instead of `inference_mode()`.")
    return 0


cdef Packed _packed(Node n, Tensor t, int output):
    """What the innermost pack hook makes of t, which n saves."""
    cdef Packed p = Packed.__new__(Packed)
    cdef Edge edge
    hooks = <tuple>state().saved_hooks
    p.unpack, p.output = hooks[1], output
    n.packed = True
    track_all()
    if output < 0:
        gradient_edge(t, &edge)
        if edge.node != NULL:
            p.node, p.nr = <object>edge.node, edge.nr
            Py_DECREF(p.node)
        p.value = _call_pack(hooks[0], t)
        return p
    t = alike(t)
    hang(t, n, output, FRESH)
    try:
        p.value = _call_pack(hooks[0], t)
    finally:
        t.node = None           # the hook may have kept t: without its node it closes no circle
    return p


cdef object _call_pack(object pack, Tensor t):
    cdef tgx_state *st = state()
    cdef unsigned char was_no_grad = st.no_grad
    cdef uint32_t version = version_of(t), below = st.below
    cdef PyObject *outer = st.instead       # waits for the op whose tensor this is, not for what the hook calls
    st.no_grad, st.below, st.instead = 1, 0, NULL
    try:
        value = pack(t)
    finally:
        st.no_grad, st.below, st.instead = was_no_grad, below, outer
    if version_of(t) != version:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                           "cannot be modified by in-place operations as this can lead to unexpected side-effects. "
                           "Change a clone of it.")
    return value


# ---- reading -------------------------------------------------------------------------------------------------------

cdef object unpack(Node n, int k, int output, bint with_history):
    """The value at place k of n, after a check that nobody wrote to it; an output with its history if wanted."""
    cdef Tensor t
    if n.saved[k] == NULL:
        return None
    v = <object>n.saved[k]
    if not isinstance(v, Tensor):
        if isinstance(v, Packed):
            return _unpacked(n, <Packed>v)
        # (a tuple is a shape, but where an argument is a list of tensors)
        return _check_list(n, v, k) if n.counts != NULL and isinstance(v, (list, tuple)) else v
    t = <Tensor>v
    if version_of(t) != n.versions[k]:
        raise _version_error(n, t, n.versions[k])
    return _as_output(n, t, output) if output >= 0 and with_history else t


cdef Tensor _as_output(Node n, Tensor t, int output):
    cdef Tensor fresh = alike(t)
    if is_inexact(t.tid):            # indices have no history
        hang_output(fresh, n, output)
    return fresh


cdef object _unpacked(Node n, Packed p):
    """The tensor of an unpack hook, with the history of the one that was packed."""
    cdef Tensor t
    got = p.unpack(p.value)
    if not isinstance(got, Tensor):
        raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                        f"{type(got).__name__}, for a tensor that {n.name()} saved")
    t = <Tensor>got
    if p.output >= 0:
        return _as_output(n, t, p.output)
    if p.node is None:
        return alike(t) if needs_grad(t) else t
    if (t.node is p.node and t.output_nr == p.nr) or t.accumulator == <void *>p.node:
        return t
    t = alike(t)
    hang(t, <Node>p.node, p.nr, FRESH)
    return t


cdef object _check_list(Node n, object values, int k):
    """A saved list, its packed tensors unpacked."""
    cdef uint32_t total = 0
    cdef bint packed = False
    for v in values:
        if isinstance(v, Tensor):
            total += version_of(<Tensor>v)
        elif isinstance(v, Packed):
            packed = True
    if total != n.versions[k]:
        for v in values:
            if isinstance(v, Tensor) and version_of(<Tensor>v):
                raise _version_error(n, <Tensor>v, version_of(<Tensor>v) - 1)
    return [_unpacked(n, <Packed>v) if isinstance(v, Packed) else v for v in values] if packed else values


cdef object _version_error(Node n, Tensor t, uint32_t expected):
    origin = f"output {t.output_nr} of {t.node.name()}" if t.node is not None else "a leaf"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{dtype_title(t.tid)}Tensor {shape_text(t)}], which is {origin}, is at version {version_of(t)}; expected "
        f"version {expected} instead.\nSaved for {n.name()} at {place_text(n.place)}.\n"
        f"Modified at {mutation_text(t, expected + 1)}.\nDo not change the tensor before backward, or change a clone of it.")


cdef object freed_error(Node n):
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        f"already been freed): {n.name()} let go of its saved tensors in the first backward. Specify "
        "retain_graph=True in the first call if you need to backward twice or to read saved tensors after it.")


# ---- one saved tensor, for users -----------------------------------------------------------------------------------

cdef object raw(Node n, int k, int output):
    cdef SavedTensor s = SavedTensor.__new__(SavedTensor)
    s.node, s.place, s.output = n, k, output
    return s


cdef class SavedTensor:
    """A tensor as a node saved it: `grad_fn._raw_saved_self`."""

    def register_hooks(self, pack_hook, unpack_hook):
        """Replace the saved tensor by pack_hook(tensor), at once; unpack_hook gives the tensor back when it is needed.

        Raises RuntimeError when nothing is saved here, or hooks have been set; TypeError for what cannot be called.
        """
        cdef Node n = self.node
        cdef Packed p
        _check_hooks("register_hooks", pack_hook, unpack_hook)
        if n is None:
            raise RuntimeError("register_hooks: this handle belongs to no node; take one from grad_fn._raw_saved_<name>")
        if n.released:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Specify retain_graph=True in the "
                               "first backward if you need to read saved tensors after it.")
        held = <object>n.saved[self.place] if n.saved[self.place] != NULL else None
        if isinstance(held, Packed):
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                               "hooks is allowed at a time.")
        if not isinstance(held, Tensor):
            raise RuntimeError(f"Calling register_hooks on a saved tensor with value {held!r} is forbidden")
        push_hooks(pack_hook, unpack_hook)
        try:
            p = _packed(n, <Tensor>unpack(n, self.place, -1, False), self.output)
        finally:
            pop_hooks()
        if n.saved[self.place] != <PyObject *>held:
            raise RuntimeError("register_hooks: the tensor was freed, or given other hooks, while pack_hook ran")
        Py_INCREF(p)
        n.saved[self.place] = <PyObject *>p
        Py_DECREF(held)


# ---- the thread's hooks --------------------------------------------------------------------------------------------

cdef int _check_hooks(str who, pack, unpack) except -1:
    for name, fn in (("pack_hook", pack), ("unpack_hook", unpack)):
        if not callable(fn):
            raise TypeError(f"{who}(): argument '{name}' must be callable, not {type(fn).__name__}")
    return 0


def check_hooks(who, pack, unpack):
    """TypeError unless both can be called."""
    _check_hooks(who, pack, unpack)


def push_hooks(pack, unpack):
    """Let tensors saved from now on in this thread go through pack and unpack."""
    global hooked
    cdef tgx_state *st = state()
    if st.saved_refusal != NULL:
        raise RuntimeError(<object>st.saved_refusal)
    below = <object>st.saved_hooks if st.saved_hooks != NULL else None
    entry = (pack, unpack, below)
    Py_INCREF(entry)
    if st.saved_hooks != NULL:
        Py_DECREF(below)            # the entry owns it now
    st.saved_hooks = <PyObject *>entry
    hooked += 1


def pop_hooks():
    """Take the innermost hooks of this thread away."""
    global hooked
    cdef tgx_state *st = state()
    if st.saved_hooks == NULL:
        return
    entry = <tuple>st.saved_hooks
    below = entry[2]
    if below is not None:
        Py_INCREF(below)
    st.saved_hooks = NULL if below is None else <PyObject *>below
    Py_DECREF(entry)
    hooked -= 1


def refuse_hooks(message):
    """Refuse hooks in this thread with this message (None: allow them); returns what was set before."""
    cdef tgx_state *st = state()
    if message is not None and st.saved_hooks != NULL:
        raise RuntimeError(message)
    before = <object>st.saved_refusal if st.saved_refusal != NULL else None
    if message is not None:
        Py_INCREF(message)
    st.saved_refusal = NULL if message is None else <PyObject *>message
    if before is not None:
        Py_DECREF(before)
    return before


def saved_values(Node n):
    """What n holds at this moment, packed values as their pack hooks left them."""
    cdef int k
    cdef list found = []
    if isinstance(n, CopySlices):
        n = (<CopySlices>n).fn
    for k in range(n.nsaved):
        if n.saved[k] != NULL:
            v = <object>n.saved[k]
            for item in v if isinstance(v, (list, tuple)) else (v,):
                found.append((<Packed>item).value if isinstance(item, Packed) else item)
    return found


def storage_of(Tensor t):
    """(identity, bytes) of the memory behind t; None for a tensor without memory."""
    return None if t.storage is None else (<size_t><PyObject *>t.storage, t.storage.nbytes)


def guard(Tensor t):
    """From now on the slot 'before_write' is called with the identity of t's storage before an op writes to it."""
    if t.storage is not None:
        t.storage.watched |= GUARDED
