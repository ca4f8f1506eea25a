"""What an op is: one record, from which everything else about it is derived.

A family file calls `op(schema, ...)` once for each overload. Nothing here imports compiled code, and `scalar`,
`types`, `returns`, `inputs` and `promote` are literals, because the build reads them to write the C loops.

    schema      identity and contract, see schema.py
    scalar      C expression of one element (x, y, z are the tensor arguments in order; scalar arguments by name),
                or a dict from kinds of dtype to expressions
    types       kinds the expression is compiled for: bool int natural (uint16 to uint64) float half complex (default
                "int float")
                a dict of conditions on the scalar arguments, the last one "else", makes one loop for each case
    promote     "float": integers are computed in the default float dtype; "int": bool as int64; "cast": scalar
                arguments are cut to the computing dtype; "scalars": they take part in
                promotion as numbers do; "number": the second of two operands, where it is a number, stays
                float32 beside halves
    returns     dtype of the output when it is not the computing dtype: "bool"; "real" (of complex numbers)
    choices     {"approximate": "none tanh"}: words of a str argument; the expression sees the word's number
    refuses     {kind: text of the RuntimeError}: "bool" operands, "int" or "complex" results,
                "mixed" dtypes, "inputs" that should be bool, "crossed" limits (a ValueError: the first of two scalar
                arguments is greater than the second), a number that is negative or "beyond" the dtype, numbers for
                tensors that are "outside" the dtype (what they are), "out": an out= of another dtype, where
                {wanted} and {got} are the titles of the two (of ops of any kind)
    failure     text of the RuntimeError when the expression calls FAIL(TGX_BAD_VALUE)
    inputs      {"condition": "bool"}: tensor arguments of a fixed dtype
    kernel      name of a compiled kernel, or a Python function that autograd sees as one step
    compose     function over other ops, or the name of a compiled one; its derivative follows from theirs
    grad        {argument: rule}; a rule's parameter names say what it needs: grad, result, an argument,
                <argument>_shape, _dtype, _device, _geometry (sizes, strides, offset), needs (which
                arguments want a gradient), grads (several outputs), arrived (grads, None for those that have none);
                "mul(grad, other)" calls one op and is the quickest, "grad" passes the gradient on, "grad * alpha" does
                where the number is 1, "zero" and "none" give none; a key "a, b" is a joint rule
    holomorphic True for an analytic function: the rules are derivatives, and of complex numbers give the conjugate of
                what they make of the conjugate of the gradient
    batch       how it goes through vmap: "leading": further leading dimensions are taken as they are; "dims":
                arguments that name dimensions count from the second one on; "pointwise": tensors are broadcast, for
                kernels of which that is not known; else a function of the level (func/batch.py) and all arguments,
                which returns tensors with the batch in front (ops/batching.py). Pointwise ops and composites need none
    jvp         forward mode, what the tangents of the results are: "linear": the op itself, of the tangents; "each":
                the same for one tensor argument at a time, with the others held; "symmetric": what grad says, of the
                tangent; "reduce": where each element goes into one result, what grad says of ones gives its factor;
                "transposed": grad of grad; "none": there are none, whatever a composite calls; a function whose
                parameter names say what it needs: an argument, <argument>_tangent (None for zeros), result, a named
                result (ops/forward.py). Pointwise ops, views and other composites need none
    shape       rule for meta tensors: a function of the arguments that returns meta tensors; "kernel" when a kernel
                over Python objects serves them itself. Kernels in C have their own, and take none here
    variants    words of: function method inplace out, and function_ for an in-place form that is a public function
                (default: the first four for scalar, all for scalar of one argument, the first two else)
    operator    dunder root, such as "add" for a + b
    numbers     tensor arguments that also take Python numbers; "self|other": not both at once
    aliases     further public names; one with a dot, such as "special.expit", is a function of that module alone
    where       modules of the function below tinygrad_ext, such as "nn.functional" ("." is the top, the default)
    reference   NumPy/SciPy function, or its dotted name ("scipy.special.erf"), for the tests
    samples     function of a Maker that yields Sample(...), see ops/samples.py
    valid       function of the arguments that gives those which a derivative check may move freely: of a Hermitian
                matrix, of which one triangle is read, any matrix
    determined  function of a result that gives what is determined of it: of eigenvectors the magnitudes. Tests
                compare that, and reference says that
    errors      list of (call, exception, fragment) that must raise
    older       "beta self alpha mat1 mat2": an order of positional arguments that is deprecated and still understood;
                several are parted by "|"
    domain      interval for random inputs, one or one for each tensor argument
    gaps        {check: reason} for what is missing; the checks are reference, layout, threads, dtypes, odd shapes,
                inplace, out, shape, gradcheck, gradgradcheck, torch
    version     of what the op means, 1 at first; a change that a graph saved before has to be told of raises it
    tags        words of: random (drawn values), draws (a composite that may draw from the default generator),
                unset (values not defined), data_dependent (no answer on meta),
                data_dependent_grad (no gradient on meta), moves (elements arrive as they are, whatever their dtype),
                apart (what is written to shares no memory with an input), others_apart (with none but the first),
                apart:index (with none but that one), itself:index (that one may be what is written to, as a whole),
                fills (out= keeps its shape where it has as many elements as the result); of the dtype of out=: casts
                (any that the result can be cast to, as with scalar) and exact (that of the result, as without), bytes
                (bool or uint8), adopts (that is the dtype= which was left out), exact_inplace (exact, and so is the
                tensor of an in-place form)
    doc         one sentence; then shapes, units, errors and source where they matter
"""

import sys
from collections import namedtuple

RECORDS = []


class Owner(namedtuple("Owner", "distribution version", defaults=(None,))):
    """Who brought an op, a module or an override: the distribution that pip installed, and its version."""

    __slots__ = ()

    def __str__(self):
        return f"{self.distribution} {self.version}" if self.version else self.distribution


BUILTIN = Owner("tinygrad_ext")

_FIELDS = (
    "scalar",
    "types",
    "promote",
    "returns",
    "inputs",
    "choices",
    "refuses",
    "failure",
    "kernel",
    "compose",
    "grad",
    "shape",
    "variants",
    "operator",
    "numbers",
    "aliases",
    "where",
    "reference",
    "samples",
    "errors",
    "domain",
    "gaps",
    "doc",
    "view",
    "takes_out",
    "tags",
    "older",
    "batch",
    "jvp",
    "holomorphic",
    "version",
    "valid",
    "determined",
)


_NAMES = frozenset(_FIELDS)

# literals of a record with scalar=, which the build reads
READ_BY_THE_BUILD = ("scalar", "types", "returns", "inputs", "promote", "choices")


def said(schema, fields):
    """What loops are compiled from, as one text: so that a library of loops can be compared with a record.

    fields: {name: value} of those in READ_BY_THE_BUILD; a missing one is None.
    """
    return repr((schema, [fields.get(name) for name in READ_BY_THE_BUILD]))


class Record:
    """The fields of one op, with the place where they were written."""

    def __init__(self, schema, source, line, owner, fields):
        self.schema, self.source, self._line, self.owner = schema, source, line, owner
        if not _NAMES.issuperset(fields):
            unknown = sorted(set(fields) - _NAMES)[0]
            raise TypeError(f"op({schema!r}): unknown field {unknown!r}; a record has {', '.join(_FIELDS)}")
        self.__dict__.update(fields)
        if (self.scalar is not None) + (self.kernel is not None) + (self.compose is not None) != 1:
            raise TypeError(f"op({schema!r}): exactly one of scalar, kernel and compose says how it is computed")

    @property
    def line(self):
        """Where the record stands in its source. Of built-in ones it is counted when it is asked for: that takes a walk
        through the line table of a module."""
        if isinstance(self._line, tuple):
            code, at = self._line
            self._line = next((line for start, end, line in code.co_lines() if start <= at < end), code.co_firstlineno)
        return self._line

    def __repr__(self):
        return f"<record {self.schema}>"


for _name in _FIELDS:  # what a record leaves out
    setattr(Record, _name, None)
Record.version = 1


def op(schema, **fields):
    """Declare an op; the registry picks it up."""
    frame = sys._getframe(1)
    RECORDS.append(Record(schema, frame.f_code.co_filename, (frame.f_code, frame.f_lasti), BUILTIN, fields))
