// The strides of what torch's attention gives: its shape functions give others than its kernels do.
#pragma once

#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/metadata/strides.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// The strides of the result of a call of scaled_dot_product_attention of tensors on the device; nothing for other functions, and where they are not known: then
/// torch's shape functions have to be asked.
std::optional<Extents> attention_strides(StandIns& stand_ins, const ForeignFunction& function, ir::Device device, PyObject* args, PyObject* kwargs);

}  // namespace tenon::python
