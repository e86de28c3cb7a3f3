#include "python/foreign/function_traits.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::python {
namespace {

/// Of which functions a row speaks that names them by their last word.
enum class Of : std::uint8_t {
  any,
  torch,
  numpy,
  methods,  // of tensors and of arrays
  arrays,   // methods of arrays
  functions_of_torch,
};

struct Row {
  Trait trait;
  Of of;
  std::string_view names;  // with a dot: the whole name; without: the last word of it
};

constexpr Row kTable[] = {
    // ---- how a call is treated
    {Trait::metadata, Of::any,
     "shape dtype device ndim layout is_cuda is_cpu is_meta is_mps is_xpu requires_grad is_leaf itemsize nbytes is_quantized is_sparse is_sparse_csr "
     "is_mkldnn is_nested names size stride dim ndimension numel nelement element_size is_floating_point is_complex is_contiguous is_signed get_device "
     "storage_offset is_same_size is_conj is_neg is_inference __len__ is_tensor result_type can_cast promote_types broadcast_shapes strides flags "
     "iscomplexobj isrealobj isscalar issubdtype is_distributed is_vulkan is_maia is_mtia is_ipu _version output_nr"},
    {Trait::data, Of::any,
     "item tolist __bool__ __float__ __int__ __index__ __complex__ equal allclose is_nonzero array_equal numpy __array__ data_ptr nonzero unique __repr__ "
     "__array_interface__ __array_struct__ __cuda_array_interface__ __dlpack__ ctypes __str__ __format__ __contains__ array2string tobytes "
     "untyped_storage storage __reduce_ex__ __deepcopy__"},
    {Trait::creation, Of::functions_of_torch,
     "tensor as_tensor asarray from_numpy scalar_tensor finfo iinfo empty logspace tril_indices triu_indices"},
    {Trait::same_elements, Of::methods, "contiguous clone detach cpu data alias copy resolve_conj resolve_neg"},

    {Trait::evaluated, Of::any, "torch.Tensor.backward torch.Tensor.register_hook torch.Tensor.register_post_accumulate_grad_hook"},

    // ---- what metadata it reads
    {Trait::same_for_all_sizes, Of::any,
     "dtype device ndim layout is_cuda is_cpu is_meta requires_grad is_leaf itemsize is_quantized is_sparse dim ndimension element_size is_floating_point "
     "is_complex is_contiguous is_signed get_device is_conj is_neg is_inference is_nested is_mkldnn is_xla is_mps is_xpu is_ipu is_mtia is_maia is_vulkan "
     "is_sparse_csr _is_zerotensor is_distributed is_tensor result_type can_cast promote_types iscomplexobj isrealobj isscalar issubdtype flags"},
    {Trait::asks_for_layout, Of::any, "is_contiguous flags"},

    // ---- how it reads elements
    {Trait::answers_of_known, Of::any, "item tolist __bool__ __int__ __float__ __complex__ __index__ equal allclose is_nonzero array_equal"},
    {Trait::gives_number, Of::any, "item"},

    // ---- what it writes
    // Methods of arrays, where the function of the same name gives a new array.
    {Trait::writes, Of::arrays, "sort partition resize fill put itemset setfield setflags byteswap __setitem__"},
    {Trait::writes, Of::any, "numpy.put numpy.place numpy.putmask numpy.copyto numpy.fill_diagonal numpy.put_along_axis"},
    {Trait::writes, Of::numpy, "at"},
    {Trait::writes_elements, Of::numpy, "__setitem__ at copyto fill fill_diagonal partition place put put_along_axis putmask sort"},
    {Trait::undeclared, Of::torch,
     "batch_norm native_batch_norm _batch_norm_impl_index cudnn_batch_norm miopen_batch_norm instance_norm as_strided as_strided_copy "
     "as_strided_scatter resize set_data requires_grad_ retain_grad backward _backward record_stream pin_memory _pin_memory _assert_async to_sparse to_mkldnn "
     "share_memory_ data_ptr from_file _fused_moving_avg_obs_fq_helper fused_moving_avg_obs_fake_quant _make_dual _unpack_dual _fw_primal "
     "unsafe_chunk unsafe_split unsafe_split_with_sizes _nested_tensor_from_mask fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix _lazy_clone"},

    {Trait::undeclared, Of::numpy, "fromfile memmap setbufsize getbufsize"},
    {Trait::retains_gradient, Of::any, "torch.Tensor.retain_grad"},
    {Trait::detaches_in_place, Of::any, "torch.Tensor.detach_"},
    {Trait::asks_for_gradient, Of::any, "torch.Tensor.requires_grad_"},
    // Of those that can require grad, as torch 2.13 does: each was asked by writing its operands before its gradient.
    {Trait::keeps_no_operand, Of::torch,
     "add add_ sub sub_ subtract rsub neg neg_ exp exp_ exp2 exp2_ expm1 expm1_ sqrt sqrt_ rsqrt rsqrt_ reciprocal reciprocal_ tanh tanh_ sigmoid sigmoid_ "
     "relu relu_ softmax log_softmax tan tan_ sum mean cumsum cat concat stack hstack vstack dstack column_stack where masked_fill masked_fill_ clone contiguous to float double half "
     "bfloat16 floor ceil round trunc frac sign flip fliplr flipud rot90 roll constant_pad_nd index_select embedding scatter scatter_add "
     "index_put index_fill sort topk kthvalue select_scatter slice_scatter diagonal_scatter diag_embed tril triu trace repeat tile expand expand_as "
     "broadcast_to reshape reshape_as view view_as flatten unflatten ravel squeeze unsqueeze transpose permute movedim swapaxes t select narrow split chunk unbind unfold "
     "diagonal __getitem__ pixel_shuffle pixel_unshuffle"},

    // ---- what memory it gives
    {Trait::subscripts, Of::any, "__getitem__ __setitem__ __delitem__"},
    {Trait::chosen_by_index, Of::any, "__getitem__"},
    // Of NumPy's functions those that begin with `asarray`; many others call a method of the argument instead, or give its type to the result,
    // which warns.
    {Trait::crosses, Of::any,
     "torch.Tensor.numpy torch.Tensor.__array__ torch.Tensor.__getitem__ torch.Tensor.__setitem__ torch.from_numpy torch.as_tensor torch.asarray "
     "torch.tensor numpy.asarray numpy.asanyarray numpy.ascontiguousarray numpy.ones_like numpy.zeros_like numpy.full_like numpy.concatenate "
     "numpy.stack numpy.where numpy.expand_dims numpy.einsum numpy.tensordot numpy.meshgrid numpy.sort numpy.broadcast_to numpy.vstack numpy.hstack "
     "numpy.dstack numpy.column_stack numpy.atleast_1d numpy.atleast_2d numpy.atleast_3d numpy.roll numpy.outer numpy.triu numpy.tril numpy.diag "
     "numpy.ravel numpy.append numpy.linalg.norm numpy.linalg.det numpy.linalg.vector_norm numpy.linalg.matrix_norm numpy.fft.fft numpy.fft.ifft "
     "numpy.fft.rfft numpy.fft.irfft numpy.fft.fftshift numpy.fft.ifftshift"},
    {Trait::copies, Of::any, "torch.tensor"},
    {Trait::shares_arrays, Of::any, "torch.from_numpy"},
    {Trait::dtype_by_position, Of::any, "torch.as_tensor torch.Tensor.__array__"},
    {Trait::moves, Of::any, "torch.Tensor.to"},
    {Trait::detaches, Of::any, "torch.Tensor.data torch.Tensor.detach torch.detach torch.tensor torch.Tensor.new_tensor"},
    {Trait::counts_apart, Of::any, "torch.Tensor.data"},
    {Trait::hides_base, Of::torch, "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d cov einsum inner instance_norm ravel repeat_interleave view_as_real"},
    {Trait::flattens_rows, Of::torch, "linear"},
    {Trait::keeps_order, Of::any, "numpy.ndarray.astype numpy.astype numpy.nan_to_num"},
    {Trait::gives_arguments, Of::any, "numpy.atleast_1d numpy.atleast_2d numpy.atleast_3d"},
    {Trait::asks_for_sharing, Of::any, "numpy.may_share_memory"},
    {Trait::gives_several_views, Of::torch, "unbind split split_with_sizes chunk"},
    {Trait::takes_apart_by_dimension, Of::any, "unbind"},
    {Trait::takes_apart_by_size, Of::torch, "split"},
    {Trait::takes_apart_by_count, Of::torch, "chunk tensor_split hsplit vsplit dsplit split_with_sizes"},
    {Trait::takes_apart_by_count, Of::numpy, "split array_split hsplit vsplit dsplit"},
    {Trait::splits, Of::torch, "chunk split tensor_split"},
    {Trait::splits, Of::numpy, "array_split split"},

    // ---- what lies where
    {Trait::other_strides, Of::torch, "max_unpool2d"},  // in torch 2.13; the CPU's kernel keeps the memory format of its operand
    {Trait::row_major_draws, Of::any, "torch.normal"},
    {Trait::by_places, Of::torch, "as_strided"},
    {Trait::trusts_pivots, Of::torch, "ldl_solve linalg_ldl_solve lu_solve linalg_lu_solve"},

    // ---- what it gives
    {Trait::gives_arrays, Of::numpy,
     "where full zeros ones empty isin unique zeros_like ones_like full_like empty_like array asarray copy astype ascontiguousarray asanyarray"},
    {Trait::product, Of::numpy, "matmul vecdot matvec vecmat"},
    {Trait::finds_places, Of::any, "nonzero where"},
    {Trait::finds_distinct, Of::any, "unique unique_consecutive"},
    {Trait::finds_elements, Of::any,
     "numpy.bincount numpy.compress numpy.ndarray.compress numpy.extract numpy.union1d numpy.setdiff1d numpy.intersect1d numpy.setxor1d torch.bincount "
     "torch.Tensor.bincount torch.repeat_interleave torch.Tensor.repeat_interleave"},
    {Trait::bins_by_name, Of::numpy, "histogram histogram2d histogramdd histogram_bin_edges"},
    {Trait::draws_between, Of::any, "torch.randint"},
    {Trait::gives_by_rank, Of::any, "lstsq linalg_lstsq matrix_rank"},

    // ---- what NumPy computes
    {Trait::computes, Of::numpy,
     "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift norm svd svdvals qr cholesky solve inv det slogdet "
     "matrix_rank eigh eigvalsh matrix_power pinv multi_dot tensorsolve tensorinv matrix_norm vector_norm einsum convolve correlate interp gradient "
     "percentile quantile median nanpercentile nanquantile nanmedian nanmean nanstd nanvar nansum nanprod nanmax nanmin nancumsum nancumprod average cov "
     "corrcoef digitize searchsorted kron outer inner vdot tensordot cross polyval trapezoid vander sinc i0 unwrap angle real imag "
     "nan_to_num sort argsort partition argpartition lexsort isin roll rot90 flip fliplr flipud tile diff ediff1d cumsum cumprod cumulative_sum "
     "cumulative_prod ptp trace diagonal diag diagflat tril triu block bmat choose select piecewise apply_over_axes round around fix clip packbits "
     "unpackbits broadcast_arrays meshgrid conj conjugate reduce accumulate reduceat histogram histogram2d histogramdd histogram_bin_edges polyfit "
     "polyadd polysub polyder polyint cond lstsq heaviside unravel_index fftfreq rfftfreq vecdot matvec vecmat sort_complex pad insert iscomplex isreal "
     "isneginf isposinf float64 float32 int64 bool"},
    // Where the catalogue refuses these, eager execution warns, or gives what depends on elements, for all but complex numbers.
    {Trait::computes_complex, Of::numpy,
     "copy reshape ravel flatten transpose swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to atleast_1d atleast_2d atleast_3d T mT view take "
     "take_along_axis repeat concatenate stack hstack vstack dstack column_stack append split array_split hsplit vsplit dsplit where zeros_like ones_like "
     "full_like empty_like ascontiguousarray array resize sum prod mean std var max min amax amin argmax argmin any all count_nonzero nanargmax nanargmin "
     "dot matmul isclose permute_dims matrix_transpose unstack"},
    {Trait::strong_operands, Of::arrays, "dot"},
    {Trait::weak_operands, Of::numpy, "where"},
    {Trait::weak_behind_first, Of::numpy, "clip"},
    // Numbers beside tensors of half precision, as torch 2.13's kernels of the CPU take them: each was compared bit by bit.
    {Trait::rounds_numbers, Of::torch,
     "add add_ __add__ __radd__ __iadd__ sub sub_ subtract subtract_ rsub __sub__ __rsub__ __isub__ lt le gt ge eq ne less less_equal greater greater_equal "
     "not_equal __lt__ __le__ __gt__ __ge__ __eq__ __ne__ where clamp clamp_ clip clip_ __rpow__ remainder remainder_ __mod__ __imod__ __rmod__ fmod fmod_ "
     "masked_fill masked_fill_ fill_ full_like index_fill index_fill_"},
    {Trait::numbers_in_float32, Of::torch,
     "mul mul_ multiply multiply_ __mul__ __rmul__ __imul__ div div_ divide divide_ true_divide true_divide_ __truediv__ __itruediv__ __rtruediv__ __rdiv__ "
     "__floordiv__ __ifloordiv__ floor_divide floor_divide_ addcmul addcmul_ addcdiv addcdiv_ lerp lerp_"},

    // ---- what depends on the state of the program
    {Trait::random_by_dropout, Of::torch, "scaled_dot_product_attention"},
    {Trait::random_in_training, Of::torch, "lstm gru rnn_tanh rnn_relu"},
    {Trait::has_gradient_in_python, Of::functions_of_torch,
     "dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout feature_alpha_dropout_ rrelu "
     "scaled_dot_product_attention lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _weight_norm norm_except_dim"},
    {Trait::draws_by_kernels, Of::functions_of_torch, "rand rand_like dropout native_dropout"},
    {Trait::counts_draws, Of::any, "tenon.philox_draw.default"},
    {Trait::draws_of_no_slope, Of::torch, "bernoulli normal poisson"},
    {Trait::takes_probability, Of::torch, "bernoulli"},
    {Trait::minds_determinism, Of::torch,
     "empty empty_like empty_strided empty_permuted new_empty new_empty_strided put put_ max_unpool2d max_unpool3d"},
    {Trait::minds_layout, Of::any, "torch.searchsorted torch.bucketize"},
    {Trait::drops_in_training, Of::torch,
     "dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout feature_alpha_dropout_ native_dropout _fused_dropout"},

    // ---- what it warns of
    {Trait::warns_itself, Of::any, "numpy.nanmax numpy.nanmin"},
    {Trait::warns_of_placed_output, Of::any, "numpy.maximum numpy.minimum"},
    {Trait::warns_of_swapped_arguments, Of::any, "torch.nn.functional.embedding_bag"},
};

bool speaks_of(Of of, std::string_view name, ops::Flavour flavour) {
  const bool torch = flavour == ops::Flavour::torch;
  const bool of_tensors = name.starts_with("torch.Tensor."), of_arrays = name.starts_with("numpy.ndarray.");
  switch (of) {
    case Of::any: return true;
    case Of::torch: return torch;
    case Of::numpy: return !torch;
    case Of::methods: return of_tensors || of_arrays;
    case Of::arrays: return of_arrays;
    case Of::functions_of_torch: return torch && !of_tensors;
  }
  return false;
}

using Rows = std::unordered_map<std::string_view, std::vector<const Row*>>;

/// The rows by the names in them.
Rows rows_by_name() {
  Rows rows;
  for (const Row& row : kTable)
    for (std::string_view rest = row.names; !rest.empty();) {
      const std::size_t end = rest.find(' ');
      rows[rest.substr(0, end)].push_back(&row);
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
  return rows;
}

}  // namespace

FunctionTraits traits_of(std::string_view name, ops::Flavour flavour) {
  static const auto* const rows = new Rows(rows_by_name());
  FunctionTraits traits;
  for (std::string_view key : {name, name.substr(name.rfind('.') + 1)})
    if (const auto found = rows->find(key); found != rows->end())
      for (const Row* row : found->second)
        if (speaks_of(row->of, name, flavour)) traits.add(row->trait);
  if (!name.starts_with("aten.")) return traits;
  // An overload ends with its own name. What is not safe to call again of the function is not of its overloads.
  const std::string_view overload = name.substr(sizeof "aten." - 1);
  if (const auto found = rows->find(overload.substr(0, overload.find('.'))); found != rows->end())
    for (const Row* row : found->second)
      if (row->of != Of::numpy && (row->trait == Trait::undeclared || row->trait == Trait::other_strides)) traits.add(row->trait);
  return traits;
}

}  // namespace tenon::python
