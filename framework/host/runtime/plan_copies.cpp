// Which devices a plan uses, and the copies between layouts and devices that the host makes itself.
#include <algorithm>

#include "host/runtime/plan_builder.h"

namespace tenon::host {

std::uint32_t PlanBuilder::device_of(const ir::Type& type) {
  const DLDevice id = ir::dlpack_device(type.device);
  std::vector<Device*>& devices = plan_->devices_;
  const auto known = std::ranges::find_if(devices, [&](const Device* device) { return same_device(device->id(), id); });
  if (known == devices.end()) return devices.push_back(&environment_.devices->get(id)), static_cast<std::uint32_t>(devices.size() - 1);
  return static_cast<std::uint32_t>(known - devices.begin());
}

/// Where a group runs: where its results are. One without results on a device reads what is there.
std::uint32_t PlanBuilder::device_of(const Step& step) const {
  for (const std::vector<std::uint32_t>* values : {&step.outputs, &step.inputs})
    for (std::uint32_t v : *values)
      if (plan_->values_[v].device != 0) return plan_->values_[v].device;
  return 0;
}

std::uint32_t PlanBuilder::row_major_copy(ValueId v) {
  if (const auto known = row_major_.find(v); known != row_major_.end()) return known->second;
  ir::Type type = plan_->graph_.open().type(v);
  type.strides.reset();
  const std::uint32_t copy = add_value(type, plan_->graph_.open().value(v).name, Place::arena);
  add_copy(value_of(v), copy);
  ++plan_->conversions_;
  return row_major_[v] = copy;
}

void PlanBuilder::add_copy(std::uint32_t from, std::uint32_t to) {
  auto step = std::make_unique<Step>();
  step->kind = Step::Kind::copy;
  step->inputs = {from};
  step->outputs = {to};
  step->device = std::max(plan_->values_[from].device, plan_->values_[to].device);
  plan_->values_[to].first_step = static_cast<std::uint32_t>(plan_->steps_.size());
  plan_->steps_.push_back(std::move(step));
}

/// A node that has its operand's value on another device.
void PlanBuilder::add_transfer(NodeId n) {
  const ir::Graph& graph = plan_->graph_.open();
  const ir::Node& node = graph.node(n);
  const ValueId operand = node.operands[0], result = node.results[0];
  const std::uint32_t copy = add_value(graph.type(result), graph.value(result).name, Place::arena);
  add_copy(is_row_major(graph.type(operand)) ? value_of(operand) : row_major_copy(operand), copy);
  values_[result] = copy;
}

/// A value where the host can read it.
std::uint32_t PlanBuilder::on_host(ValueId v) {
  const std::uint32_t value = is_row_major(plan_->graph_.open().type(v)) ? value_of(v) : row_major_copy(v);
  if (plan_->values_[value].device == 0) return value;
  ir::Type type = plan_->graph_.open().type(v);
  type.device = {}, type.strides.reset();
  const std::uint32_t copy = add_value(type, plan_->graph_.open().value(v).name, Place::arena);
  add_copy(value, copy);
  return copy;
}

/// What a device writes to the host's memory is there when its stream has come that far: whoever reads it waits.
void PlanBuilder::find_waits() {
  std::vector<bool> arrives(plan_->values_.size(), false);
  for (const auto& step : plan_->steps_) {
    for (std::uint32_t v : step->inputs)
      if (arrives[v]) step->waits.push_back(v);
    if (step->kind == Step::Kind::copy && plan_->values_[step->outputs[0]].device == 0 && plan_->values_[step->inputs[0]].device != 0) arrives[step->outputs[0]] = true;
  }
}

}  // namespace tenon::host
