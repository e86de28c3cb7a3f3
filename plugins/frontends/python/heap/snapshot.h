// Turns objects of a capture into the template that builds them again.
#pragma once

#include <unordered_map>

#include "python/heap/heap.h"
#include "python/heap/result_template.h"

namespace tenon::python {

/// Describes objects (and all that hangs on them) before the rollback. All objects that are added share one template and keep their
/// identity among each other.
class Snapshot {
 public:
  Snapshot(Heap& heap, Recorder& recorder) : heap_(heap), recorder_(recorder) {}

  /// The node of an object as the program sees it. Breaks the graph when something in it cannot be built again.
  std::uint32_t add(PyObject* object);
  /// The node of what a source gives, without looking at it (a slot that nobody has consumed).
  std::uint32_t add_source(SourceId source);

  /// The template of all that was added. The object must not be used afterwards.
  ResultTemplate take() { return std::move(result_); }

 private:
  using Node = ResultTemplate::Node;
  using Kind = ResultTemplate::Kind;

  std::uint32_t write(PyObject* object);
  std::uint32_t classify(PyObject* object);
  std::uint32_t container(PyObject* object, const TypeTraits& traits);
  std::uint32_t other(PyObject* object, const TypeTraits& traits);
  std::uint32_t iterator(PyObject* object);
  std::uint32_t iterator_of_dict(PyObject* iterator);
  std::uint32_t bound_method(PyObject* function, PyObject* self);
  std::uint32_t append(Node node);
  /// Reserves the node of an object that is filled when all nodes are there.
  std::uint32_t shell(PyObject* object, Kind kind);
  std::uint32_t whole(Kind kind, Ref detail, std::initializer_list<PyObject*> children);
  std::uint32_t sequence(Kind kind, Ref detail, PyObject* items);

  void fill(std::uint32_t at, PyObject* object);
  void fill_items(std::uint32_t at, PyObject* iterable);
  void fill_pairs(std::uint32_t at, PyObject* dict);
  void fill_function(std::uint32_t at, PyObject* object);
  void fill_exception(std::uint32_t at, PyObject* object);
  void fill_attributes(std::uint32_t at, PyObject* object, std::initializer_list<const char*> first = {});

  Heap& heap_;
  Recorder& recorder_;
  ResultTemplate result_;
  std::unordered_map<PyObject*, std::uint32_t> done_;
  std::vector<std::pair<std::uint32_t, Ref>> open_;  // shells that are to be filled
  int depth_ = 0;          // of tuples and the like within each other
  std::vector<Ref> keep_;  // objects made here must outlive `done_`, which knows them by address
};

}  // namespace tenon::python
