"""Which attributes of layers are constants of a script: `__constants__` of the classes, which subclasses add to."""

# classes: their attributes
_TABLE = """
    _NormBase: track_running_stats momentum eps num_features affine
    _ConvNd: stride padding dilation groups padding_mode output_padding in_channels out_channels kernel_size
    _DropoutNd: p inplace
    _CircularPadNd _ReflectionPadNd _ReplicationPadNd: padding
    _ConstantPadNd: padding value
    _AdaptiveAvgPoolNd: output_size
    _AdaptiveMaxPoolNd: output_size return_indices
    _AvgPoolNd: kernel_size stride padding ceil_mode count_include_pad
    _LPPoolNd: norm_type kernel_size stride ceil_mode
    _MaxPoolNd: kernel_size stride padding dilation return_indices ceil_mode
    CELU ELU: alpha inplace
    GELU: approximate
    Softplus: beta threshold
    CTCLoss: blank reduction
    GLU LogSoftmax Softmax Softmin: dim
    CosineSimilarity: dim eps
    Unflatten: dim unflattened_size
    PixelUnshuffle: downscale_factor
    GaussianNLLLoss: full eps reduction
    ChannelShuffle: groups
    NLLLoss: ignore_index reduction
    CrossEntropyLoss: ignore_index reduction label_smoothing
    Bilinear: in1_features in2_features out_features
    Linear: in_features out_features
    Hardsigmoid Hardswish Mish ReLU SELU SiLU: inplace
    LeakyReLU: inplace negative_slope
    RNNCellBase: input_size hidden_size bias
    RNNCell: input_size hidden_size bias nonlinearity
    Unfold: kernel_size dilation padding stride
    FractionalMaxPool2d FractionalMaxPool3d: kernel_size return_indices output_size output_ratio
    AvgPool2d AvgPool3d: kernel_size stride padding ceil_mode count_include_pad divisor_override
    Hardshrink Softshrink: lambd
    PoissonNLLLoss: log_input full eps reduction
    RReLU: lower upper inplace
    TripletMarginLoss: margin p eps swap reduction
    CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss: margin reduction
    TripletMarginWithDistanceLoss: margin swap reduction
    Hardtanh: min_val max_val inplace
    RNNBase: mode input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size
    PairwiseDistance: norm eps keepdim
    LayerNorm RMSNorm: normalized_shape eps elementwise_affine
    LinearCrossEntropyLoss: num_classes out_features reduction ignore_index label_smoothing
    EmbeddingBag: num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode sparse \
include_last_offset padding_idx
    Embedding: num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse
    GroupNorm: num_groups num_channels eps affine
    PReLU: num_parameters
    Fold: output_size kernel_size dilation padding stride
    MultiMarginLoss: p margin reduction
    ConstantPad2d: padding value
    BCELoss KLDivLoss L1Loss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss SmoothL1Loss: reduction
    SoftMarginLoss: reduction
    HuberLoss: reduction delta
    LocalResponseNorm: size alpha beta k
    Upsample: size scale_factor mode align_corners name recompute_scale_factor
    Flatten: start_dim end_dim
    Threshold: threshold value inplace
    PixelShuffle: upscale_factor
"""


def mark(names):
    """Set the lists on the classes of a module's names, and of what these are made of."""
    classes = {base.__name__: base for cls in names.values() if isinstance(cls, type) for base in cls.__mro__}
    for line in _TABLE.strip().splitlines():
        kinds, _, attributes = line.partition(":")
        for name in kinds.split():
            classes[name].__constants__ = attributes.split()
