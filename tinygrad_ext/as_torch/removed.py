"""Functions that PyTorch has taken back and answers with an error."""

_INSTEAD = {
    "eig": "linalg.eig(A) and linalg.eigvals(A), whose results are complex",
    "lstsq": "linalg.lstsq(A, B), which takes the matrix first and tells the residuals apart",
    "matrix_rank": "linalg.matrix_rank(A), whose 'hermitian' is what 'symmetric' was",
    "solve": "linalg.solve(A, B), which takes the matrix first; lu_factor gives the factors",
    "symeig": "linalg.eigh(A) and linalg.eigvalsh(A), which read the lower triangle unless UPLO='U' says otherwise",
}


def _removed(name):
    def removed(*args, **kwargs):
        raise RuntimeError(
            f"torch.{name}: This function was deprecated since version 1.9 and is now removed. Use {_INSTEAD[name]}"
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Refused with RuntimeError; there is {_INSTEAD[name]}."
    return removed


eig, lstsq, matrix_rank, solve, symeig = map(_removed, _INSTEAD)
