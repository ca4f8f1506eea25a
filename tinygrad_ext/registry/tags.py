"""Tag: words about an op that others may act on."""

import enum


class Tag(enum.Enum):
    """What can be said about an op. `inplace` and `out` also shape the schema that `infer_schema` makes."""

    core = enum.auto()
    pointwise = enum.auto()
    reduction = enum.auto()
    inplace = enum.auto()
    out = enum.auto()
    out_variant = enum.auto()
    view_copy = enum.auto()
    inplace_view = enum.auto()
    nondeterministic_seeded = enum.auto()
    nondeterministic_bitwise = enum.auto()
    data_dependent_output = enum.auto()
    dynamic_output_shape = enum.auto()
    maybe_aliasing_or_mutating = enum.auto()
    cudagraph_unsafe = enum.auto()
    flexible_layout = enum.auto()
    needs_fixed_stride_order = enum.auto()
    needs_exact_strides = enum.auto()
    needs_contiguous_strides = enum.auto()
    pt2_compliant_tag = enum.auto()
    generated = enum.auto()

    def __repr__(self):
        return f"Tag.{self.name}"


def words(tags):
    """The words that a record keeps, from a Tag, several, or None. TypeError for anything else."""
    tags = (tags,) if isinstance(tags, (Tag, str)) else tuple(tags or ())
    for tag in tags:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags: {tag!r} is no Tag; they are library.Tag.{', '.join(Tag.__members__)}")
    return " ".join(tag.name for tag in tags) or None
