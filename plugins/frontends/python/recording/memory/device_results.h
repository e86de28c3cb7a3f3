// What the program sees of the device of a tensor, and tensors that it copies from one device to another.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

/// `x.device`, `x.is_cuda`, `x.get_device()`: what the stand-in's own object says; nothing for what a twin, which is on the meta device, knows too.
std::optional<Ref> answer_of_device(PyObject* callable, std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs);

/// `x.cpu()`, `x.cuda(1)` as `x.to(device)`; nothing for other calls.
std::optional<Ref> record_transfer(RecordedGraph& core, StandInUses& uses, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

/// Whether a call of `to` gives its tensor on another device.
bool transfers(const RecordedGraph& core, const ForeignFunction& function, const ops::ForeignResult& result, std::span<const StandIns::Index> operands);

/// The stand-in of what such a call gives: in new memory, laid out as torch copies it.
Ref wrap_transferred(RecordedGraph& core, PyObject* callable, ir::ValueId value, PyObject* args, PyObject* kwargs);

/// Where a call of the library's own puts what it makes: where it is told to, else where its tensors are.
ir::Device device_of_results(RecordedGraph& core, const ForeignFunction& function, std::span<const StandIns::Index> operands, PyObject* args, PyObject* kwargs);

/// Whether a call names another device than the host.
bool names_a_device(const ForeignFunction& function, PyObject* args, PyObject* kwargs);

}  // namespace tenon::python
