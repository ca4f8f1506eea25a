"""The layers, one family per file."""

from . import (
    activation,
    adaptive,
    batchnorm,
    constants,
    container,
    conv,
    dropout,
    embedding,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    linear_cross_entropy_options,
    loss,
    module,
    norm,
    normalization,
    padding,
    pairs,
    parallel,
    parameter_containers,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from .activation import *
from .adaptive import *
from .container import *
from .conv import *
from .dropout import *
from .embedding import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .lazy import *
from .linear import *
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .loss import *
from .module import Module
from .norm import *
from .padding import *
from .pairs import *
from .parallel import *
from .parameter_containers import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .transformer import *
from .upsampling import *

__all__ = sorted(
    name
    for family in (
        activation,
        adaptive,
        container,
        conv,
        dropout,
        embedding,
        flatten,
        fold,
        instancenorm,
        lazy,
        linear,
        loss,
        norm,
        padding,
        pairs,
        parallel,
        parameter_containers,
        pixelshuffle,
        pooling,
        rnn,
        transformer,
        upsampling,
    )
    for name in family.__all__
)

constants.mark(globals())
