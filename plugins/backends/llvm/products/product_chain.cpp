#include "product_chain.h"

#include "blocked_softmax.h"
#include "multiplier.h"

namespace tenon::llvm_backend {
namespace {

/// Runs a chain: both right operands are packed once.
template <class T>
class ChainRun {
 public:
  ChainRun(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel)
      : host_(host), kernel_(kernel), chain_(chain), scores_(with_rows_in_panel(chain)), first_(host, kernel, scores_, parallel), second_(host, kernel, chain.second, parallel), parallel_(parallel) {
    if (chain.by_blocks) second_.pack_always();
    first_.prepare_rows(left_);
    keys_ = first_.pack_for_blocks(first_panels_), values_ = second_.pack_for_blocks(second_panels_);
  }

  void run() {
    const std::int64_t rows = chain_.first.m, together = chain_.by_blocks ? rows_of_softmax() : rows_of_panel();
    const auto blocks = [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t row = low * together; row < std::min(rows, high * together); row += together) {
        const std::int64_t end = std::min(rows, row + together);
        if (chain_.by_blocks && chain_.first.n > 0) BlockedSoftmax<T>(chain_, first_, keys_, second_, values_).rows(row, end);
        else whole_rows(row, end);
      }
    };
    if (const std::int64_t count = (rows + together - 1) / together; parallel_ && count > 1) host_.parallel_for(0, count, 1, blocks);
    else blocks(0, count);
  }

 private:
  static MatrixProduct with_rows_in_panel(const ProductChain& chain) {
    MatrixProduct scores = chain.first;
    if (chain.by_blocks) scores.c_row = kPanelStride;
    return scores;
  }

  /// Many rows share keys and values that do not stay in cache.
  std::int64_t rows_of_softmax() const {
    const MatrixProduct &keys = chain_.first, &values = chain_.second;
    return keys.n * (keys.steps * keys.step_depth + values.n) > kCachedElements ? BlockedSoftmax<T>::kMostRows : kFinishedRows;
  }

  std::int64_t rows_of_panel() const {
    const std::int64_t height = kernel_.tile.rows;
    return std::clamp(kCachedElements / std::max<std::int64_t>(1, chain_.first.n), height, kFinishedRows) / height * height;
  }

  void whole_rows(std::int64_t row, std::int64_t end) const {
    const std::int64_t columns = chain_.first.n;
    Scratch memory;
    T* panel = static_cast<T*>(memory.take(static_cast<std::size_t>(rows_of_panel() * columns) * sizeof(T)));
    const Tile tile{row, end - row, 0, columns, 0, chain_.first.steps};
    const std::int64_t seen = chain_.seen && columns > 0 ? std::clamp<std::int64_t>(chain_.seen(tile), 1, columns) : columns;
    first_.columns_to(panel, keys_, row, end, 0, seen);
    if (columns > 0) chain_.between(tile, panel);
    second_.rows_from(panel, values_, chain_.second_row + row, chain_.second_row + end, seen);
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const ProductChain& chain_;
  const MatrixProduct scores_;
  Multiplier<T> first_, second_;
  bool parallel_;
  Scratch left_, first_panels_, second_panels_;
  const T *keys_ = nullptr, *values_ = nullptr;
};

template <class T>
void run_chain(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel) {
  if (chain.first.m != 0 && chain.second.n != 0) ChainRun<T>(host, kernel, chain, parallel).run();
}

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel) {
  if (kernel.dtype == DType::f64) run_chain<double>(host, kernel, chain, parallel);
  else run_chain<float>(host, kernel, chain, parallel);
}

}  // namespace tenon::llvm_backend
