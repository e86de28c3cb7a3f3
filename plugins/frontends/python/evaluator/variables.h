// Names of a frame: local and global variables, cells, imports.
#pragma once

#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, items.
class Variables {
 public:
  Variables(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  void op(Frame& f, const Instruction& i);
  void op_load_fast(Frame& f, const Instruction& i);

 private:
  void op_make_cell(Frame& f, const Instruction& i);
  PyObject* cell_at(Frame& f, int slot);
  Ref load_cell(Frame& f, int slot);
  void op_store_deref(Frame& f, const Instruction& i);
  void op_delete_deref(Frame& f, const Instruction& i);
  Ref load_global(Frame& f, PyObject* name);
  Ref load_name(Frame& f, PyObject* name);
  Ref name_of_relative_import(Frame& f, PyObject* name, long level);
  void op_import_name(Frame& f, const Instruction& i);
  void op_import_from(Frame& f, const Instruction& i);

  Evaluator& core_;
  Heap& heap_;
};

}  // namespace tenon::python
