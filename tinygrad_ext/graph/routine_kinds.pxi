# What is passed in and what comes out, as a routine notes it. Part of routine.pyx.

Row = namedtuple("Row", "kind nodes ops elements bytes nanoseconds runs")
Row.__doc__ = """What runs: its kind, numbers of nodes, names of ops, elements, bytes written, nanoseconds so far, and runs of ops
that are machine code (begin, end)."""


class Failed(Exception):
    """The run stopped. Attributes: code (what loop, kernel or program returned)."""

    def __init__(self, code):
        self.code = code


cdef enum Kind:             # of what is passed in, and of what comes out
    TENSOR                  # in: with its geometry; out: memory of this call
    NUMBER                  # in: by its type; out: computed by this call
    VALUE                   # in: by its value; out: always the same
    GENERATOR
    STACK                   # in: with the form of its rows
    ITSELF                  # out: what was passed in
    WINDOW                  # out: a view of what was passed in
    NEST                    # out: a list or tuple of others
    WAY                     # out: one of several, by a number of this call

cdef struct Guard:
    Kind kind
    int slot                # of a NUMBER, and of the last row of a STACK
    int rank
    int8_t dtype
    int64_t *geometry       # sizes, then strides
    PyObject *known         # type of a NUMBER, value of a VALUE, own Generator of a GENERATOR, Heap of a STACK or NULL

cdef struct Result:
    Kind kind
    int at                  # which base, input or slot
    int rank
    int8_t dtype
    uint8_t bits
    int64_t offset          # bytes in its memory
    int64_t count
    int64_t *geometry
    PyObject *known
