"""The hooks: what tinygrad_ext calls when the namespace `special` is first used."""

from tinygrad_ext import hookimpl

requires_api = ">=1,<2"


@hookimpl
def tgx_register_ops(register):
    from tgx_special import bessel, errors, gamma, integrals

    for family in (bessel, gamma, errors, integrals):
        family.register_all(register)


@hookimpl
def tgx_register_modules(register):
    from tgx_special import modules

    register("special::NormalGate", modules.NormalGate, samples=modules.gate_samples)
    register("special::VonMisesNLLLoss", modules.VonMisesNLLLoss, samples=modules.loss_samples)
