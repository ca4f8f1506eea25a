"""Which transform gives values that satisfy a constraint: two tables by the type of the constraint.

`biject_to` promises one that is one to one; `transform_to` the one that suits unconstrained optimisation best.
"""

from tinygrad_ext.core.call.boundary import boundary

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


@boundary
class ConstraintRegistry:
    """Functions from constraints to transforms; call it with a constraint."""

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Enter ``factory(constraint)`` for a type of constraint, or decorate it.

        Raises:
            TypeError: ``constraint`` is neither a constraint nor a type of them.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints; add a transform with register"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(constraint):
    def register(factory):
        return transform_to.register(constraint, biject_to.register(constraint, factory))

    return register


@_both(constraints.real)
def _to_real(constraint):
    return transforms.identity_transform


@_both(constraints.positive)
@_both(constraints.nonnegative)
def _to_positive(constraint):
    bound = constraint.lower_bound
    if not hasattr(bound, "dim") and bound == 0:
        return transforms.ExpTransform()
    return _shifted(transforms.ExpTransform(), bound, 1)


@_both(constraints.less_than)
def _to_less(constraint):
    return _shifted(transforms.ExpTransform(), constraint.upper_bound, -1)


@_both(constraints.interval)
@_both(constraints.half_open_interval)
def _to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if not hasattr(low, "dim") and not hasattr(high, "dim") and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return _shifted(transforms.SigmoidTransform(), low, high - low)


def _shifted(transform, loc, scale):
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@biject_to.register(constraints.simplex)
def _one_to_one_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _to_simplex(constraint):
    return transforms.SoftmaxTransform()


def _through_parts(registry):
    """Constraints that are made of others."""

    @registry.register(constraints.independent)
    def independent(constraint):
        inner = registry(constraint.base_constraint)
        return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_through_parts(biject_to)
_through_parts(transform_to)
