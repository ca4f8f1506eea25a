# cython: language_level=3
"""Random generators that give the numbers of PyTorch's CPU generator.

A `Generator` holds one mt19937 stream by value. The fills are functions over it and not methods, so that the class
stays what users see, and they hold the GIL: the stream's position is the only state and needs no other lock.
"""
import os
import warnings
from libc.math cimport sqrt
from tinygrad_ext.core.dtype cimport device_of, dtype_of
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, dtype_title, empty
from tinygrad_ext.core.types cimport (
    TGX_BF16, TGX_BOOL, TGX_C128, TGX_C64, TGX_F16, TGX_F32, TGX_F64, TGX_U8, is_float,
)

cdef extern from "random.h" nogil:
    enum:
        TGX_RANDOM_STATE_BYTES
    void tgx_random_seed(tgx_stream *s, uint64_t seed)
    void tgx_random_save(const tgx_stream *s, void *data)
    bint tgx_random_load(tgx_stream *s, const void *data)
    void tgx_random_uniform(tgx_stream *s, int type, void *out, int64_t n, double start, double end)
    void tgx_random_normal(tgx_stream *s, int type, void *out, int64_t n, double mean, double std)
    void tgx_random_normal_serial(tgx_stream *s, int type, void *out, int64_t n, double mean, double std)
    void tgx_random_integers(tgx_stream *s, int type, void *out, int64_t n, int64_t low, uint64_t range)

cdef extern from "random_sample.h" nogil:
    void tgx_random_permutation(tgx_stream *s, int64_t *out, int64_t n)

cdef uint64_t FIRST_SEED = 67280421310721    # PyTorch's, before anybody calls manual_seed


# ---- generators ----------------------------------------------------------------------------------------------------

cdef uint64_t _seed_of(object seed) except? 0:
    if isinstance(seed, (bool, float)) or not hasattr(seed, "__index__"):
        raise RuntimeError(f"manual_seed: seed must be an int, got {type(seed).__name__}; convert it with int(seed)")
    value = seed.__index__()
    if not -2**63 <= value < 2**64:
        raise ValueError(f"manual_seed: seed must be in [-2**63, 2**64), got {value}; take it modulo 2**64")
    return value % 2**64


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
        tgx_random_seed(&self.mt, _seed_of(seed))
        return self

    def seed(self):
        """Start a stream nobody can foresee and return its seed, 53 bits from the operating system."""
        tgx_random_seed(&self.mt, int.from_bytes(os.urandom(8), "little") >> 11)
        return self.mt.seed

    def initial_seed(self):
        """The seed the stream was started with."""
        return self.mt.seed

    def clone_state(self):
        """A new generator that continues from here with the same numbers."""
        cdef Generator other = type(self)()
        other.mt = self.mt
        return other

    def get_state(self):
        """The state as a uint8 tensor of 5056 elements, in the layout of PyTorch's (native byte order)."""
        cdef int64_t n = TGX_RANDOM_STATE_BYTES
        cdef Tensor t = empty(&n, 1, TGX_U8)
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


# ---- checks --------------------------------------------------------------------------------------------------------

cdef object _bad(str op, str argument, object got, str expected, str advice):
    """The error of a value out of range; the caller tests and raises, so that a good call builds no message."""
    return RuntimeError(f"{op}: {argument} must be {expected}, got {got}; {advice}")


cdef int _need_float(int dtype, str op) except -1:
    if not is_float(dtype):
        raise NotImplementedError(f'"{op}" not implemented for \'{dtype_title(dtype)}\': self must have a real '
                                  f'floating point dtype; '
                                  "draw in float32 and convert the result")
    return 0


cdef int _need_real(int dtype, str op) except -1:
    if dtype == TGX_C64 or dtype == TGX_C128:
        raise NotImplementedError(f'"{op}" not implemented for \'{dtype_title(dtype)}\': self must not be complex; '
                                  "draw the real and the imaginary part and join them with complex()")
    return 0


cdef int _part(int dtype) noexcept:
    """The dtype of a complex number's parts; any other as it is."""
    return TGX_F32 if dtype == TGX_C64 else TGX_F64 if dtype == TGX_C128 else dtype


cdef double _greatest(int dtype) noexcept:
    """The greatest finite value of a floating point dtype."""
    if dtype == TGX_F16:
        return 65504.0
    if dtype == TGX_BF16:
        return 3.3895313892515355e38
    return 3.4028234663852886e38 if dtype == TGX_F32 else 1.7976931348623157e308


cdef extern from *:
    """
    /* Greatest value of an integer dtype; for floats the end of the run of integers without gaps. */
    static const int64_t tgx_last[TGX_NTYPES] = {
        [TGX_BOOL] = 1, [TGX_U8] = 255, [TGX_I8] = 127, [TGX_I16] = 32767, [TGX_I32] = 2147483647,
        [TGX_I64] = INT64_MAX, [TGX_F16] = 2048, [TGX_BF16] = 256, [TGX_F32] = 16777216, [TGX_F64] = 9007199254740992};
    """
    const int64_t *_LAST "tgx_last"


cdef int64_t last_integer(int dtype) except -1:
    """The greatest integer that random_ draws; NotImplementedError for complex dtypes, which have no such value."""
    _need_real(dtype, "random_")
    return _LAST[dtype]


cdef int _check_integer(int dtype, str argument, int64_t value) except -1:
    cdef int64_t last = last_integer(dtype)
    cdef int64_t first = 0 if dtype == TGX_BOOL or dtype == TGX_U8 else -last - (0 if is_float(dtype) else 1)
    if first <= value <= last:
        return 0
    if not is_float(dtype) or (dtype == TGX_F16 and not -65504 <= value <= 65504):
        raise RuntimeError(f"random_: {argument} is out of bounds for {dtype_of(dtype)}, got {value}; "
                           "narrow the range or use a wider dtype")
    warnings.warn(f"random_: {argument} = {value} lies outside [-{last}, {last}], where {dtype_of(dtype)} holds every "
                  "integer; some values of the range cannot come up", UserWarning, stacklevel=2)
    return 0


# ---- fills ---------------------------------------------------------------------------------------------------------

cdef int fill_uniform(Generator g, int dtype, void *out, int64_t n, double low, double high) except -1:
    cdef int part = _part(dtype)
    _need_float(part, "uniform_")
    cdef double most = _greatest(part)
    if not -most <= low <= most:
        raise _bad("uniform_", "from", low, f"a finite {dtype_of(part)}", "narrow the interval")
    if not -most <= high <= most:
        raise _bad("uniform_", "to", high, f"a finite {dtype_of(part)}", "narrow the interval")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}: "
                           f"exchange the two")
    if not high - low <= most:
        raise _bad("uniform_", "to - from", high - low, f"at most {most}", "narrow the interval")
    tgx_random_uniform(&g.mt, part, out, n if part == dtype else 2 * n, low, high)
    return 0


cdef int fill_normal(Generator g, int dtype, void *out, int64_t n, double mean, double std, bint serial) except -1:
    cdef int part = _part(dtype)
    _need_float(part, "normal_")
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}: pass a standard deviation")
    if part != dtype:
        n, std = 2 * n, std / sqrt(2.0)
    if serial:
        tgx_random_normal_serial(&g.mt, part, out, n, mean, std)
    else:
        tgx_random_normal(&g.mt, part, out, n, mean, std)
    return 0


cdef int fill_integers(Generator g, int dtype, void *out, int64_t n, int64_t low, int64_t last) except -1:
    _need_real(dtype, "random_")
    if not low <= last:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={int(last) + 1}: "
                           f"exchange the two")
    _check_integer(dtype, "from", low)
    _check_integer(dtype, "to - 1", last)
    tgx_random_integers(&g.mt, dtype, out, n, low, <uint64_t>last - <uint64_t>low + 1)
    return 0


cdef int fill_permutation(Generator g, int64_t *out, int64_t n) except -1:
    tgx_random_permutation(&g.mt, out, n)
    return 0
