"""Random programs hang tensors on one another: what may close a circle is always collected."""

import gc
import random
import weakref

import pytest
import untracked
from circles import Double, Sub, custom_op, leaf, thrice
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import grad
from tinygrad_ext.autograd.graph import saved_tensors_hooks


@pytest.fixture(autouse=True)
def only_by_hand():
    collect()
    gc.disable()
    with custom_op():
        gc.freeze()  # a collection looks at what the test made
        yield
        gc.unfreeze()
    gc.enable()


class Program:
    """A few tensors, and steps that link them to one another and hang them on one another."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = [leaf(), tg.nn.Parameter(tg.ones(4)), tg.ones(4), leaf() * 2]
        self.alive = []

    def any(self):
        return self.random.choice(self.tensors)

    def put(self, t):
        self.alive.append(weakref.ref(t))
        self.tensors.append(t)
        if len(self.tensors) > 8:
            del self.tensors[self.random.randrange(8)]

    def make(self):
        self.put(self.random.choice([leaf, lambda: tg.ones(4), lambda: tg.nn.Parameter(tg.ones(4))])())

    def multiply(self):
        self.put(self.any() * self.any())

    def add_number(self):
        self.put(self.any() * 1.5)

    def join(self):
        self.put(tg.cat([self.any()[:2], self.any()[2:]]))

    def view(self):
        self.put(self.any()[:].view(4))

    def write(self):
        self.any().mul_(self.any())

    def write_through_a_view(self):
        self.any()[1:3].add_(self.any()[1:3])

    def function(self):
        self.put(Double.apply(self.any()))

    def custom_op(self):
        self.put(thrice(self.any()))

    def subclass(self):
        self.put(self.any().as_subclass(self.random.choice([Sub, tg.Tensor])))

    def hook(self):
        held = self.any()
        self.any().register_hook(lambda g: held and None)

    def attribute(self):
        self.any().held = self.any()

    def metadata(self):
        node = self.any().grad_fn
        if node is not None:
            node.metadata["held"] = self.any()

    def retain(self):
        self.any().retain_grad()

    def gradient(self):
        self.any().grad = self.any()

    def no_gradient(self):
        self.any().grad = None

    def detach(self):
        self.put(self.any().detach())

    def pack(self):
        held = self.any()
        with saved_tensors_hooks(lambda t: (t, held), lambda p: p[0]):
            self.multiply()

    def backward(self):
        self.any().sum().backward(retain_graph=self.random.random() < 0.5)

    def second(self):
        t = self.any()
        self.put(grad((t * t).sum(), t, create_graph=True)[0])

    def collect(self):
        collect()

    def step(self):
        name = self.random.choice([n for n in vars(Program) if n[0] != "_" and n not in ("any", "put", "step")])
        try:
            getattr(self, name)()
        except RuntimeError:  # a leaf in place, no gradient needed, freed: refused as it should be
            pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("threshold", [1, 0])
def test_random_programs_leave_nothing_that_is_not_collected(threshold):
    was = gc.get_threshold()
    collect()
    least = tg.memory_stats()["allocated"]
    gc.set_threshold(threshold)
    gc.enable()
    try:
        for seed in range(150):
            program = Program(seed)
            for _ in range(40):
                program.step()
                assert untracked.faults() == [], seed
            alive = program.alive
            del program
            collect()
            assert not any(r() is not None for r in alive), seed
            found = tg.memory_stats()["allocated"]
            assert found <= least, seed  # what other tests have left may go meanwhile
            least = found
    finally:
        gc.set_threshold(*was)
