# How a pass begins. Part of engine.pyx.

cdef struct Row:                # of a caller's tensors, or (node, number) pairs; borrowed
    PyObject *one
    PyObject **items
    Py_ssize_t n


cdef object _lay_out(object values, Row *row):
    """A row of a tensor alone, or of a sequence. Returns its owner."""
    if isinstance(values, Tensor):
        row.one = <PyObject *>values
        row.items, row.n = &row.one, 1
        return values
    owner = values if type(values) is tuple else tuple(values)
    row.items, row.n = TGX_TUPLE_ITEMS(owner), len(<tuple>owner)
    return owner


cpdef object run_backward(roots, grads, bint keep_graph, bint create_graph, inputs, bint accumulate, bint allow_unused,
                          observer=None):
    """Run the graph behind `roots` with the given gradients; all three are a tensor, or a sequence of tensors or (node, number)
    pairs.

    With inputs None gradients go into the leaves' .grad. Else `inputs` are what they are wanted for;
    with `accumulate` only theirs are filled, without it their gradients are returned as a tuple. With an observer
    no hook runs: it is called as observer(node, arrived gradients, results or the error) after each node.
    """
    cdef Task task = Task.__new__(Task)
    cdef Row outs, given, ins
    cdef Py_ssize_t i, n
    cdef Edge few[FEW]
    cdef Edge *edges = few          # of the roots, then of the inputs; an accumulator is its leaf's while somebody has it
    cdef tgx_state *st = state()
    cdef unsigned char was_no_grad = st.no_grad
    roots = _lay_out(roots, &outs)
    grads = _lay_out(grads, &given)
    ins.n = 0
    if inputs is not None:
        inputs = _lay_out(inputs, &ins)
    n = outs.n + ins.n
    task.keep_graph, task.create_graph, task.observer = keep_graph, create_graph, observer
    task.accumulate = accumulate or inputs is None
    if n > FEW:
        edges = <Edge *>malloc(n * sizeof(Edge))
        if edges == NULL:
            raise MemoryError()
    for i in range(n):
        edges[i].node = NULL
    try:
        for i in range(outs.n):
            _edge_of(<object>outs.items[i], True, &edges[i])
        if inputs is not None:
            task.needed = Reach.__new__(Reach)
            for i in range(ins.n):
                _edge_of(<object>ins.items[i], False, &edges[outs.n + i])
                task.needed.want(<Node>edges[outs.n + i].node, edges[outs.n + i].nr)
            if not accumulate:
                task.captured = PyTuple_New(ins.n)
                for i in range(ins.n):
                    tgx_put(task.captured, i, None)
            for i in range(outs.n):
                task.needed.walk(<Node>edges[i].node)
        st.no_grad = not create_graph
        for i in range(min(outs.n, given.n)):
            if task.needed is None or task.needed.leads(edges[i].node):
                task.give(<Node>edges[i].node, edges[i].nr, <object>given.items[i], None, 0)
        task.run()
    finally:
        st.no_grad = was_no_grad
        for i in range(n):
            Py_XDECREF(edges[i].node)
        if edges != few:
            free(edges)
    if inputs is None or accumulate:
        return None
    if not allow_unused:
        for i in range(ins.n):
            if <object>TGX_TUPLE_ITEMS(task.captured)[i] is None:
                raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                                   "allow_unused=True if this is the desired behavior. "
                                   f"It is input number {i}.")
    return task.captured


cpdef object backward_scalar(Tensor t, bint keep_graph, bint create_graph):
    """Run the graph behind a single-element tensor with gradient one, into the leaves' .grad."""
    cdef Task task = Task.__new__(Task)
    cdef Edge edge
    cdef Tensor one
    cdef tgx_state *st = state()
    cdef unsigned char was_no_grad = st.no_grad
    gradient_edge(t, &edge)
    if edge.node == NULL:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    node = <Node>edge.node
    Py_DECREF(node)
    one = single_one(t)
    task.keep_graph, task.create_graph, task.accumulate = keep_graph, create_graph, True
    st.no_grad = not create_graph
    try:
        task.give(node, edge.nr, one, None, 0)
        one = None
        node = None
        task.run()
    finally:
        st.no_grad = was_no_grad


cdef int _edge_of(object root, bint output, Edge *edge) except -1:
    """The node of a tensor, owned, and which of its outputs that is; or those of the pair itself."""
    if isinstance(root, Tensor):
        gradient_edge(<Tensor>root, edge)
        if edge.node == NULL:
            if output:
                raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        return 0
    if not isinstance(root, tuple) or len(root) not in (2, 3):  # a GradientEdge has a third entry, which holds memory
        raise RuntimeError(f"all {'outputs' if output else 'inputs'} have to be Tensors or GradientEdges, but got "
                           f"{type(root).__name__}")
    found, number = root[0], PyNumber_Index(root[1]) if PyIndex_Check(root[1]) else None
    if not isinstance(found, Node) or number is None or not 0 <= number < (<Node>found).noutputs:
        raise RuntimeError(f"a GradientEdge is a node and the number of one of its outputs, got {found!r} and {number!r}")
    Py_INCREF(found)
    edge.node, edge.nr = <PyObject *>found, number
    return 0


def gradient_edge_of(Tensor t):
    """(node, output number) that t's gradient goes to; None when it needs none."""
    cdef Edge edge
    if not needs_grad(t):
        return None
    gradient_edge(t, &edge)
    node = <object>edge.node
    Py_DECREF(node)
    return node, edge.nr


def current_pass():
    """The backward pass that runs in this thread, or None."""
    return <object>state().task if state().task != NULL else None
