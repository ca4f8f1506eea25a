"""What C, Cython and Python call by number: dtypes, argument kinds and flags, what derivative rules ask for.

One row each, numbered in the order written; no code may depend on that order, only on names and on the predicates
below. Loops that packages were built with hold the numbers of dtypes, so a new one comes last. The build makes
kernels/table_gen.h and core/data/table_gen.pxd of this file (tools/generate_table.py), before anything is compiled: so
it imports nothing of the package.

Rejected: the header as the source, read by Python with a regular expression (the facts that only Python needs would
stand elsewhere), and a table in Cython (the build would need what it builds).
"""

from collections import namedtuple

# name of the API; C's TGX_<code>; tag in names of C functions; kind; bytes; struct's and NumPy's letter; the word in
# PyTorch's messages and class names; PyTorch's number in schemas; C type in computing; further names of the API
Dtype = namedtuple("Dtype", "name code tag kind itemsize typecode title number computed aliases")
_COLUMNS = """
    bool       BOOL b8   bool     1  ?  Bool          11 uint8_t
    uint8      U8   u8   unsigned 1  B  Byte          0  uint8_t
    int8       I8   i8   signed   1  b  Char          1  int8_t
    int16      I16  i16  signed   2  h  Short         2  int16_t  short
    int32      I32  i32  signed   4  i  Int           3  int32_t  int
    int64      I64  i64  signed   8  q  Long          4  int64_t  long
    float16    F16  f16  half     2  e  Half          5  float    half
    bfloat16   BF16 bf16 half     2  H  BFloat16      15 float
    float32    F32  f32  float    4  f  Float         6  float    float
    float64    F64  f64  float    8  d  Double        7  double   double
    complex64  C64  c64  complex  8  Zf ComplexFloat  9  tgx_c64  cfloat
    complex128 C128 c128 complex  16 Zd ComplexDouble 10 tgx_c128 cdouble
    uint16     U16  u16  natural  2  H  UInt16        27 uint32_t
    uint32     U32  u32  natural  4  I  UInt32        28 uint32_t
    uint64     U64  u64  natural  8  L  UInt64        29 uint64_t
"""


def _dtype(name, code, tag, kind, itemsize, typecode, title, number, computed, *aliases):
    return Dtype(name, code, tag, kind, int(itemsize), typecode, title, int(number), computed, aliases)


DTYPES = tuple(_dtype(*line.split()) for line in _COLUMNS.strip().splitlines())

# dtypes that no kernel computes in, nor is ever asked for: core/call/widening.pyx. Those that plugins bring have
# numbers that stand for a size, so that geometry needs no look at who brought what; the last is two float16
CODED = 32  # the first; dtypes with kernels stay below
CODED_EACH = 8  # of each size
CODED_SIZES = (1, 2)  # in bytes
CODED_ROWS = tuple(
    Dtype("", f"CODED_{size}_{n}", "", "coded", size, "", "Coded", -1, "float", ())
    for size in CODED_SIZES
    for n in range(CODED_EACH)
)
PAIR = Dtype("complex32", "C32", "c32", "pair", 4, "", "ComplexHalf", 8, "tgx_c64", ("chalf",))
CODED_ROWS += (PAIR,)
NAMED = (*DTYPES, PAIR)  # built in
MOST = CODED + len(CODED_ROWS)

# predicate -> (the kinds it holds for, what it means)
PREDICATES = {
    "is_integral": (("bool", "unsigned", "natural", "signed"), "whole numbers, truth values among them"),
    "is_integer": (("unsigned", "natural", "signed"), "whole numbers alone"),
    "is_natural": (("natural",), "unsigned, what few kernels take, and promotes with no other integers"),
    "is_half": (("half",), "two-byte floats, computed in float32"),
    "is_native_float": (("float",), "floats that the processor computes in"),
    "is_float": (("half", "float", "coded"), "real numbers with a fraction"),
    "is_complex": (("complex", "pair"), "real and imaginary part"),
    "is_inexact": (("half", "float", "complex", "coded", "pair"), "what is rounded, and so may have a gradient"),
    "is_signed": (("signed", "half", "float", "complex", "coded", "pair"), "numbers below zero too"),
    "is_coded": (("coded", "pair"), "computed in float32, or in complex64"),
    "is_mask": (("bool", "unsigned"), "what chooses elements as an index"),
}

# the words of a record's `types=`
WORDS = {
    "bool": ("bool",),
    "int": ("unsigned", "signed"),
    "natural": ("natural",),
    "float": ("float",),
    "half": ("half",),
    "complex": ("complex",),
}

# C name -> (the type of a schema, the one in messages)
ARGUMENT_KINDS = {
    "TENSOR": ("Tensor", "Tensor"),
    "SCALAR": ("Scalar", "Number"),
    "INT": ("int", "int"),
    "FLOAT": ("float", "float"),
    "BOOL": ("bool", "bool"),
    "STR": ("str", "str"),
    "DTYPE": ("ScalarType", "torch.dtype"),
    "DEVICE": ("Device", "torch.device"),
    "LAYOUT": ("Layout", "torch.layout"),
    "FORMAT": ("MemoryFormat", "torch.memory_format"),
    "GENERATOR": ("Generator", "torch.Generator"),
    "COMPLEX": ("complex", "complex"),
    "DICT": ("Dict", "dict"),
    "ANY": ("Any", "object"),
}
SAME_KIND = {"SymInt": "int", "number": "Scalar"}

# bits of one argument
ARGUMENT_FLAGS = {
    "OPTIONAL": "None is accepted",
    "LIST": "a list",
    "KEYWORD": "given by name alone",
    "DEFAULT": "may be left out",
    "NUMBER": "a Tensor argument that takes a Python number too",
    "WRITE": "written to",
    "ELEM_OPTIONAL": "a list whose elements may be None",
    "VARARGS": "a list that may be given as several arguments",
    "NESTED": "what lists and tuples in it hold are operands: an index, not the data of a tensor",
}

# what a derivative rule asks for: the high byte of its code; the low one is the number of the argument or output
RULE_CODES = {
    "GRAD": "the incoming gradient",
    "INPUT": "an argument",
    "RESULT": "an output",
    "SHAPE": "an argument's sizes",
    "NEEDS": "which arguments need a gradient",
    "GRADS": "the incoming gradients of all outputs",
    "DTYPE": "an argument's dtype",
    "GEOMETRY": "an argument's (sizes, strides, storage offset)",
    "DEVICE": "an argument's device",
}


def dtypes(*kinds):
    """The rows of some kinds of dtype, in table order."""
    return [row for row in DTYPES if row.kind in kinds]


def kind_numbers():
    """Number of each type of a schema."""
    numbers = {word: i for i, (word, _) in enumerate(ARGUMENT_KINDS.values())}
    return numbers | {word: numbers[same] for word, same in SAME_KIND.items()}


def flag_bits():
    """Bit of each flag of an argument."""
    return {name: 1 << i for i, name in enumerate(ARGUMENT_FLAGS)}


def rule_codes():
    """Code of each thing that a rule may ask for."""
    return {name: i << 8 for i, name in enumerate(RULE_CODES)}


def promoted(a, b):
    """The row of the dtype that holds both: PyTorch's lattice. None for two whole numbers that it joins in none.

    It refuses natural with complex too, but among operands of one rank only, so that those who promote such refuse it.
    """
    if a is b:
        return a
    if {a.kind, b.kind} & {"natural"} and {a.kind, b.kind} <= {"natural", "bool", "unsigned", "signed"}:
        return None
    order = ("bool", "integer", "half", "float", "complex")
    level = {"unsigned": "integer", "natural": "integer", "signed": "integer", "coded": "half", "pair": "complex"}
    low, high = sorted((a, b), key=lambda row: (order.index(level.get(row.kind, row.kind)), row.itemsize))
    if low.kind in ("half", "float", "coded") and high.kind in ("complex", "pair"):
        return _named(complex_of(low)) if low.name == "float64" or high is PAIR else high
    if {low.kind, high.kind} == {"unsigned", "signed"}:  # the signed type that holds both
        return _named("int16") if high.itemsize == 1 else high
    if {low.kind, high.kind} <= {"half", "coded"}:  # neither holds the other
        return _named("float32")
    return high


def complex_of(row):
    """Name of the complex dtype of a floating one's precision."""
    return {"float64": "complex128", "float16": "complex32"}.get(row.name, "complex64")


def _named(name):
    return next(row for row in NAMED if row.name == name)
