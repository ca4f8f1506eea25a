"""An optimizer's state as a dict of plain values, in PyTorch's layout, and back."""

from collections.abc import Iterable

import tinygrad_ext as tg


def pack(state, param_groups):
    """Return the dict with each parameter replaced by its number."""
    numbers = {}
    packed_groups = []
    for group in param_groups:
        for param in group["params"]:
            numbers.setdefault(id(param), len(numbers))
        packed = {name: value for name, value in group.items() if name != "params"}
        packed["params"] = [numbers[id(param)] for param in group["params"]]
        packed_groups.append(packed)
    packed_state = {
        (numbers[id(key)] if isinstance(key, tg.Tensor) else key): dict(value) if isinstance(value, dict) else value
        for key, value in state.items()
    }
    return {"state": packed_state, "param_groups": packed_groups}


def check_groups(saved, ours):
    """Raise ValueError unless the saved groups have the sizes of ours."""
    if len(saved) != len(ours):
        raise ValueError(
            f"loaded state dict has a different number of parameter groups: it has {len(saved)}, "
            f"the optimizer {len(ours)}"
        )
    for number, (new, old) in enumerate(zip(saved, ours)):
        if len(new["params"]) != len(old["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                f"group {number} has {len(new['params'])} parameters, the optimizer's has {len(old['params'])}"
            )


def unpack_state(state, saved, ours):
    """Return the state by parameter; keys that are no parameter's number stay."""
    params = {}
    for new, old in zip(saved, ours):
        params.update(zip(new["params"], old["params"]))
    unpacked = {}
    for key, value in state.items():
        param = params.get(key)
        unpacked[key if param is None else param] = value if param is None else _fit(param, value)
    return unpacked


def _fit(param, value, name=None):
    """Cast the tensors in ``value`` to the parameter's dtype and device; ``step`` is a plain count and stays."""
    if isinstance(value, tg.Tensor):
        if name == "step":
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {key: _fit(param, entry, key) for key, entry in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_fit(param, entry) for entry in value)
    return value


def with_params(saved, ours):
    """Return the saved group's options with our parameters, and our names for them if there are any."""
    group = {**saved, "params": ours["params"]}
    if "param_names" in ours and "param_names" not in saved:
        group["param_names"] = ours["param_names"]
    return group
