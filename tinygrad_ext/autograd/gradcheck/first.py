"""gradcheck: the first derivative."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
    names=None,
    kwargs=None,
    seed=0,
    time_limit=None,
    max_columns=None,
    return_result=False,
):
    """Compare the gradients that `func` gives with central differences.

    Arguments:
        func: function of `inputs` that returns a tensor, or tuples, lists and dicts of tensors.
        inputs: a tensor, or a tuple of arguments; every floating or complex tensor in it that requires grad is
            checked, also inside lists and dicts. They should be float64 or complex128.
        eps: step of the differences. atol, rtol: |numerical - analytical| <= atol + rtol * |numerical| is right.
        raise_exception: raise GradcheckError for a wrong gradient; else return False.
        nondet_tol: how far two passes of backward may differ.
        check_undefined_grad: check that backward takes a missing gradient for zeros.
        check_grad_dtypes: accepted; the engine gives every gradient the dtype of its tensor.
        check_batched_grad: check that several passes of backward in one, by vmap, give what they give one by one.
        check_backward_ad, check_forward_ad: which of the two modes to check; at least one.
        check_batched_forward_grad: check_batched_grad for forward mode.
        fast_mode: compare random sums of the Jacobian instead of its entries; the number of calls does not depend on
            sizes. The result tells how small an error may go unseen.
        masked: with True, gradients near zero are good enough where exact zeros are expected.
        names: a name for each input, for messages (default: those of func's signature).
        kwargs: keyword arguments for func; tensors among them are checked too.
        seed: of the random numbers used here; the user's random stream is left alone.
        time_limit: seconds, roughly; when all entries would take longer, sums and a sample of entries are compared.
        max_columns: compare at most so many elements of each input and output, and sums for the rest.
        return_result: return a GradcheckResult (true when all is right) instead of a bool or an exception.

    Returns True. Raises GradcheckError at a wrong gradient, ValueError when no input requires grad, RuntimeError for
    an input whose elements share memory, and AssertionError when func's outputs change their shape or dtype.

    Example::

        x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        assert gradcheck(lambda x: x.sin() * x, (x,))
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    # lazy: `autograd` shows gradcheck, and what it runs on is for who checks
    from tinygrad_ext.autograd.gradcheck.check import Options, run
    from tinygrad_ext.autograd.gradcheck.places import by_values
    from tinygrad_ext.autograd.gradcheck.subject import Subject, as_tuple

    subject = Subject(*by_values(func, as_tuple(inputs), masked), kwargs, names)
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
        check_forward_ad,
        check_batched_forward_grad,
        check_backward_ad,
    )
    return run(subject, options, raise_exception, return_result)
