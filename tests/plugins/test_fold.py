"""One undeclared write is one failure; what fails for that reason alone is told under it, and nothing is hidden."""

import itertools
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import check_op

counter = itertools.count()
GRAD = {"self": lambda grad, self, **_: grad * 2}
SAME = {"shape": lambda self: tg.empty_like(self, device="meta"), "reference": lambda x: x * 2, "types": "float"}


def writes(self):
    """Twice its argument, which it changes behind autograd's back."""
    found = self.detach() * 2
    if self.device.type != "meta":
        self.detach().numpy()[...] += 1
    return found


def checked(register_temporarily, kernel, **fields):
    return check_op(register_temporarily.op("fold::f(Tensor self) -> Tensor", kernel=kernel, **{**SAME, **fields}))


def failed(report):
    return [r.check for r in report.of("failed")]


def test_an_undeclared_write_is_one_failure_that_names_what_follows(register_temporarily):
    report = checked(register_temporarily, writes, grad=GRAD)
    assert failed(report) == ["mutation"]
    (cause,) = report.of("failed")
    assert {"dtypes", "repeat", "derivative"} <= set(cause.consequences)
    assert f"for this reason alone these fail too: {', '.join(cause.consequences)}" in str(report)
    assert [r.check for r in report.results if r.follows == "mutation"] == cause.consequences
    assert (
        report.to_dict()["results"][[r.check for r in report.results].index("mutation")]["consequences"]
        == cause.consequences
    )
    assert report.exit_status == 1


def test_gradients_that_read_what_was_written_follow_too(register_temporarily):
    def squared(self):
        self *= self
        return self + 1

    def rule(grad, self, **_):
        return grad * 2 * self

    report = checked(register_temporarily, squared, grad={"self": rule}, reference=lambda x: x * x + 1, shape="kernel")
    assert failed(report) == ["mutation"], str(report)
    assert {"autograd", "derivative", "second_derivative"} <= set(report.of("failed")[0].consequences)


def test_an_op_of_custom_op_is_folded_and_is_as_before_afterwards(isolated_plugins):
    @tg.library.custom_op("fold::g", mutates_args=())
    def g(x: tg.Tensor) -> tg.Tensor:
        return writes(x)

    try:
        report = check_op(tg.ops.fold.g, only=["mutation", "repeat", "dtypes"])
        assert failed(report) == ["mutation"] and report.of("failed")[0].consequences
        assert failed(check_op(tg.ops.fold.g, only=["repeat"])) == ["repeat"]
    finally:
        tg.library.undefine("fold::g")


@pytest.mark.parametrize(
    ("check", "more"),
    [
        ("reference", {"reference": lambda x: x * 3}),
        ("shape", {"shape": lambda self: tg.empty((7,), device="meta")}),
        ("derivative", {"grad": {"self": lambda grad, self, **_: grad * 5}}),
    ],
)
def test_another_fault_of_such_an_op_is_a_failure_of_its_own(check, more, register_temporarily):
    assert set(failed(checked(register_temporarily, writes, **{"grad": GRAD, **more}))) >= {"mutation", check}


def test_an_op_that_remembers_is_not_excused_by_a_write(register_temporarily):
    def both(self):
        return writes(self) + float(next(counter))

    assert {"mutation", "repeat"} <= set(failed(checked(register_temporarily, both)))


def test_what_copies_would_hide_is_not_folded(register_temporarily):
    def own(self):
        if self.device.type != "meta":
            self.detach().numpy()[...] *= 2
        return self.detach()

    assert {"mutation", "aliasing"} <= set(failed(checked(register_temporarily, own)))


def test_without_the_check_that_names_the_write_its_consequences_are_failures(register_temporarily):
    op = register_temporarily.op("fold::f(Tensor self) -> Tensor", kernel=writes, **SAME)
    assert failed(check_op(op, only=["repeat", "dtypes"])) == ["dtypes", "repeat"]


def test_a_sound_op_passes_as_before(register_temporarily):
    assert failed(checked(register_temporarily, lambda self: self.detach() * 2)) == []


def test_the_battery_as_pytest_tests_folds_too(site, tmp_path):
    site.plugin(
        text="""
        import tinygrad_ext as tg
        from tinygrad_ext import hookimpl

        def writes(self):
            found = self.detach() * 2
            if self.device.type != "meta":
                self.detach().numpy()[...] += 1
            return found

        @hookimpl
        def tgx_register_ops(register):
            register("demo::f(Tensor self) -> Tensor", kernel=writes,
                     shape=lambda self: tg.empty_like(self, device="meta"), types="float")
        """
    )
    test = tmp_path / "test_it.py"
    test.write_text("from tinygrad_ext.testing import plugin_tests\ntest_it = plugin_tests('demo')\n")
    code = f"import sys; sys.path[:0] = [{str(site.folder)!r}]; import pytest; "
    code += f"sys.exit(pytest.main(['-q', '-rfs', '-p', 'no:cacheprovider', {str(test)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "1 failed" in done.stdout and "follows from 'mutation'" in done.stdout, done.stdout
