"""The functions of the array API standard (2024.12) and the family of samples of each, by NumPy's name."""
from __future__ import annotations

_OF_FAMILY = {
    "unary": (
        "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log1p log2 log10 "
        "logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc "
        "__abs__ __invert__ __neg__ __pos__"
    ),
    "binary": (
        "add atan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp "
        "logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal remainder subtract "
        "__add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lt__ __mod__ __mul__ __ne__ __or__ __sub__ __truediv__ __xor__"
    ),
    "power": "pow __pow__",
    "shift": "bitwise_left_shift bitwise_right_shift __lshift__ __rshift__",
    "in_place": "__iadd__ __iand__ __ifloordiv__ __imod__ __imul__ __ior__ __ipow__ __isub__ __itruediv__ __ixor__",
    "in_place_shift": "__ilshift__ __irshift__",
    "reduction": "all any count_nonzero max mean min prod std sum var",
    "argument": "argmax argmin",
    "scan": "cumulative_prod cumulative_sum",
    "product": "matmul vecdot __matmul__ linalg.matmul linalg.vecdot",
    "attribute": "array.dtype array.mT array.ndim array.shape array.size array.T array.device array.real array.imag",
}
_OWN = (
    "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like "
    "astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type clip "
    "take take_along_axis matrix_transpose tensordot concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack "
    "nonzero searchsorted where unique_all unique_counts unique_inverse unique_values isin argsort sort diff __getitem__ __setitem__ "
    "linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.matrix_norm linalg.matrix_power "
    "linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals "
    "linalg.tensordot linalg.trace linalg.vector_norm "
    "fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift"
)
_SAME_AS = {"linalg.matrix_transpose": "matrix_transpose", "linalg.tensordot": "tensordot", "fft.ifftshift": "fft.fftshift"}
_FFT = {"fft.fft": "transform", "fft.ifft": "transform", "fft.rfft": "transform", "fft.irfft": "transform", "fft.hfft": "transform", "fft.ihfft": "transform"}
_FFTN = {name: "transform_all" for name in ("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn")}
_FREQUENCIES = {"fft.fftfreq": "frequencies", "fft.rfftfreq": "frequencies"}
_SQUARE = {name: "square_matrix" for name in ("linalg.cholesky", "linalg.det", "linalg.eigh", "linalg.eigvalsh", "linalg.inv", "linalg.slogdet")}
_MATRIX = {name: "matrix" for name in ("linalg.matrix_rank", "linalg.pinv", "linalg.qr", "linalg.svd", "linalg.svdvals")}

FUNCTIONS: dict[str, str] = {
    **{name: family for family, names in _OF_FAMILY.items() for name in names.split()},
    **{name: name for name in _OWN.split()},
    **_SAME_AS, **_FFT, **_FFTN, **_FREQUENCIES, **_SQUARE, **_MATRIX,
}
