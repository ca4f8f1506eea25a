"""What a constraint is."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
class Constraint:
    """Base of the constraints. ``event_dim`` is how many last dimensions are one event."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each event of ``value`` is inside, a bool tensor without the event's dimensions."""
        raise NotImplementedError(f"{type(self).__name__} does not define check(self, value)")

    def __repr__(self):
        return type(self).__name__[1:] + "()"
