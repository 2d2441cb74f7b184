"""Entries of the OpInfo database that do not pass fully yet, with the reason.

Those of `GAPS` are refused with an error that says so; those of `WRONG` may give wrong numbers. The
sweep fails when an entry that passes is listed here, or one that fails is not.
"""

_ITERATIVE = "singular and eigenvalue decompositions are refused, and all that needs them"
_FACTORS = "LU, LDL and QR factors in LAPACK's form have no lowering"
_EXPORT = "torch.export itself refuses it: it looks at a tensor's value"
_NO_LOWERING = "no lowering, and none in PyTorch's decompositions"

GAPS = {
    "_segment_reduce.lengths": _NO_LOWERING,
    "_segment_reduce.offsets": _NO_LOWERING,
    "as_strided.partial_views": "reads memory outside the tensor that the model is given",
    "corrcoef": _EXPORT,
    "cov": _EXPORT,
    "geqrf": _FACTORS,
    "hash_tensor": _NO_LOWERING,
    "histogramdd": _NO_LOWERING,
    "igamma": _NO_LOWERING,
    "igammac": _NO_LOWERING,
    "linalg.cond": _ITERATIVE,
    "linalg.eig": _ITERATIVE,
    "linalg.eigh": _ITERATIVE,
    "linalg.eigvals": _ITERATIVE,
    "linalg.eigvalsh": _ITERATIVE,
    "linalg.householder_product": _FACTORS,
    "linalg.ldl_factor": _FACTORS,
    "linalg.ldl_factor_ex": _FACTORS,
    "linalg.ldl_solve": _FACTORS,
    "linalg.lu": _FACTORS,
    "linalg.lu_factor": _FACTORS,
    "linalg.lu_factor_ex": _FACTORS,
    "linalg.lu_solve": _FACTORS,
    "linalg.matrix_norm": _ITERATIVE,
    "linalg.matrix_rank": _ITERATIVE,
    "linalg.matrix_rank.hermitian": _ITERATIVE,
    "linalg.matrix_sqrth": _ITERATIVE,
    "linalg.norm.subgradients_at_zero": _ITERATIVE,
    "linalg.pinv": _ITERATIVE,
    "linalg.pinv.hermitian": _ITERATIVE,
    "linalg.pinv.singular": _ITERATIVE,
    "linalg.polar": _ITERATIVE,
    "linalg.svd": _ITERATIVE,
    "linalg.svdvals": _ITERATIVE,
    "lu": _FACTORS,
    "lu_solve": _FACTORS,
    "lu_unpack": _FACTORS,
    "narrow": _EXPORT,
    "native_batch_norm": "in training it updates its statistics: call .eval() first",
    "nn.functional.ctc_loss": _EXPORT,
    "nn.functional.fractional_max_pool2d": _NO_LOWERING,
    "nn.functional.fractional_max_pool3d": _NO_LOWERING,
    "nn.functional.gaussian_nll_loss": _EXPORT,
    "nn.functional.linear_cross_entropy.chunked": "an op that only trains",
    "nn.functional.linear_cross_entropy.chunked_none": "an op that only trains",
    "nn.functional.scaled_dot_product_attention": "dropout inside attention is refused",
    "norm.nuc": _ITERATIVE,
    "ormqr": _FACTORS,
    "pca_lowrank": _ITERATIVE,
    "pinverse": _ITERATIVE,
    "svd": _ITERATIVE,
    "svd_lowrank": _ITERATIVE,
    "tensor_split": _EXPORT,
}

_NAN = "LiteRT's maxima and minima drop NaN; to look for it would cost more than the op"

WRONG = {
    "masked.amax": _NAN,
    "masked.amin": _NAN,
    "masked.argmax": _NAN,
    "masked.argmin": _NAN,
    "masked.logsumexp": _NAN,
}
