// One part of a buffer under assembly: header, section table, and the sections one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/abi/buffer_layout.h"
#include "core/base/error.h"

namespace tenon::ir {

/// Sections as spans of bytes, in the order of the table.
class Part {
 public:
  /// `records`: a vector or a RecordColumn, alive until the part is written.
  template <class Records>
  void add(const Records& records) {
    if (records.size() > UINT32_MAX) throw Exception(Code::unsupported, "the graph does not fit into a buffer of 4 GB");
    sections_.push_back({records.data(), static_cast<std::uint32_t>(records.size()), sizeof(*records.data())});
  }

  std::uint64_t size() const {
    std::uint64_t bytes = sizeof(TenonBufferHeader) + sections_.size() * sizeof(TenonBufferSection);
    for (const Section& s : sections_) bytes = padded(bytes + std::uint64_t{s.count} * s.stride);
    return bytes;
  }

  /// Appends the part; the vector has room for it.
  void write(std::vector<std::uint8_t>& out, std::uint64_t magic) const {
    const std::size_t start = out.size();
    append(out, TenonBufferHeader{magic, TENON_BUFFER_SCHEMA, sizeof(TenonBufferHeader), static_cast<std::uint32_t>(size()), static_cast<std::uint32_t>(sections_.size())});
    std::uint64_t offset = sizeof(TenonBufferHeader) + sections_.size() * sizeof(TenonBufferSection);
    for (const Section& s : sections_) {
      append(out, TenonBufferSection{static_cast<std::uint32_t>(offset), s.count, s.stride, 0});
      offset = padded(offset + std::uint64_t{s.count} * s.stride);
    }
    for (const Section& s : sections_) {
      const auto* bytes = static_cast<const std::uint8_t*>(s.data);
      out.insert(out.end(), bytes, bytes + std::size_t{s.count} * s.stride);
      out.resize(start + padded(out.size() - start));
    }
  }

 private:
  struct Section {
    const void* data;
    std::uint32_t count, stride;
  };
  template <class Record>
  static void append(std::vector<std::uint8_t>& out, const Record& record) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    out.insert(out.end(), bytes, bytes + sizeof record);
  }
  static std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }
  std::vector<Section> sections_;
};

}  // namespace tenon::ir
