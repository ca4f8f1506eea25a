"""Does an nn module behave as models expect: made by name, saved, copied, trained."""

import copy
import functools
import inspect
import pickle

import tinygrad_ext as tg
from tinygrad_ext import nn, registry
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.ops.samples import Maker, Sample
from tinygrad_ext.testing import compare
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.check import MODULE_CHECKS, check
from tinygrad_ext.testing.battery.result import NotApplicable


class ModuleSubject:
    """A registered module class, made and called with its samples.

    Attributes: cls, name ("vision::RoIAlign"), owner, kind ("module"), problem (the exception of the samples, or of all
    attempts with made up ones).
    """

    kind, arguments = "module", ()

    def __init__(self, name):
        self.name, self.problem = name, None
        self.cls = registry.modules[name]
        self.owner = registry.module_owners[self.cls][1]
        self.made_up = name not in registry.module_samples

    def cases(self, check):
        """The cases of a check, smallest first."""
        return sorted((Case(s, "float32") for s in self._samples(check.requires_grad)), key=lambda c: c.size)

    def _samples(self, requires_grad):
        make = Maker(tg.float32, requires_grad=requires_grad)
        try:
            if not self.made_up:
                return self._given(make)
            return [s for s in _guessed(self.cls, make) if s.args[0].shape in self._usable]
        except (Exception, SystemExit) as error:
            self.problem = error
            return []

    def _given(self, make):
        found = list(registry.module_samples[self.name](make))
        if wrong := [s for s in found if not isinstance(s, Sample)]:
            raise TypeError(f"{self.name}: samples= must yield ops.samples.Sample(...), not {wrong[0]!r}")
        return found

    @functools.cached_property
    def _usable(self):
        """Shapes of the guessed inputs that the module takes."""
        usable = set()
        for sample in _guessed(self.cls, Maker(tg.float32)):
            try:
                self.make(sample)(*sample.args)
                usable.add(sample.args[0].shape)
            except (Exception, SystemExit) as error:
                self.problem = error
        return usable

    def why_not(self, check):
        """No module is excused from a check."""
        return None

    def make(self, sample, seed=0):
        """The module of a sample."""
        tg.manual_seed(seed)
        return nn.create(self.name, **sample.kwargs)

    def text(self, case):
        """A case as a call that can be pasted."""
        config = Case(Sample(**case.sample.kwargs), "").text(f'tg.nn.create("{self.name}", ')
        made = config.replace('("' + self.name + '", (', f'("{self.name}", ').replace('", )', '")')
        return Case(Sample(*case.sample.args), "").text(made)


def _guessed(cls, make):
    """Inputs of a few shapes for a module that is made without arguments."""
    required = [p for p in list(inspect.signature(cls.forward).parameters.values())[1:] if p.default is p.empty]
    number = sum(p.kind <= p.POSITIONAL_OR_KEYWORD for p in required) or 1
    for shape in ((2, 3), (3,), (1, 2, 4, 4), ()):
        yield Sample(*(make(*shape) for _ in range(number)))


def _call(module, sample, seed=0):
    """Results of the module that are tensors."""
    tg.manual_seed(seed)
    return [r for r in compare.flatten(module(*sample.args)) if isinstance(r, tg.Tensor)]


@check(MODULE_CHECKS, "samples", each="subject")
def samples(subject):
    """There are configurations and inputs to check it with."""
    if subject.cases(MODULE_CHECKS["forward"]):
        return (
            "made without arguments, called with plain tensors; samples= gives better ones" if subject.made_up else None
        )
    because = f": {type(subject.problem).__name__}: {subject.problem}" if subject.problem else ""
    if subject.made_up:
        raise AssertionError(
            f"no samples: add register('{subject.name}', {subject.cls.__name__}, samples=...); it could not be made "
            f"without arguments and called with plain tensors{because}"
        )
    raise AssertionError(f"samples= gives none{because}")


@check(MODULE_CHECKS, "forward", requires_grad=False)
def forward(subject, sample, dtype):
    """nn.create makes it, its forward runs, leaves its inputs alone and repeats itself in eval mode."""
    module = subject.make(sample)
    if not isinstance(module, subject.cls):
        raise AssertionError(f"nn.create gives a {type(module).__name__}")
    before = Case(sample, dtype).fresh()
    _call(module, sample)
    for i, (now, was) in enumerate(zip(Case(sample, "").tensors, Case(before, "").tensors)):
        if not compare.same_bits(now, was):
            raise AssertionError(f"forward changes its input {i}; work on a copy")
    module.eval()
    one, two = _call(module, sample), _call(module, sample)
    if not compare.same_bits(one, two):
        raise AssertionError(f"in eval mode the second call gives {two}, the first {one}")


@check(MODULE_CHECKS, "state_dict")
def state_dict(subject, sample, dtype):
    """Its state dict names its owner, and is all that another instance needs to compute the same."""
    first, second = subject.make(sample).eval(), subject.make(sample, seed=1).eval()
    state = first.state_dict()
    metadata = state._metadata[""]
    if subject.owner != BUILTIN:
        expected = {"module": subject.name, "owner": str(subject.owner)}
        got = {k: metadata.get(k) for k in expected}
        if got != expected:
            raise AssertionError(f"the state dict's metadata says {got}, expected {expected}")
    second.load_state_dict(state)
    one, two = _call(first, sample), _call(second, sample)
    if not compare.same_bits(one, two):
        raise AssertionError(
            f"with the state dict of the first, a second module gives {two}, the first {one}: what forward uses must "
            "be a parameter, a buffer or an argument of the class"
        )


@check(MODULE_CHECKS, "deepcopy")
def deepcopy(subject, sample, dtype):
    """A deep copy computes the same and shares no parameter or buffer."""
    module = subject.make(sample).eval()
    twin = copy.deepcopy(module)
    _same_module(module, twin, sample, "a deep copy")
    own = {id(t): name for name, t in _state(module)}
    shared = [own[id(t)] for _, t in _state(twin) if id(t) in own]
    if shared:
        raise AssertionError(f"a deep copy shares {', '.join(shared)} with the original")


def _state(module):
    return [*module.named_parameters(), *module.named_buffers()]


@check(MODULE_CHECKS, "pickle")
def pickling(subject, sample, dtype):
    """It survives pickle."""
    module = subject.make(sample).eval()
    _same_module(module, pickle.loads(pickle.dumps(module)), sample, "what pickle gives back")


def _same_module(module, twin, sample, what):
    if type(twin) is not type(module):
        raise AssertionError(f"{what} is a {type(twin).__name__}")
    names, others = [n for n, _ in _state(module)], [n for n, _ in _state(twin)]
    if names != others:
        raise AssertionError(f"{what} has the parameters and buffers {others}, the original {names}")
    one, two = _call(module, sample), _call(twin, sample)
    if not compare.same_bits(one, two):
        raise AssertionError(f"{what} computes {two}, the original {one}")


@check(MODULE_CHECKS, "train_eval")
def train_eval(subject, sample, dtype):
    """train() and eval() return the module and set `training` on it and all its children."""
    module = subject.make(sample)
    if not module.training:
        raise AssertionError("a new module must be in training mode")
    for mode in (False, True):
        name = "train()" if mode else "eval()"
        if (module.train() if mode else module.eval()) is not module:
            raise AssertionError(f"{name} does not return the module")
        wrong = [path or "the module" for path, m in module.named_modules() if m.training is not mode]
        if wrong:
            raise AssertionError(f"after {name}, {', '.join(wrong)} has training={not mode}")
        _call(module, sample)


@check(MODULE_CHECKS, "gradients", requires_grad=True)
def gradients(subject, sample, dtype):
    """Gradients reach every parameter that requires them, or an input when it has no parameter."""
    module = subject.make(sample)
    wanted = {name: p for name, p in module.named_parameters() if p.requires_grad}
    enough = len(wanted) or 1
    if not wanted:
        wanted = {f"input {i}": t for i, t in enumerate(Case(sample, "").tensors) if t.requires_grad}
    outs = [r for r in _call(module, sample) if r.is_floating_point()]
    if not wanted or not outs or not any(r.numel() for r in outs):
        raise NotApplicable("it has nothing to differentiate")
    names = ", ".join(wanted)
    if not any(r.requires_grad for r in outs):
        raise AssertionError(f"the result does not require grad, so nothing reaches {names}")
    found = tg.autograd.grad(
        [r for r in outs if r.requires_grad],
        list(wanted.values()),
        [tg.ones_like(r) for r in outs if r.requires_grad],
        allow_unused=True,
    )
    missing = [name for name, g in zip(wanted, found) if g is None]
    if len(wanted) - len(missing) < enough:
        raise AssertionError(f"no gradient reaches {', '.join(missing)}")


@check(MODULE_CHECKS, "derivative", requires_grad=True)
def derivative(subject, sample, dtype):
    """In eval mode, gradients of its floating inputs equal finite differences."""
    module = subject.make(sample).double().eval()
    sample = mapped(sample, _wide)
    inputs = [t for t in Case(sample, "").tensors if t.requires_grad]
    if not any(r.requires_grad for r in _call(module, sample)) or not inputs:
        raise NotApplicable("no input of it takes a gradient")

    def run(*tensors):
        fresh = iter(tensors)
        found = _call(module, mapped(sample, lambda t: next(fresh) if t.requires_grad else t))
        return tuple(r for r in found if r.is_floating_point())

    try:
        tg.autograd.gradcheck(run, tuple(inputs), check_undefined_grad=False)
    except tg.autograd.GradcheckError as error:
        raise AssertionError(str(error)) from error


def _wide(t):
    """In float64, requiring grad as before."""
    return t.detach().double().requires_grad_(t.requires_grad) if t.is_floating_point() else t


@check(MODULE_CHECKS, "double")
def double(subject, sample, dtype):
    """After .double() it takes and gives float64."""
    module = subject.make(sample).double().eval()
    for was, now in zip(_call(subject.make(sample).eval(), sample), _call(module, mapped(sample, _wide))):
        expected = tg.float64 if was.dtype == tg.float32 else was.dtype
        if now.dtype != expected:
            raise AssertionError(f"gives {now.dtype} for float64 inputs, expected {expected}")


@check(MODULE_CHECKS, "repr")
def representation(subject, sample, dtype):
    """repr() names the class."""
    text = repr(subject.make(sample))
    if subject.cls.__name__ not in text:
        raise AssertionError(f"repr() is {text!r}, which does not name {subject.cls.__name__}")
