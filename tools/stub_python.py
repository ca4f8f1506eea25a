"""Stubs of functions and classes written in Python, from their signatures.

The code carries no annotations; a parameter's type is looked up by its name, else taken from its default, else Any.
"""

import inspect
import keyword
import warnings

from tinygrad_ext import nn

# parameter name -> type, for names that mean the same everywhere
NAMES = {
    **dict.fromkeys(
        (
            "in_features",
            "out_features",
            "in_channels",
            "out_channels",
            "num_features",
            "num_embeddings",
            "embedding_dim",
            "groups",
            "num_groups",
            "num_channels",
            "batch_size",
            "num_workers",
            "dim",
            "upscale_factor",
            "in1_features",
            "in2_features",
            "last_epoch",
        ),
        "_int",
    ),
    **dict.fromkeys(
        ("kernel_size", "stride", "dilation", "output_padding", "output_size", "normalized_shape"),
        "_int | _Sequence[_int | None] | None",
    ),
    **dict.fromkeys(("tensor", "input", "target", "weight", "vec"), "Tensor"),
    **dict.fromkeys(
        (
            "eps",
            "momentum",
            "p",
            "weight_decay",
            "gain",
            "std",
            "mean",
            "val",
            "alpha",
            "beta",
            "negative_slope",
            "max_norm",
            "norm_type",
            "clip_value",
            "gamma",
            "dampening",
            "threshold",
        ),
        "_float",
    ),
    "padding": "_int | _Sequence[_int] | _b.str",
    "lr": "_float | Tensor",
    "betas": "tuple[_float, _float]",
    "params": "_Iterable[_Any]",
    "parameters": "Tensor | _Iterable[Tensor]",
    "closure": "_Callable[[], _Any] | None",
    "generator": "_Any",
    "device": "_device | _b.str | None",
    "dtype": "_dtype | None",
    "bias": "_bool",
    "dim_or_none": "_int | None",
    "reduction": "_b.str",
    "content": "_int | _Sequence[_complex]",
    "storage": "_int | _Sequence[_int]",
}
# function or method name -> type of the result
RETURNS = {
    "__init__": "None",
    "reset_parameters": "None",
    "reset_running_stats": "None",
    "__len__": "_int",
    "__iter__": "_Iterator[_Any]",
    "backward": "None",
    "grad": "tuple[Tensor, ...]",
    "is_tensor": "_bool",
    "is_floating_point": "_bool",
    "is_complex": "_bool",
    "numel": "_int",
    "save": "None",
    "manual_seed": "_Generator",
    "seed": "_int",
    "initial_seed": "_int",
    "set_rng_state": "None",
    "get_rng_state": "Tensor",
    "set_num_threads": "None",
    "get_num_threads": "_int",
    "set_printoptions": "None",
    "result_type": "_dtype",
    "calculate_gain": "_float",
    "clip_grad_norm_": "Tensor",
    "get_total_norm": "Tensor",
    "parameters_to_vector": "Tensor",
    "clip_grad_value_": "None",
    "vector_to_parameters": "None",
    "extra_repr": "_b.str",
    "show_config": "None",
    "equal": "_bool",
    "allclose": "_bool",
    "from_numpy": "Tensor",
    "as_tensor": "Tensor",
    "asarray": "Tensor",
    "frombuffer": "Tensor",
    "from_dlpack": "Tensor",
}
DUNDERS = ("__init__", "__len__", "__iter__", "__getitem__", "__call__", "__enter__", "__exit__", "__contains__")


def function(name, fn, indent="", owner=None):
    """Line of a function or method."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        returns = RETURNS.get(name, "_Any")
        return f"{indent}def {name}({'self, ' if owner else ''}*args: _Any, **kwargs: _Any) -> {returns}: ..."
    texts, star = [], False
    for i, p in enumerate(parameters):
        if owner and i == 0:
            texts.append("self")
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            texts.append("*")
            star = True
        star = star or p.kind is p.VAR_POSITIONAL
        texts.append(_parameter(p))
    returns = RETURNS.get(name) or (
        "Tensor" if name.endswith("_") and not name.endswith("__") and not owner else "_Any"
    )
    return f"{indent}def {name}({', '.join(texts)}) -> {returns}: ..."


def _parameter(p):
    if p.kind is p.VAR_POSITIONAL:
        return f"*{p.name}: _Any"
    if p.kind is p.VAR_KEYWORD:
        return f"**{p.name}: _Any"
    name = p.name + "_" * keyword.iskeyword(p.name)
    if p.default is p.empty:
        return f"{name}: {NAMES.get(p.name, '_Any')}"
    kind = NAMES.get(p.name) or {bool: "_bool", int: "_float", float: "_float", str: "_b.str"}.get(
        type(p.default), "_Any"
    )
    if kind == "_int" and type(p.default) is tuple:
        kind = "_Sequence[_int]"
    if p.default is None and "None" not in kind and kind != "_Any":
        kind += " | None"
    shown = repr(p.default) if type(p.default) in (bool, int, float, str, type(None)) else "..."
    return f"{name}: {kind} = {shown}"


_NO_SIZES = {
    "unflattened_size": (2,),
    "mode": "GRU",
    "encoder_layer": nn.TransformerEncoderLayer(2, 2, 2, batch_first=True),
    "decoder_layer": nn.TransformerDecoderLayer(2, 2, 2),
}

# Those whose defaults are large or refused, and those of which not every argument is a size.
_NO_DEFAULTS = {
    "Transformer": {
        "d_model": 2, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 2,
        "batch_first": True,
    },
    "AdaptiveLogSoftmaxWithLoss": {"n_classes": 3, "cutoffs": [1], "div_value": 1.0},
    "FractionalMaxPool2d": {"output_size": 2},
    "FractionalMaxPool3d": {"output_size": 2},
}  # fmt: skip


def _attributes(c):
    """Lines of the parameters, buffers and plain values that an instance of a layer has; all its sizes are 2."""
    given = _NO_DEFAULTS.get(c.__name__, {})
    required = [p.name for p in inspect.signature(c).parameters.values() if p.default is p.empty and p.kind.value == 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # names of older code
        made = c(**({name: _NO_SIZES.get(name, 2) for name in required} | given))
    kinds = {n: "Parameter" for n in made._parameters}
    kinds |= {n: "Tensor" for n in made._buffers}
    plain = {bool: "_bool", int: "_int", float: "_float", str: "_b.str"}
    own = {n: v for n, v in vars(made).items() if not n.startswith("_") and n not in ("training", *kinds)}
    kinds |= {n: plain[type(v)] for n, v in own.items() if type(v) in plain and "|" not in NAMES.get(n, "")}
    return [f"    {n}: {kind}" for n, kind in kinds.items()]


def cls(c, known):
    """Lines of a class: its base among `known`, and the public methods that this base does not have."""
    bases = [b.__name__ for b in c.__mro__[1:] if b.__name__ in known][:1]
    if not bases and issubclass(c, Exception):
        bases = [next(b.__name__ for b in c.__mro__[1:] if b.__module__ == "builtins")]
    declared = {k for b in c.__mro__[1:] if b.__name__ in bases for k in b.__mro__}
    lines = _attributes(c) if bases == ["Module"] else []
    for name in sorted(dir(c), key=lambda n: (n != "__init__", n)):
        found, definer = inspect.getattr_static(c, name), next((k for k in c.__mro__ if name in vars(k)), type)
        if (name.startswith("_") and name not in DUNDERS) or definer in declared or definer in (object, type):
            continue
        if isinstance(found, property):
            lines.append(f"    @property\n    def {name}(self) -> _Any: ...")
        elif isinstance(found, classmethod):
            lines.append(f"    @classmethod\n    def {name}(cls, *args: _Any, **kwargs: _Any) -> _Any: ...")
        elif isinstance(found, staticmethod):
            lines.append(f"    @staticmethod\n{function(name, found.__func__, '    ')}")
        elif callable(found) and not inspect.isclass(found):
            if name == "forward" and bases:
                continue  # Module declares it; every layer narrows its parameters
            lines.append(function(name, found, "    ", c))
    head = f"class {c.__name__}({', '.join(bases)}):" if bases else f"class {c.__name__}:"
    return head + ("\n" + "\n".join(lines) if lines else " ...")
