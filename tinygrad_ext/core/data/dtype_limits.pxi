# Numeric limits of dtypes. Part of dtype.pyx.

cdef object _of_numbers(object type):
    """The dtype that a type of Python's numbers stands for; anything else as it is."""
    return dtype_of(dtype_id(type)) if type is float or type is int or type is bool or type is complex else type


class finfo:
    """Numeric limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    _FACTS = {  # bits, eps, max, tiny, resolution
        "float16": (16, 2.0**-10, 65504.0, 2.0**-14, 1e-3),
        "bfloat16": (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2),
        "float32": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 1e-6),
        "float64": (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 1e-15),
    }

    def __init__(self, type=None):
        type = get_default_dtype() if type is None else type
        type = _of_numbers(type)
        if not isinstance(type, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be dtype, not {type.__class__.__name__}")
        real = type.to_real()
        if not real.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        self.dtype = real.name
        if real.name not in self._FACTS:
            raise RuntimeError(f"finfo(): the dtype {real.name} is gone: what brought it was unloaded")
        self.bits, self.eps, self.max, self.tiny, self.resolution, *least = self._FACTS[real.name]
        self.min, self.smallest_normal = (least or [-self.max])[0], self.tiny

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:
    """Numeric limits of an integer dtype: bits, min, max."""

    def __init__(self, type):
        type = _of_numbers(type)
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be dtype, not {type.__class__.__name__}")
        if type.is_floating_point or type.is_complex:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        if type.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.dtype, self.bits = type.name, 8 * type.itemsize
        self.min = -(1 << (self.bits - 1)) if type.is_signed else 0
        self.max = (1 << (self.bits - type.is_signed)) - 1

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
