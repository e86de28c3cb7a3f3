#include "matrix_product.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace tenon::llvm_backend {
namespace {

/// Rows of k that one pass takes; longer products are added up in passes. 512 rows of a panel are 128 KB: they stay in a
/// second-level cache of 1 MB beside what else runs on the core.
constexpr std::int64_t kDepth = 512;
/// Rows of a that are multiplied with all panels before the next ones.
constexpr std::int64_t kCachedRows = 192;
/// Below this many rows, packing b costs more than reading it where it is.
constexpr std::int64_t kFewRows = 12;
/// Multiplications from which threads pay.
constexpr double kParallelWork = 64 * 1024;
/// Readable bytes after a packed panel, for prefetches.
constexpr std::size_t kSlack = 4096;

/// Memory for one product. The thread keeps it for the next one; a product that starts while another of the same thread waits for
/// its parallel loop takes another piece.
class Scratch {
 public:
  Scratch() {
    if (free_pieces().empty()) return;
    piece_ = free_pieces().back();
    free_pieces().pop_back();
  }
  ~Scratch() {
    if (piece_.memory) free_pieces().push_back(piece_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* take(std::size_t bytes) {
    bytes = (bytes + kSlack + 63) & ~std::size_t{63};
    if (bytes > piece_.size) {
      std::free(piece_.memory);
      piece_ = {std::aligned_alloc(64, bytes), bytes};
      if (!piece_.memory) {
        piece_.size = 0;
        throw std::bad_alloc();
      }
    }
    return piece_.memory;
  }

 private:
  struct Piece {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  struct Pieces : std::vector<Piece> {
    ~Pieces() {
      for (Piece& p : *this) std::free(p.memory);
    }
  };
  static Pieces& free_pieces() {
    thread_local Pieces pieces;
    return pieces;
  }
  Piece piece_;
};

template <class T>
class Multiplier {
 public:
  Multiplier(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), tile_{kernel.tile.rows, kernel.tile.columns},
        parallel_(parallel && static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) >= kParallelWork) {}

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.k == 0) return clear();
    for (std::int64_t first = 0; first < p_.k; first += kDepth) pass(first, std::min(kDepth, p_.k - first));
  }

 private:
  template <class Body>
  void each(std::int64_t count, Body body) {
    if (!parallel_ || count < 2) return body(std::int64_t{0}, count);
    host_.parallel_for(0, count, 1, body);
  }

  void clear() {
    for (std::int64_t i = 0; i < p_.m; ++i) std::memset(static_cast<T*>(p_.c) + i * p_.c_row, 0, static_cast<std::size_t>(p_.n) * sizeof(T));
  }

  std::int64_t panels() const { return (p_.n + tile_.columns - 1) / tile_.columns; }

  void pass(std::int64_t first, std::int64_t depth) {
    const T* b = static_cast<const T*>(p_.b) + first * p_.b_row;
    const T* a = static_cast<const T*>(p_.a) + first * p_.a_column;
    Scratch rows, columns;
    std::int64_t a_row = p_.a_row;
    if ((p_.a_column != 1 && depth > 1) || far_rows()) {
      T* packed = static_cast<T*>(rows.take(static_cast<std::size_t>(p_.m * depth) * sizeof(T)));
      pack_rows(a, depth, packed);
      a = packed;
      a_row = depth;
    }
    const bool direct = p_.b_column == 1 && p_.m < kFewRows;
    const std::int64_t whole = direct ? p_.n / tile_.columns : 0;
    const std::int64_t packed_panels = panels() - whole;
    T* packed = static_cast<T*>(columns.take(static_cast<std::size_t>(packed_panels * depth * tile_.columns) * sizeof(T)));
    each(packed_panels, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t i = low; i < high; ++i) pack_panel(b, whole + i, depth, packed + i * depth * tile_.columns);
    });
    const std::int64_t chunks = row_chunks(), height = rounded_height(chunks);
    each(panels() * chunks, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = task % panels(), row = (task / panels()) * height;
        const bool in_place = panel < whole;
        const T* source = in_place ? b + panel * tile_.columns : packed + (panel - whole) * depth * tile_.columns;
        block(a, a_row, source, in_place ? p_.b_row : tile_.columns, panel, row, std::min(p_.m, row + height), depth, first > 0);
      }
    });
  }

  /// Rows of a that are pages apart and read again for many panels: they would crowd into few sets of the caches.
  bool far_rows() const { return p_.a_row * static_cast<std::int64_t>(sizeof(T)) >= 4096 && panels() >= 4 && p_.m >= 4 * tile_.rows; }

  /// Blocks of rows that stay in the second-level cache while all panels pass; more where threads need them.
  std::int64_t row_chunks() const {
    const std::int64_t cached = (p_.m + kCachedRows - 1) / kCachedRows;
    const std::int64_t tasks = parallel_ ? (4 * host_.thread_count() + panels() - 1) / panels() : 1;
    return std::max<std::int64_t>(1, std::min(std::max(cached, tasks), (p_.m + tile_.rows - 1) / tile_.rows));
  }

  std::int64_t rounded_height(std::int64_t chunks) const {
    const std::int64_t height = (p_.m + chunks - 1) / chunks;
    return (height + tile_.rows - 1) / tile_.rows * tile_.rows;
  }

  void block(const T* a, std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t panel, std::int64_t row, std::int64_t end, std::int64_t depth, bool accumulate) {
    const std::int64_t column = panel * tile_.columns, columns = std::min<std::int64_t>(tile_.columns, p_.n - column);
    for (; row < end; row += tile_.rows)
      kernel_.function(a + row * a_row, a_row, b, b_row, static_cast<T*>(p_.c) + row * p_.c_row + column, p_.c_row, depth,
                       std::min<std::int64_t>(tile_.rows, end - row), columns, accumulate);
  }

  void pack_rows(const T* a, std::int64_t depth, T* packed) {
    if (p_.a_column == 1)
      return each(p_.m, [&](std::int64_t low, std::int64_t high) {
        for (std::int64_t i = low; i < high; ++i) std::memcpy(packed + i * depth, a + i * p_.a_row, static_cast<std::size_t>(depth) * sizeof(T));
      });
    each((p_.m + 15) / 16, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t block = low; block < high; ++block)
        for (std::int64_t k = 0; k < depth; ++k)
          for (std::int64_t i = block * 16; i < std::min(p_.m, block * 16 + 16); ++i) packed[i * depth + k] = a[i * p_.a_row + k * p_.a_column];
    });
  }

  /// [depth][columns], zeroes past the last column.
  void pack_panel(const T* b, std::int64_t panel, std::int64_t depth, T* packed) {
    const std::int64_t width = tile_.columns, column = panel * width, columns = std::min(width, p_.n - column);
    const T* source = b + column * p_.b_column;
    if (p_.b_column == 1) {
      for (std::int64_t k = 0; k < depth; ++k) {
        std::memcpy(packed + k * width, source + k * p_.b_row, static_cast<std::size_t>(columns) * sizeof(T));
        std::fill(packed + k * width + columns, packed + (k + 1) * width, T{0});
      }
      return;
    }
    constexpr std::int64_t kBlock = 16;  // reads a cache line of each column, writes stay in the first-level cache
    for (std::int64_t start = 0; start < depth; start += kBlock) {
      const std::int64_t stop = std::min(depth, start + kBlock);
      for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t k = start; k < stop; ++k) packed[k * width + j] = source[j * p_.b_column + k * p_.b_row];
      for (std::int64_t k = start; k < stop; ++k) std::fill(packed + k * width + columns, packed + (k + 1) * width, T{0});
    }
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  struct Tile {
    std::int64_t rows, columns;
  };
  Tile tile_;
  bool parallel_;
};

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).run();
  else Multiplier<float>(host, kernel, product, parallel).run();
}

}  // namespace tenon::llvm_backend
