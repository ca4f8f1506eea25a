# cython: language_level=3
"""Which steps of a plan become machine code, and that code; how it is made stands in kernels/emit.h.

A group's steps are put into runs: those that are plain arithmetic as far as they need no others between them, so that
`exp(p) * q + tanh(p) - q * q` is two loops and one run of four steps. The order of a group is changed for that alone, and
only as far as nothing reads what is written later.

Nothing is emitted where the processor is another one, where the system refuses memory that runs, with TINYGRAD_EXT_EMIT=0 and
after `emitting(False)`; then the ops' loops run, with the same bits.
"""
import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.graph.lowering cimport Buffer, Constant, Step
from tinygrad_ext.graph.schedule cimport Group

from tinygrad_ext.core.loops.loop_tables import formulas, instruction_set

cdef extern from "emit.h" nogil:
    int tgx_emit_level()
    int tgx_emit_fits(const tgx_emit_step *step, const int8_t *dtypes)
    ptrdiff_t tgx_emit_run(tgx_text *text, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues)
    void *tgx_code_make(const void *bytes, size_t n)
    void tgx_code_free(void *code, size_t n)
    size_t tgx_code_held()

cdef dict _formulas = formulas()        # address of a loop -> that of its formula
cdef int _most = tgx_emit_level()       # what this machine runs
cdef int _level = _most if os.environ.get("TINYGRAD_EXT_EMIT", "").strip() != "0" else 0
cdef bint _refuses = False              # for tests: as if the system gave no memory that runs

LEVELS = ("", "avx2", "avx512")
FEWEST = 2                              # steps of a run: one alone has a loop that is as good


cdef int level() noexcept:
    return _level


def emitting(want=None):
    """What plans are made with from now on: "avx2", "avx512", or "" for no machine code; the answer is what was before.

    want: one of those, of which the processor must have the instructions; True for its best; False for none; "refused" to
    do as if the system refused.
    """
    global _level, _refuses
    before = LEVELS[_level]
    if want is not None:
        wanted = _most if want is True or want == "refused" else LEVELS.index(want or "")
        if wanted > _most:
            raise ValueError(f"emitting: {want} is not among the instructions in use here ({instruction_set()})")
        _level, _refuses = wanted, want == "refused"
    return before


def held():
    """Bytes of all machine code that plans have now."""
    return tgx_code_held()


# ---- which steps ---------------------------------------------------------------------------------------------------

cdef bint _fits(Step step) except -1:
    """Whether a step can be emitted; says with which formula."""
    cdef tgx_emit_step s
    cdef int8_t dtypes[TGX_MAX_OPERANDS]
    cdef int k
    found = None if step.casts else _formulas.get(<size_t>step.loop)
    if found is None and not step.casts:
        return False
    step.formula = NULL if step.casts else <void *><size_t>found[0]
    s.formula, s.aux, s.varying, s.dtype, s.n = <tgx_formula *>step.formula, step.aux, step.varying, step.dtype, len(step.operands)
    for k in range(s.n):
        o = step.operands[k]
        if isinstance(o, Tensor):
            dtypes[k] = (<Tensor>o).tid
        elif (<Constant>o).size < 4:
            return False                # a truth for all elements
        else:
            dtypes[k] = step.dtype
    return tgx_emit_fits(&s, dtypes)


def in_runs(list items):
    """Put the steps of each group in the order in which most of them stand in runs; set the groups' `runs`."""
    for item in items:
        if type(item) is Group and (<Group>item).key is not None and len((<Group>item).steps) >= FEWEST:
            _part(<Group>item)


cdef int _part(Group group) except -1:
    """Steps get phases, loops the even ones, in which all that they need stands in an earlier phase, or earlier in theirs."""
    cdef list steps = group.steps, rows
    cdef Step step
    cdef int top = 0, begin = 0
    cdef bint again = False             # something is written that was read or written before
    _forget_phases(steps)
    for s in steps:
        step = <Step>s
        again |= _set_phase(step)
        top = max(top, step.phase)
    if not top:
        return 0
    if not again:
        _later(steps)
    rows = [[] for _ in range(top + 1)]
    for s in steps:
        (<list>rows[(<Step>s).phase]).append(s)
    group.steps = [s for row in rows for s in row]
    for phase, row in enumerate(rows):
        if phase & 1 and len(row) >= FEWEST:
            group.runs.append((begin, begin + len(row)))
        begin += <int>len(row)
    return 0


cdef int _forget_phases(list steps) except -1:
    cdef Buffer b
    for s in steps:
        for b in (<Step>s).writes:
            b.phase = b.read_in = 0
        for read in (<Step>s).reads:
            b = <Buffer>(<tuple>read)[0]
            b.phase = b.read_in = 0
    return 0


cdef bint _set_phase(Step step) except -1:
    """The earliest phase for a step; whether it writes what was read or written before."""
    cdef Buffer b, made = <Buffer>step.writes[0]
    cdef bint again = made.phase or made.read_in
    step.emits, step.phase = _fits(step), max(made.phase, made.read_in)
    for read in step.reads:
        step.phase = max(step.phase, (<Buffer>(<tuple>read)[0]).phase)
    step.phase += (step.phase & 1) != step.emits
    made.phase = step.phase
    for read in step.reads:
        b = <Buffer>(<tuple>read)[0]
        b.read_in = max(b.read_in, step.phase)
    return again


cdef int _later(list steps) except -1:
    """Let what is emitted stand in the run that reads it first, so that it stays in a register."""
    cdef Buffer b
    cdef Step step
    cdef Py_ssize_t i
    cdef int phase
    for i in range(len(steps) - 1, -1, -1):
        step = <Step>steps[i]
        b = <Buffer>step.writes[0]
        if step.emits and b.read_in and b.phase > step.phase:
            step.phase = b.phase        # by now the earliest phase that it has to be there for
        for read in step.reads:
            b = <Buffer>(<tuple>read)[0]
            phase = step.phase if step.emits else step.phase - 1
            b.phase = phase if b.read_in >= 0 else min(b.phase, phase)
            b.read_in = -1              # b.phase says now when it is read
    return 0


# ---- the code ------------------------------------------------------------------------------------------------------

cdef class Code:
    def __init__(self):
        self.text = <tgx_text *>calloc(1, sizeof(tgx_text))
        if self.text == NULL:
            raise MemoryError()
        self.text.evex, self.waiting = _level == 2, []

    def __dealloc__(self):
        self._forget()
        tgx_code_free(self.memory, self.nbytes)

    cdef int _forget(self) noexcept:
        if self.text != NULL:
            free(self.text.bytes)
            free(self.text)
            self.text = NULL
        return 0

    cdef bint run(self, const tgx_emit_step *steps, int nsteps, const tgx_emit_value *values, int nvalues, tgx_emitted *to) except -1:
        """Write the code of a run; whether that went well."""
        cdef ptrdiff_t at = tgx_emit_run(self.text, steps, nsteps, values, nvalues)
        if at >= 0:
            self.waiting.append((<size_t>to, at))
        return at >= 0

    cdef bint close(self) except -1:
        """Let the code run; whether the system lets it."""
        self.nbytes = self.text.n
        if self.nbytes:
            self.memory = NULL if _refuses else <char *>tgx_code_make(self.text.bytes, self.nbytes)
            if self.memory == NULL:
                return False
            for to, at in self.waiting:
                (<tgx_emitted *><size_t>to)[0] = <tgx_emitted>(self.memory + <ptrdiff_t>at)
        self._forget()
        return True

    def bytes(self):
        """The code as it stands in memory, for those who look at it."""
        return PyBytes_FromStringAndSize(self.memory, self.nbytes) if self.nbytes else b""
