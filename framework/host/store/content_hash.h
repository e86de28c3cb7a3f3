// SHA-256, for naming files by their content.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::host {

/// Computes SHA-256 piece by piece (FIPS 180-4).
class ContentHash {
 public:
  void add(std::string_view bytes);
  /// The digest in hexadecimal. Ends the computation.
  std::string finish();

 private:
  void block(const std::uint8_t* bytes);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> rest_{};
  std::size_t rest_size_ = 0;
  std::uint64_t size_ = 0;
};

std::string hash_of(std::string_view bytes);
/// Hash of the whole file behind a descriptor.
std::string hash_of_file(int fd);

}  // namespace tenon::host
