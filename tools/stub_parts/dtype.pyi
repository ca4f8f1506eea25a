# dtypes, devices, layouts, sizes

class dtype:
    itemsize: _int
    name: _b.str
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    def to_complex(self) -> dtype: ...
    def to_real(self) -> dtype: ...

_dtype: _TypeAlias = dtype

class device:
    type: _b.str
    index: _int | None
    def __init__(self, type: _b.str | device = "cpu", index: _int | None = None) -> None: ...

class layout: ...

class memory_format: ...

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

class finfo:
    bits: _int
    eps: _float
    max: _float
    min: _float
    tiny: _float
    smallest_normal: _float
    resolution: _float
    dtype: _b.str
    def __init__(self, type: _dtype | None = None) -> None: ...

class iinfo:
    bits: _int
    max: _int
    min: _int
    dtype: _b.str
    def __init__(self, type: _dtype) -> None: ...

strided: layout
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
jagged: layout
contiguous_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
preserve_format: memory_format

def can_cast(from_: dtype, to: dtype) -> _bool: ...
def promote_types(type1: dtype, type2: dtype) -> dtype: ...
def get_default_dtype() -> dtype: ...
def set_default_dtype(d: dtype) -> None: ...
