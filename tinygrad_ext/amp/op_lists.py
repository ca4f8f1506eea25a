"""Which operations autocast converts the arguments of, by the name of the op without namespace and overload.

PyTorch's lists for the cpu, as far as the ops are here. What stands in none takes its arguments as they come.
"""


def _names(words):
    return frozenset(words.split())


LOWER = _names(  # matrix products and convolutions gain most, and sum in float32 inside
    """addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    convolution linalg_vecdot linear matmul mm prelu scaled_dot_product_attention tensordot vecdot _elman_steps
    _lstm_steps"""
)

FLOAT32 = _names(  # sums of many terms, powers and logarithms that leave the range of a half
    """adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist
    cholesky cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy cross_entropy_loss ctc_loss fft_fft
    fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft
    fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d
    grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex
    linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv
    linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv
    linalg_tensorsolve lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss multi_margin_loss
    multilabel_margin_loss nanquantile nll_loss nll_loss2d orgqr ormqr pinverse poisson_nll_loss polar prod qr
    quantile reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d smooth_l1_loss
    soft_margin_loss stft svd trace triangular_solve triplet_margin_loss view_as_complex"""
)

WIDEST = _names("cat index_copy stack _gru_steps")  # what takes tensors of one dtype
