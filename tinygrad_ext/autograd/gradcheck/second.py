"""gradgradcheck: the second derivative, as the first derivative of a function that returns gradients."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
    names=None,
    kwargs=None,
    seed=0,
    time_limit=None,
    max_columns=None,
    return_result=False,
):
    """Compare the gradients of the gradients that `func` gives with central differences of its gradients.

    Arguments as for `gradcheck`, and:
        grad_outputs: a gradient for each output that requires grad; derivatives by those that require grad are
            checked too. By default random ones between -1 and 1.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        check_rev_over_rev, check_fwd_over_rev: differentiate the gradients by backward, by forward mode; at least one.

    Returns and raises as `gradcheck`.

    Example::

        x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        assert gradgradcheck(lambda x: x.sin() * x, (x,))
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    import numpy as np

    # lazy: `autograd` shows gradcheck, and what it runs on is for who checks
    from tinygrad_ext.autograd.gradcheck.check import Options, run
    from tinygrad_ext.autograd.gradcheck.gradients import Gradients, random_gradient
    from tinygrad_ext.autograd.gradcheck.places import by_values
    from tinygrad_ext.autograd.gradcheck.subject import Subject, as_tuple

    first = Subject(*by_values(func, as_tuple(inputs), masked), kwargs, names)
    if grad_outputs is None:
        rng = np.random.default_rng(seed)
        drawn = [random_gradient(t, rng, gen_non_contig_grad_outputs) for t in first.differentiable()]
    else:
        drawn = as_tuple(grad_outputs)
    options = Options(
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_batched_grad,
        fast_mode,
        masked,
        seed,
        time_limit,
        max_columns,
        forward=check_fwd_over_rev,
        backward=check_rev_over_rev,
    )
    # without a differentiable output there is nothing but a graph that may have been cut, which the first check sees
    return run(Gradients(first, drawn) if drawn else first, options, raise_exception, return_result)
