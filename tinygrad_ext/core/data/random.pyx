# cython: language_level=3
"""Random generators that give the numbers of PyTorch's CPU generator.

A `Generator` holds one mt19937 stream by value, from which kernels draw (sample.c, chance.c, dropout.c in kernels/, all by
random.h). They keep the interpreter's lock: the stream's position is the only state and needs no other.
"""
import os
from tinygrad_ext.core.data.dtype cimport CPU, device_of
from tinygrad_ext.core.data.slots cimport slot_or_none
from tinygrad_ext.core.data.tensor cimport CONTIGUOUS, Tensor, empty
from tinygrad_ext.core.data.types cimport TGX_U8

cdef extern from "random.h" nogil:
    enum:
        TGX_RANDOM_STATE_BYTES
    void tgx_random_seed(tgx_stream *s, uint64_t seed)
    void tgx_random_save(const tgx_stream *s, void *data)
    bint tgx_random_load(tgx_stream *s, const void *data)
    uint64_t tgx_random_next64(tgx_stream *s)
    double tgx_random_next_uniform(tgx_stream *s)
    double tgx_random_next_normal(tgx_stream *s)

cdef uint64_t FIRST_SEED = 67280421310721    # PyTorch's, before anybody calls manual_seed


cdef uint64_t _seed_of(object seed) except? 0:
    if isinstance(seed, (bool, float)) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed: seed must be an int, got {type(seed).__name__}; convert it with int(seed)")
    value = seed.__index__()
    if not -2**63 <= value < 2**64:
        raise ValueError(f"manual_seed: seed must be in [-2**63, 2**64), got {value}; take it modulo 2**64")
    return value % 2**64


cdef object _asked(Generator g, str name, tuple args=()):
    """What a capture that is under way answers in the place of a generator; NotImplemented where there is none."""
    answer = slot_or_none("generator")
    return NotImplemented if answer is None else answer(g, name, args)


cdef class Generator:
    """Source of random numbers with a state of its own.

    The numbers are those of PyTorch's CPU generator for the same seed. ``device`` must be the CPU.
    Raises RuntimeError for another device.

        >>> Generator().manual_seed(5).initial_seed()
        5
    """

    def __cinit__(self, device="cpu"):
        if device is not None and str(device) not in ("cpu", "cpu:0"):
            raise RuntimeError(f"Generator: device must be 'cpu', got {device!r}; "
                               "there are no other generators, so leave the argument out")
        tgx_random_seed(&self.mt, FIRST_SEED)

    def __init__(self, device="cpu"):       # not run for what the library makes itself, by __new__
        _asked(self, "made")

    @property
    def device(self):
        """Where the generator draws: always the CPU."""
        return device_of(0)

    def manual_seed(self, seed):
        """Start the stream of `seed` and return the generator.

        A negative seed counts from 2**64. Raises ValueError outside [-2**63, 2**64), RuntimeError for no int.

            >>> Generator().manual_seed(-1).initial_seed() == 2**64 - 1
            True
        """
        if _asked(self, "manual_seed", (seed,)) is NotImplemented:
            tgx_random_seed(&self.mt, _seed_of(seed))
        return self

    def seed(self):
        """Start a stream nobody can foresee and return its seed, 53 bits from the operating system."""
        _asked(self, "seed")
        tgx_random_seed(&self.mt, int.from_bytes(os.urandom(8), "little") >> 11)
        return self.mt.seed

    def initial_seed(self):
        """The seed the stream was started with."""
        _asked(self, "initial_seed")
        return self.mt.seed

    def clone_state(self):
        """A new generator that continues from here with the same numbers."""
        answer = _asked(self, "clone_state")
        return self._copy() if answer is NotImplemented else answer

    def _copy(self):
        """`clone_state`, whoever else wants to answer."""
        cdef Generator other = type(self).__new__(type(self))
        other.mt = self.mt
        return other

    def get_state(self):
        """The state as a uint8 tensor of 5056 elements, in the layout of PyTorch's (native byte order)."""
        cdef int64_t n = TGX_RANDOM_STATE_BYTES
        cdef Tensor t
        answer = _asked(self, "get_state")
        if answer is not NotImplemented:
            return answer
        t = empty(&n, 1, TGX_U8, CPU)
        tgx_random_save(&self.mt, t.data)
        return t

    def set_state(self, new_state):
        """Continue from a state that `get_state` or PyTorch gave. Raises TypeError and RuntimeError if it is none."""
        cdef Tensor t
        if not isinstance(new_state, Tensor) or (<Tensor>new_state).tid != TGX_U8 or (
                not (<Tensor>new_state).bits & CONTIGUOUS):
            raise TypeError("set_state: new_state: expected a torch.ByteTensor, got "
                            f"{new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__}; pass "
                            f"what "
                            "get_state returned")
        t = <Tensor>new_state
        if _asked(self, "set_state", (t,)) is not NotImplemented:
            return self
        self._set_state_bytes(t.data[:t.count] if t.device_id == 0 else b"")
        return self

    def _get_state_bytes(self):
        """The state as 5056 bytes, in the layout of PyTorch's ``get_state`` (native byte order)."""
        cdef bytearray state = bytearray(TGX_RANDOM_STATE_BYTES)
        tgx_random_save(&self.mt, <char *>state)
        return bytes(state)

    def _set_state_bytes(self, state):
        """Continue from a state that `_get_state_bytes` or PyTorch gave. Raises RuntimeError if it is none."""
        cdef bytes data = bytes(state)
        if len(data) != TGX_RANDOM_STATE_BYTES:
            raise RuntimeError(f"set_state: new_state must hold {TGX_RANDOM_STATE_BYTES} bytes, got {len(data)}; "
                               "pass what get_state returned")
        if not tgx_random_load(&self.mt, <const char *>data):
            raise RuntimeError("set_state: new_state is no mt19937 state: its position or its mark is wrong; "
                               "pass what get_state returned")
        return self

    def __reduce__(self):
        return _restore, (type(self), self._get_state_bytes())

    def __setstate__(self, state):
        """What pickles of PyTorch hold: (seed, None, the state as a tensor of bytes)."""
        if type(state) is not tuple or len(state) != 3:
            raise TypeError(f"Generator.__setstate__: expected (seed, None, state), got {type(state).__name__}")
        self.set_state((<tuple>state)[2])


def _restore(cls, state):
    return cls()._set_state_bytes(state)


cdef Generator _default = Generator()
default_generator = _default


def manual_seed(seed):
    """Seed the default generator and return it. Takes what ``int()`` takes; else see `Generator.manual_seed`."""
    return _default.manual_seed(int(seed))


def seed():
    """Start the default generator from a seed nobody can foresee and return that seed."""
    return _default.seed()


def initial_seed():
    """The seed the default generator was started with."""
    return _default.initial_seed()


cdef Generator as_generator(object generator):
    if generator is None:
        return _default
    if isinstance(generator, Generator):
        return <Generator>generator
    raise TypeError(f"argument 'generator' must be Generator or None, not {type(generator).__name__}")


cdef int draw(Generator g, uint64_t *bits, double *uniform, double *normal, int64_t n) noexcept:
    cdef int64_t i
    for i in range(n):
        if bits != NULL:
            bits[i] = tgx_random_next64(&g.mt)
        elif uniform != NULL:
            uniform[i] = tgx_random_next_uniform(&g.mt)
        else:
            normal[i] = tgx_random_next_normal(&g.mt)
    return 0
