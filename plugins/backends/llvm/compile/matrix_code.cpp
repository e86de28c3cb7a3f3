#include "matrix_code.h"

#include <fmt/format.h>
#include <llvm/IR/GlobalAlias.h>

#include <initializer_list>
#include <string>

#include "matrix/amx_kernel.h"
#include "tenon/profiling.h"

namespace tenon::llvm_backend {

namespace {

std::vector<std::string> names_of(DType dtype, std::initializer_list<const char*> functions) {
  std::vector<std::string> names;
  for (const char* what : functions) names.push_back(fmt::format("{}_{}", what, name_of(dtype)));
  return names;
}

/// The functions of a part, in the order in which `fill` emits and `kernel` takes them.
std::vector<std::string> names_of(const Target& target, DType dtype, MatrixPart part) {
  switch (part) {
    case MatrixPart::panels:
      if (has_tile_registers(target, dtype)) return names_of(dtype, {"fetching_matrix", "plain_matrix", "fetching_narrow", "transposition", "pairing", "enter", "leave"});
      if (is_reduced_float(dtype)) return names_of(dtype, {"fetching_matrix", "plain_matrix", "fetching_narrow", "transposition", "pairing"});
      return names_of(dtype, {"fetching_matrix", "plain_matrix", "fetching_narrow", "transposition"});
    case MatrixPart::few_rows: return names_of(dtype, {"dot", "streaming_matrix"});
    case MatrixPart::windows:
      if (is_reduced_float(dtype)) return names_of(dtype, {"matrix", "narrow_matrix", "fetching_streaming"});
      return names_of(dtype, {"matrix", "narrow_matrix", "fetching_streaming", "winograd_input", "winograd_weights", "winograd_output"});
    case MatrixPart::few_columns: return names_of(dtype, {"window_dots"});
    case MatrixPart::large_squares: return names_of(dtype, {"large_winograd_input", "large_winograd_weights", "large_winograd_output"});
    case MatrixPart::one_row: return names_of(dtype, {"dot_row", "row_matrix", "row_of_columns"});
    case MatrixPart::runs: return names_of(dtype, {"outer", "outer_columns", "outer_narrow"});
    case MatrixPart::square_sums: return names_of(dtype, {"winograd_sum_input", "winograd_sum_results", "winograd_sum_taps"});
    case MatrixPart::rows_of_f16: return names_of(dtype, {"dot_of_f16"});
    case MatrixPart::rows_of_bf16: return names_of(dtype, {"dot_of_bf16"});
  }
  return {};
}

/// The functions of a transformation, which are the three from `first` on.
WinogradCode winograd_code(void* const* first) {
  return {reinterpret_cast<WinogradInput>(first[0]), reinterpret_cast<WinogradWeights>(first[1]), reinterpret_cast<WinogradOutput>(first[2])};
}

}  // namespace

MatrixKernel MatrixCode::shapes(DType dtype) const {
  MatrixKernel kernel;
  kernel.tile = tile_shape(jit_.target(), dtype), kernel.narrow_tile = narrow_tile_shape(jit_.target(), dtype);
  kernel.streaming_tile = streaming_tile_shape(jit_.target(), dtype), kernel.row_tile = row_tile_shape(jit_.target(), dtype);
  if (has_tile_registers(jit_.target(), dtype)) kernel.sum_step = kAmxPairs;
  kernel.transposed_rows = transposed_rows(jit_.target(), compute_type(dtype));
  kernel.dot_tile = dot_shape(jit_.target()), kernel.dot_row_tile = dot_row_shape();
  kernel.dtype = dtype, kernel.has_avx2_vectors = jit_.target().vector_bytes == 32;
  return kernel;
}

void MatrixCode::fill(llvm::Module& module, DType dtype, MatrixPart part, const std::vector<std::string>& names) const {
  const Target& target = jit_.target();
  const MatrixKernel tiles = shapes(dtype);
  const auto emit = [&](const TileShape& tile, const std::string& name, Fetches fetches) { emit_microkernel(module, target, dtype, tile, name, fetches); };
  // Few rows multiply b where it lies.
  const auto emit_in_place = [&](const TileShape& tile, const std::string& name, Reads reads) {
    emit_microkernel(module, target, dtype, tile, name, Fetches::nothing, reads, is_reduced_float(dtype) ? Pairs::in_rows : Pairs::packed);
  };
  switch (part) {
    case MatrixPart::panels:
      if (has_tile_registers(target, dtype)) {
        auto* function = emit_amx_kernel(module, target, names[0]);
        for (const std::string& other : {names[1], names[2]}) llvm::GlobalAlias::create(other, function);
        emit_amx_use(module, target, names[5], names[6]);
      } else {
        emit(tiles.tile, names[0], Fetches::ahead);
        emit(tiles.tile, names[1], Fetches::nothing);
        emit(tiles.narrow_tile, names[2], Fetches::ahead);
      }
      if (is_reduced_float(dtype)) emit_pairing(module, target, names[4]);
      return emit_transposition(module, target, compute_type(dtype), names[3]);
    case MatrixPart::few_rows:
      emit_dot_kernel(module, target, dtype, tiles.dot_tile, names[0]);
      return emit_in_place(tiles.streaming_tile, names[1], Reads::whole_rows);
    case MatrixPart::windows:
      emit(tiles.tile, names[0], Fetches::own_rows);
      emit(tiles.narrow_tile, names[1], Fetches::own_rows);
      emit(tiles.streaming_tile, names[2], Fetches::far_ahead);
      if (names.size() > 3) emit_winograd(module, target, dtype, kSmallSquare, names[3], names[4], names[5]);
      return;
    case MatrixPart::few_columns: return emit_window_dots(module, target, dtype, tiles.dot_tile, names[0]);
    case MatrixPart::large_squares: return emit_winograd(module, target, dtype, kLargeSquare, names[0], names[1], names[2]);
    case MatrixPart::one_row:
      emit_dot_kernel(module, target, dtype, tiles.dot_row_tile, names[0]);
      emit_in_place(tiles.row_tile, names[1], Reads::whole_rows);
      return emit_in_place({1, tiles.streaming_tile.columns}, names[2], Reads::columns);
    case MatrixPart::runs:
      emit_outer_kernel(module, target, dtype, tiles.tile, names[0], Reads::whole_rows);
      emit_outer_kernel(module, target, dtype, tiles.streaming_tile, names[1], Reads::columns);  // masks take registers
      return emit_outer_kernel(module, target, dtype, tiles.narrow_tile, names[2], Reads::columns);
    case MatrixPart::square_sums: return emit_winograd_sum(module, target, dtype, names[0], names[1], names[2]);
    case MatrixPart::rows_of_f16: return emit_dot_kernel(module, target, dtype, tiles.dot_tile, names[0], DType::f16);
    case MatrixPart::rows_of_bf16: return emit_dot_kernel(module, target, dtype, tiles.dot_tile, names[0], DType::bf16);
  }
}

namespace {

void tell_profilers(const HostServices& host, const std::vector<std::string>& names, const LinkedCode& code) {
  const Profiling profiling(host);
  for (std::size_t i = 0; profiling.takes_code() && i < names.size(); ++i) profiling.tell_code("tenon: product " + names[i], code.functions[i], code.sizes[i], {}, 0);
}

}  // namespace

const std::vector<void*>& MatrixCode::functions(const HostServices& host, DType dtype, MatrixPart part) {
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& known = entries_[{dtype, part}];
    if (!known) known = std::make_unique<Entry>();
    entry = known.get();
  }
  const std::lock_guard lock(entry->mutex);
  const std::vector<void*>& functions = entry->code.functions;
  if (!functions.empty()) return functions;
  const auto names = names_of(jit_.target(), dtype, part);
  const codegen::CodeStore store = code_store(host, jit_.target());
  const std::string key = store.key(fmt::format("matrix part {}", static_cast<int>(part)), name_of(dtype));
  entry->code = linked(store, key, names);
  if (functions.empty()) {
    const ObjectCode object = jit_.compile(Tier::tuned, [&](llvm::Module& module) { fill(module, dtype, part, names); });
    store.put_object(key, object);
    entry->code = link(object, names);
  }
  tell_profilers(host, names, entry->code);
  return functions;
}

MatrixKernel MatrixCode::kernel(const HostServices& host, DType dtype, const MatrixParts& wanted) {
  MatrixKernel kernel = shapes(dtype);
  for (const auto& [of, part] : wanted) {
    if (of != dtype || !needs(of, part)) continue;
    const std::vector<void*>& f = functions(host, dtype, part);
    switch (part) {
      case MatrixPart::panels:
        kernel.fetching = reinterpret_cast<MicroKernel>(f[0]), kernel.plain = reinterpret_cast<MicroKernel>(f[1]);
        kernel.fetching_narrow = reinterpret_cast<MicroKernel>(f[2]);
        kernel.transposition = reinterpret_cast<Transposition>(f[3]);
        if (f.size() > 4) kernel.pairing = reinterpret_cast<Pairing>(f[4]);
        if (f.size() > 5) kernel.enter = reinterpret_cast<void (*)()>(f[5]), kernel.leave = reinterpret_cast<void (*)()>(f[6]);
        break;
      case MatrixPart::few_rows: kernel.dot = reinterpret_cast<DotKernel>(f[0]), kernel.streaming = reinterpret_cast<MicroKernel>(f[1]); break;
      case MatrixPart::windows:
        kernel.function = reinterpret_cast<MicroKernel>(f[0]), kernel.narrow = reinterpret_cast<MicroKernel>(f[1]);
        kernel.fetching_streaming = reinterpret_cast<MicroKernel>(f[2]);
        if (f.size() > 3) kernel.small_square = winograd_code(&f[3]);
        break;
      case MatrixPart::few_columns: kernel.window_dots = reinterpret_cast<WindowDotKernel>(f[0]); break;
      case MatrixPart::large_squares: kernel.large_square = winograd_code(f.data()); break;
      case MatrixPart::one_row:
        kernel.dot_row = reinterpret_cast<DotKernel>(f[0]);
        kernel.row = reinterpret_cast<MicroKernel>(f[1]), kernel.row_of_columns = reinterpret_cast<MicroKernel>(f[2]);
        break;
      case MatrixPart::runs:
        kernel.outer = reinterpret_cast<OuterKernel>(f[0]), kernel.outer_columns = reinterpret_cast<OuterKernel>(f[1]);
        kernel.outer_narrow = reinterpret_cast<OuterKernel>(f[2]);
        break;
      case MatrixPart::square_sums:
        kernel.square_sums = {reinterpret_cast<WinogradInput>(f[0]), reinterpret_cast<WinogradInput>(f[1]), reinterpret_cast<WinogradOutput>(f[2])};
        break;
      case MatrixPart::rows_of_f16: kernel.dot_of_f16 = reinterpret_cast<DotKernel>(f[0]); break;
      case MatrixPart::rows_of_bf16: kernel.dot_of_bf16 = reinterpret_cast<DotKernel>(f[0]); break;
    }
  }
  return kernel;
}

}  // namespace tenon::llvm_backend
