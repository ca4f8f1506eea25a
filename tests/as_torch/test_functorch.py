"""`functorch`, which PyTorch's wheel brings beside torch, means the transforms here while the alias is on."""

import importlib.util
import sys

import pytest


@pytest.mark.filterwarnings("ignore:.functorch:FutureWarning")
def test_transforms_stand_under_their_older_names(as_torch):
    import functorch
    import torch
    from functorch import combine_state_for_ensemble, grad, make_functional, make_functional_with_buffers, vmap

    assert functorch.vmap.__wrapped__ is torch.func.vmap and grad.__wrapped__ is torch.func.grad
    model = torch.nn.Linear(2, 3)
    f, params = make_functional(model)
    x = torch.ones(4, 2)
    assert torch.equal(f(params, x), model(x)) and not list(f.parameters())
    assert grad(lambda p: f(p, x).sum())(params)[0].tolist() == [[4, 4]] * 3
    assert not any(p.requires_grad for p in make_functional(model, disable_autograd_tracking=True)[1])
    models = [torch.nn.BatchNorm1d(2).eval() for _ in range(3)]
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        make_functional(models[0])
    _, params, buffers = make_functional_with_buffers(models[0])
    assert len(params) == 2 and len(buffers) == 3
    f, params, buffers = combine_state_for_ensemble(models)
    assert vmap(f, (0, 0, None))(params, buffers, x).shape == (3, 4, 2)
    with pytest.raises(RuntimeError, match="same class"):
        combine_state_for_ensemble([model.eval(), models[0]])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        combine_state_for_ensemble([models[0], torch.nn.BatchNorm1d(2)])


@pytest.mark.parametrize(
    "name", ["vmap", "grad", "grad_and_value", "vjp", "jacrev", "jacfwd", "hessian", "functionalize"]
)
def test_the_older_names_say_how_the_transforms_are_called_now(as_torch, name):
    import functorch
    import torch

    with pytest.warns(FutureWarning, match=f"Please use `torch.{'' if name == 'vmap' else 'func.'}{name}` instead"):
        getattr(functorch, name)(*(torch.sin, torch.ones(2))[: 2 if name == "vjp" else 1])


def test_its_modules_are_imported_and_fail_at_use(as_torch):
    import functorch.compile
    from functorch import dim
    from functorch.experimental import functionalize

    assert callable(functionalize)
    for use in (lambda: dim.dims(2), lambda: functorch.compile.aot_function(1, 2), lambda: functorch.make_fx(1, 2)):
        with pytest.raises(NotImplementedError):
            use()
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        import functorch.no_such


def test_the_real_one_comes_back(as_torch):
    import functorch

    from tinygrad_ext import as_torch as alias

    assert functorch.__spec__.origin.endswith("stand_ins/functorch.py")
    alias.uninstall()
    try:
        assert "stand_ins" not in str(getattr(sys.modules.get("functorch"), "__file__", ""))
        spec = importlib.util.find_spec("functorch")
        assert spec is None or "stand_ins" not in spec.origin
    finally:
        alias.install(replace=True)


def test_places_that_libraries_import_at_the_top(as_torch):
    import torch
    import torch.utils.tensorboard.writer as writer

    assert torch.GradScaler is torch.amp.GradScaler and writer.__name__.endswith("tensorboard")


def test_questions_about_what_a_transform_carries(as_torch):
    asked, x = as_torch._C._functorch, as_torch.ones(2, 3)

    def seen(x):
        bare = asked.get_unwrapped(x)
        found.append((asked.is_batchedtensor(x), asked.is_gradtrackingtensor(x), asked.maybe_get_bdim(x), bare.shape))
        return x.sum()

    found = []
    as_torch.func.vmap(seen)(x)
    as_torch.func.jvp(seen, (x,), (x,))
    assert found == [(True, False, 0, (2, 3)), (False, True, -1, (2, 3))]
    assert not asked.is_gradtrackingtensor(x) and asked.maybe_get_bdim(x) == -1
    with pytest.raises(RuntimeError, match="^No wrappers present!"):
        asked.get_unwrapped(x)
