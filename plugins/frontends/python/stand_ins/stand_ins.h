// The stand-ins of one capture: what is known of each, which share memory, and the twins on which the libraries answer questions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/build/view_path.h"
#include "python/guards/source.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/metadata/view_layout.h"
#include "python/results/twins.h"

namespace tenon::python {

/// A call whose tensors are the same at every call of the program, or come of numbers that vary and of nothing else.
struct KnownCall {
  Ref callable, args, kwargs;  // kwargs may be empty
  ops::Flavour flavour = ops::Flavour::torch;
  bool varies = false;
};

/// What the recorder knows of one object that the program takes for a tensor, array or NumPy scalar.
struct StandIn {
  Ref object;
  TensorKind kind = TensorKind::torch;
  ir::ValueId value;                  // at `version` of the storage: PresentValues brings it up to date
  std::uint32_t version = 0;
  DType dtype = DType::f32;
  ir::Device device;
  Extents shape, strides;
  bool writeable = true;
  bool requires_grad = false;
  PyTypeObject* type = nullptr;       // as the program sees it
  std::optional<std::uint32_t> input; // position among the graph's inputs
  SourceId source;
  std::uint32_t storage = 0;          // index of the Storage
  std::int64_t offset = 0;            // elements from the storage's first stand-in's first element
  Ref twin;                           // made when needed
  std::optional<std::uint32_t> viewed;  // a view: of which stand-in
  std::optional<ops::ViewPath> path;       // a view: from that one's value; none where it is no chain of views
  std::optional<ViewLayout> late;     // a view of memory whose size depends on data: its layout there
  std::optional<ViewLayout> layout;   // another view where numbers vary: its layout in the memory, where it can be said
  Detached detached = Detached::no;
  bool leaf = false;                  // made by the call, and a leaf of torch's autograd graph from then on
  bool untracked = false;             // a view: made where grad mode was off, or of such a view; torch refuses writes through it that need gradients
  bool one_of_several = false;        // a view that came with others from one call, or of such a view; torch refuses writes through it that need gradients
  bool inference = false;             // made in inference mode, or a view of such a view; is_inference() asks what made the memory
  bool counts_apart = false;          // made by `.data`: writes do not count in the version of what it views
  Ref constant;                       // what it stands for, where that is made by the capture and in every call the same
  std::shared_ptr<const KnownCall> made_by;  // of what it can be made, where that is so
  std::optional<Py_ssize_t> place;    // then: among the results, where these are several
  std::optional<HiddenBase> base;     // in memory of its own, but a view of an object that nobody has
  bool crossed = false;               // a view: the whole of what it views, as an object of the other library
  std::uint32_t writes = 0;           // of a crossed one: what eager leaves in its own Tensor._version
};

/// The part of a stand-in that metadata says: always writeable, in no storage yet.
StandIn stand_in_of(const TensorSpec& spec, ir::ValueId value);

/// The stand-ins that share memory; the first one made it.
struct Storage {
  std::uint32_t first = 0;
  /// Where twins lie that have this memory: one in torch's, others in NumPy's.
  struct TwinMemory {
    const void* address = nullptr;
    std::int64_t first_offset = 0;    // of the first one's first element in that memory
  };
  std::vector<TwinMemory> twins;
  std::uint32_t version = 0;          // counted up by each write
  std::uint32_t writes = 0;           // operations that wrote: eager counts these in Tensor._version
  std::optional<std::uint32_t> reinterprets;  // the storage whose memory it really is, seen under another dtype or at a place that is not known
  std::int64_t place = 0;             // then: from that memory's first element, in elements of the other dtype
  bool is_view = false;               // then: torch says so of what made it (view_as_real), and that of a view under another dtype it does not
  bool requires_grad = false;         // one of them does
  bool handed_on = false;             // a gradient that torch's engine may have given to others, too
};

/// Owns the stand-ins; they are known by number, by object and by twin.
class StandIns {
 public:
  using Index = std::uint32_t;

  StandIn& operator[](Index index) { return stand_ins_[index]; }
  const StandIn& operator[](Index index) const { return stand_ins_[index]; }
  std::size_t size() const { return stand_ins_.size(); }
  auto begin() const { return stand_ins_.begin(); }
  auto end() const { return stand_ins_.end(); }
  const Storage& storage_of(Index index) const { return storages_[stand_ins_[index].storage]; }
  Storage& storage_of(Index index) { return storages_[stand_ins_[index].storage]; }
  /// The stand-in that made the memory of this one.
  Index owner(Index index) const { return storage_of(index).first; }
  Index owner_of(std::uint32_t storage) const { return storages_[storage].first; }
  /// The stand-in, of the same library, whose memory this one is a part of: the owner, or what crossed from the other library.
  Index root(Index index) const;
  /// Counts an operation that wrote, in the version that torch counts it in.
  void count_write(Index index);
  /// The memory of its own that this one made has other elements from now on.
  void note_written(Index owner);
  /// What made the memory that was written, write by write.
  std::span<const Index> written() const { return written_; }

  std::optional<Index> find(PyObject* object) const;
  /// Throws GraphBreak for the stand-in of another capture.
  Index require(PyObject* object) const;
  std::vector<Index> require(std::span<PyObject* const> objects) const;
  /// The stand-ins among the arguments of a call, in lists and dicts too.
  std::vector<Index> among(PyObject* args, PyObject* kwargs) const;

  /// Makes the object of a stand-in with a storage of its own.
  Index add_owner(StandIn stand_in);
  /// Makes the object of a stand-in that views a storage under another dtype, or at a place that is not known. Nothing else knows that they
  /// share memory: it counts as a copy, so neither may be written, and they may not leave the graph together.
  Index add_reinterpreted(StandIn stand_in, std::uint32_t storage, const TwinPlace& place);
  /// Whether memory of this stand-in is known under several dtypes.
  bool is_reinterpreted(Index index) const;
  /// The storage whose memory it really is.
  std::uint32_t memory_of(Index index) const { return storage_of(index).reinterprets.value_or(stand_ins_[index].storage); }
  /// Makes the object of a stand-in whose `storage`, `offset` and `twin` are given.
  Index add_view(StandIn stand_in);
  /// Ends the newest stand-in, which is a view of another one: that one's object shows the memory as the view did. Throws GraphBreak where torch
  /// does not exchange the metadata of the two objects.
  void show_as_newest(Index index);

  /// Gives the twin, made when first asked for.
  PyObject* twin(Index index);
  /// The same arguments with twins in the places of stand-ins.
  Ref with_twins(PyObject* object);
  std::optional<Index> of_twin(PyObject* twin) const;
  /// The storage in which a twin lies.
  std::optional<std::uint32_t> storage_at(const TwinPlace& place) const;
  std::int64_t offset_in(std::uint32_t storage, const TwinPlace& place) const;
  /// Gives a stand-in that has no twin, the first of its library in its storage, one.
  void adopt_twin(Index index, PyObject* twin);

 private:
  Index add(StandIn stand_in);
  void collect(PyObject* object, std::vector<Index>& found) const;
  void place_storage(Index index);

  std::vector<StandIn> stand_ins_;
  std::vector<Storage> storages_;
  std::vector<Index> written_;
  bool any_reinterpreted_ = false;
  std::unordered_map<PyObject*, Index> by_object_;
  std::unordered_map<PyObject*, Index> by_twin_;
  std::unordered_map<const void*, std::uint32_t> by_place_;  // storages by where their twins lie: of several the first
};

/// A new object with the items of `sequence` replaced: of the same type, named tuples included.
Ref rebuilt(PyObject* sequence, const std::function<Ref(PyObject*)>& replace);

/// The arguments of a call with some objects in them replaced, in tuples, lists and dicts at any depth, which are copied. `replace` gives
/// nothing for what stays as it is or is looked into.
Ref with_replaced(PyObject* arguments, const std::function<Ref(PyObject*)>& replace);

}  // namespace tenon::python
