#include "code_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace tenon::llvm_backend {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;  // vector constants lie beside the code

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// One mapping that is executed. Where the system lends memory without a name, a second mapping of the same memory is writable for the
/// moment of a write, so that pieces share pages; elsewhere each piece has pages of its own, which are writable before they are executable.
class Slab {
 public:
  Slab(std::size_t bytes, bool anonymous) : bytes_(bytes) {
    if (!anonymous && map_twice()) return;
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw Exception(Code::out_of_memory, std::string("no memory for generated code: ") + std::strerror(errno));
    code_ = static_cast<std::byte*>(mapped);
  }
  ~Slab() {
    munmap(code_, bytes_);
    if (writable_) munmap(writable_, bytes_);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  std::byte* begin() const { return code_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t mappings() const { return writable_ ? 2 : 1; }
  /// What the size of a piece must be a multiple of.
  std::size_t granule() const { return writable_ ? kAlignment : page_bytes(); }

  void write(std::byte* at, std::span<const std::byte> content) {
    const auto offset = static_cast<std::size_t>(at - code_), first = offset / page_bytes() * page_bytes();
    const std::size_t length = rounded_up(offset + content.size() - first, page_bytes());
    std::byte* const pages = (writable_ ? writable_ : code_) + first;
    protect(pages, length, PROT_READ | PROT_WRITE);
    std::memcpy(pages + (offset - first), content.data(), content.size());
    if (writable_) madvise(pages, length, MADV_DONTNEED);  // counted once, where it is executed
    protect(pages, length, writable_ ? PROT_NONE : PROT_READ | PROT_EXEC);
  }

  std::size_t taken = 0;
  bool closed = false;  // nothing is put into it any more

 private:
  bool map_twice() {
    const int file = open_memory();
    if (file < 0) return false;
    void *code = MAP_FAILED, *writable = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
      code = mmap(nullptr, bytes_, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
      if (code != MAP_FAILED) writable = mmap(nullptr, bytes_, PROT_NONE, MAP_SHARED, file, 0);
      if (code != MAP_FAILED && writable == MAP_FAILED) munmap(code, bytes_);
    }
    close(file);
    if (writable == MAP_FAILED) return false;
    code_ = static_cast<std::byte*>(code);
    writable_ = static_cast<std::byte*>(writable);
    return true;
  }

  static int open_memory() {
    constexpr unsigned kExecutable = 0x10;  // MFD_EXEC, from Linux 6.3 on
    const int file = memfd_create("tenon code", MFD_CLOEXEC | kExecutable);
    return file >= 0 || errno != EINVAL ? file : memfd_create("tenon code", MFD_CLOEXEC);
  }

  static void protect(std::byte* pages, std::size_t length, int protection) {
    if (mprotect(pages, length, protection) != 0) throw Exception(Code::out_of_memory, std::string("memory of generated code cannot be protected: ") + std::strerror(errno));
  }

  const std::size_t bytes_;
  std::byte* code_ = nullptr;
  std::byte* writable_ = nullptr;
};

/// Counts before and after each fork of this process.
std::atomic<unsigned> forks{0};

/// Whether code is to lie in anonymous mappings, here and in children.
std::atomic<bool> anonymous{false};

/// The slabs and their free ranges, from which the smallest that suffices is taken.
class CodeMemory {
 public:
  std::pair<Slab*, std::byte*> take(std::size_t& bytes) {
    const std::lock_guard lock(mutex_);
    close_shared();
    bytes = rounded_up(std::max<std::size_t>(bytes, 1), granule_);
    auto found = by_size_.lower_bound({bytes, nullptr});
    if (found == by_size_.end()) {
      add_slab(bytes);
      bytes = rounded_up(bytes, granule_);
      found = by_size_.lower_bound({bytes, nullptr});
    }
    const auto [size, place] = *found;
    by_size_.erase(found);
    by_place_.erase(place);
    if (size > bytes) add_range(place + bytes, size - bytes);
    Slab& slab = slab_of(place);
    slab.taken += bytes;
    return {&slab, place};
  }

  void write(Slab& slab, std::byte* at, std::span<const std::byte> content) {
    const std::lock_guard lock(mutex_);  // a page is not protected while another thread writes beside
    slab.write(at, content);
  }

  void give_back(Slab& slab, std::byte* place, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    close_shared();
    slab.taken -= bytes;
    if (!slab.closed) add_range(place, bytes);
    if (slab.taken == 0 && (slab.closed || slab.bytes() > kSlabBytes || has_other_empty(slab))) drop(slab);
  }

  void use_anonymous() {
    const std::lock_guard lock(mutex_);
    if (!anonymous.exchange(true)) close_slabs();
  }

  CodeMemoryUse use() {
    const std::lock_guard lock(mutex_);
    CodeMemoryUse use;
    for (const auto& [place, slab] : slabs_) use.mappings += slab->mappings(), use.mapped += slab->bytes(), use.taken += slab->taken;
    return use;
  }

 private:
  /// After a fork the child may run whatever was there: it is never written again.
  void close_shared() {
    if (seen_forks_ == forks.load(std::memory_order_relaxed)) return;
    seen_forks_ = forks.load(std::memory_order_relaxed);
    close_slabs();
  }

  void close_slabs() {
    by_size_.clear();
    by_place_.clear();
    for (auto& [place, slab] : slabs_) slab->closed = true;
    std::erase_if(slabs_, [](const auto& entry) { return entry.second->taken == 0; });
  }

  void add_slab(std::size_t least) {
    auto made = std::make_unique<Slab>(rounded_up(std::max(least, kSlabBytes), page_bytes()), anonymous.load());
    granule_ = std::max(granule_, made->granule());  // ranges of pages are never split
    Slab& slab = *made;
    slabs_.emplace(slab.begin(), std::move(made));
    add_range(slab.begin(), slab.bytes());
  }

  Slab& slab_of(const std::byte* place) { return *std::prev(slabs_.upper_bound(const_cast<std::byte*>(place)))->second; }

  /// Makes the range free, joined with what is free around it in its slab.
  void add_range(std::byte* place, std::size_t bytes) {
    const Slab& slab = slab_of(place);
    auto next = by_place_.lower_bound(place);
    if (next != by_place_.end() && next->first == place + bytes && next->first < slab.begin() + slab.bytes()) {
      bytes += next->second;
      next = remove_range(next);
    }
    if (next != by_place_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == place && before->first >= slab.begin()) {
        place = before->first;
        bytes += before->second;
        remove_range(before);
      }
    }
    by_place_.emplace(place, bytes);
    by_size_.emplace(bytes, place);
  }

  using Ranges = std::map<std::byte*, std::size_t>;

  Ranges::iterator remove_range(Ranges::iterator range) {
    by_size_.erase({range->second, range->first});
    return by_place_.erase(range);
  }

  /// One slab of the usual size without pieces is kept: code comes and goes.
  bool has_other_empty(const Slab& slab) const {
    return std::ranges::any_of(slabs_, [&](const auto& entry) { return entry.second.get() != &slab && entry.second->taken == 0; });
  }

  void drop(Slab& slab) {
    if (!slab.closed) remove_range(by_place_.find(slab.begin()));
    slabs_.erase(slab.begin());
  }

  std::mutex mutex_;
  std::map<std::byte*, std::unique_ptr<Slab>> slabs_;  // by where they begin
  Ranges by_place_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  std::size_t granule_ = kAlignment;
  unsigned seen_forks_ = 0;
};

/// Never destroyed: threads may run generated code while the process exits. The child of a fork begins with another one, as a thread that
/// it does not have may have been at work in this one.
std::atomic<CodeMemory*> g_memory{nullptr};

CodeMemory& code_memory() {
  static const bool watches = [] {
    g_memory = new CodeMemory;
    const auto count = [] { forks.fetch_add(1, std::memory_order_relaxed); };
    return pthread_atfork(count, count, [] { g_memory = new CodeMemory; }) == 0;
  }();
  TENON_CHECK(watches, "forks cannot be watched");
  return *g_memory;
}

class Piece final : public CodePiece {
 public:
  Piece(CodeMemory& memory, Slab& slab, std::byte* place, std::size_t bytes) : CodePiece(place), memory_(memory), slab_(slab), bytes_(bytes) {}
  ~Piece() override {
    if (&memory_ == g_memory) memory_.give_back(slab_, address(), bytes_);  // what a parent had is the parent's
  }
  void write(std::span<const std::byte> content) override {
    TENON_CHECK(content.size() <= bytes_ && &memory_ == g_memory, "code is written beside its memory");
    memory_.write(slab_, address(), content);
  }

 private:
  CodeMemory& memory_;
  Slab& slab_;
  const std::size_t bytes_;
};

}  // namespace

std::unique_ptr<CodePiece> take_code_memory(std::size_t bytes) {
  CodeMemory& memory = code_memory();
  const auto [slab, place] = memory.take(bytes);
  return std::make_unique<Piece>(memory, *slab, place, bytes);
}

void use_anonymous_code_memory() { code_memory().use_anonymous(); }

CodeMemoryUse code_memory_use() { return code_memory().use(); }

}  // namespace tenon::llvm_backend
