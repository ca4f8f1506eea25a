"""The tables of hooks of all modules under PyTorch's private names."""

from collections import OrderedDict

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn.modules import module as place


def test_hooks_stand_in_the_tables_and_leave_with_them():
    seen = []
    place.register_module_forward_hook(lambda m, args, y: seen.append("after"), always_call=True)
    place.register_module_forward_pre_hook(lambda m, args: seen.append("before"))
    assert len(place._global_forward_hooks) == len(place._global_forward_hooks_always_called) == 1
    nn.Identity()(tg.ones(1))
    assert seen == ["before", "after"]
    place._global_forward_hooks = OrderedDict()
    nn.Identity()(tg.ones(1))
    assert seen == ["before", "after", "before"]
    kept = place._global_forward_pre_hooks.copy()
    place._global_forward_pre_hooks.clear()
    place._global_forward_hooks_always_called = {}
    nn.Identity()(tg.ones(1))
    assert len(seen) == 3 and not place._global_forward_hooks and not place._global_forward_hooks_always_called
    place._global_forward_pre_hooks = kept
    nn.Identity()(tg.ones(1))
    assert len(seen) == 4
    place._global_forward_pre_hooks = {}


def test_other_names_can_be_set():
    place.some_name = 3
    assert place.some_name == 3
    del place.some_name
