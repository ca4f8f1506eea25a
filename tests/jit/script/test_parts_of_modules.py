"""What stands around a module's methods: hooks, texts that define them, walks over its parts, children that change."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def doubled(self, args: tuple[tg.Tensor]):
    return (args[0] * 2,)


def shifted(self, args: tuple[tg.Tensor], result):
    return result + self.shift + args[0].sum()


def nothing(self, args: tuple[tg.Tensor], result):
    pass


class Shifting(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = 0.5

    def forward(self, x):
        return x.exp()


class AroundShifting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Shifting()

    def forward(self, x):
        return self.inner(x), self.inner.forward(x)


@pytest.mark.parametrize("inside", [False, True])
def test_forward_hooks_are_compiled_and_saved(inside):
    module = AroundShifting() if inside else Shifting()
    hooked = module.inner if inside else module
    hooked.register_forward_pre_hook(doubled)
    for hook in (nothing, shifted, shifted):
        hooked.register_forward_hook(hook)
    scripted = jit.script(module)
    file = io.BytesIO()
    jit.save(scripted, file)
    again = jit.load(io.BytesIO(file.getvalue()))
    x = tg.randn(3)
    for run in (scripted, again):
        assert str(run(x)) == str(module(x)) and str(run.forward(x)) == str(module.forward(x))


def test_hooks_that_script_does_not_run_are_refused():
    module = nn.Linear(2, 2)
    module.register_full_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="has backward hooks"):
        jit.script(module)


def test_methods_from_a_text():
    class Made(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = jit.Attribute(3, int)
            self.define("""
                def forward(self, x):
                    return self.scaled(x) + 1

                def scaled(self, x):
                    return x * self.scale
                """)

    made = Made()
    assert made.scale == 3 and made(tg.ones(2)).tolist() == [4.0, 4.0]
    assert jit.load(io.BytesIO(made.save_to_buffer()))(tg.ones(1)).item() == 4.0


def test_walks_over_modules_are_unrolled():
    class Walk(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

        def forward(self, x):
            total = x.sum()
            for name, p in self.named_parameters():
                if name.endswith("weight"):
                    total = total + p.sum()
            for b in self.parts.buffers():
                total = total + b.sum()
            for name, _part in self.named_modules():
                total = total + len(name)
            for part in self.parts.children():
                x = part(x)
            return total, x

    walk = Walk().eval()
    x = tg.randn(3, 2)
    assert str(jit.script(walk)(x)) == str(walk(x))


class Twice(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) * 2

    @jit.export
    def once(self, x):
        return self.inner(x)

    @jit.unused
    @tg.no_grad()
    def anything(self, *items, **names) -> int:
        return len(items)

    @jit.export
    def calls_anything(self) -> int:
        return self.anything(1, b="c")


def test_a_child_may_be_replaced():
    scripted = jit.script(Twice(nn.ReLU()))
    x = tg.tensor([-1.0, 2.0])
    assert scripted(x).tolist() == [0.0, 4.0]
    scripted.inner = jit.script(nn.Tanh())
    assert scripted(x).equal(x.tanh() * 2) and scripted.once(x).equal(x.tanh())
    scripted.inner = nn.Sigmoid()
    again = jit.load(io.BytesIO(scripted.save_to_buffer()))
    assert again(x).equal(x.sigmoid() * 2) and again.once(x).equal(x.sigmoid())


def test_what_is_unused_may_take_anything():
    with pytest.raises(NotImplementedError, match="marked unused"):
        jit.script(Twice(nn.ReLU())).calls_anything()


class Prepared(nn.Module):
    def forward(self, *xs):
        return xs[0]

    def __prepare_scriptable__(self):
        return nn.Tanh()


def test_a_module_says_what_is_compiled_in_its_place():
    scripted = jit.script(Twice(Prepared()))
    x = tg.randn(2)
    assert scripted(x).equal(x.tanh() * 2)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(tg.tensor([2.0, 4.0]))

    def forward(self, x):
        return x * self.by

    def back(self, y, shift):
        return y / self.by + shift


class Around(nn.Module):
    def __init__(self, traced):
        super().__init__()
        self.traced = traced

    def forward(self, x: tg.Tensor, n: int) -> tg.Tensor:
        for _ in range(n):
            x = self.traced.back(self.traced.forward(x), x.sum())
        return x


def test_all_methods_that_were_traced_are_called_in_script():
    x = tg.tensor([1.0, -2.0], requires_grad=True)
    plain = Both()
    scripted = jit.script(Around(jit.trace_module(plain, {"forward": tg.ones(2), "back": (tg.ones(2), tg.ones(()))})))
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    for program in (scripted, jit.load(file)):
        for n in (0, 1, 3):
            assert program(x, n).equal(Around(plain)(x, n))
            got, expected = (tg.autograd.grad(p(x, n).square().sum(), x)[0] for p in (program, Around(plain)))
            assert got.allclose(expected)
    with pytest.raises(jit.Error, match="no attribute 'by_name'"):
        jit.script(Named(scripted.traced))


class Named(Around):
    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.traced.by_name(x)
