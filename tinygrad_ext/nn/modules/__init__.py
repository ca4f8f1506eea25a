"""The layers, one family per file."""

from . import (
    activation,
    batchnorm,
    container,
    conv,
    dropout,
    embedding,
    flatten,
    instancenorm,
    linear,
    loss,
    module,
    norm,
    normalization,
    padding,
    pairs,
    parameter_containers,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
)
from .activation import *
from .container import *
from .conv import *
from .dropout import *
from .embedding import *
from .flatten import *
from .instancenorm import *
from .linear import *
from .loss import *
from .module import Module
from .norm import *
from .padding import *
from .pairs import *
from .parameter_containers import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .transformer import *

__all__ = sorted(
    name
    for family in (
        activation,
        container,
        conv,
        dropout,
        embedding,
        flatten,
        instancenorm,
        linear,
        loss,
        norm,
        padding,
        pairs,
        parameter_containers,
        pixelshuffle,
        pooling,
        rnn,
        transformer,
    )
    for name in family.__all__
)
