#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

/// Hand-laid buffers: the tests of writer and reader derive each byte from the format's rules, not
/// from the code under test.
class Bytes {
  public:
    Bytes& u8(std::uint8_t value) {
        bytes_.push_back(std::byte{value});
        return *this;
    }
    Bytes& u32(std::uint32_t value) { return little_endian(value, 4); }
    Bytes& u64(std::uint64_t value) { return little_endian(value, 8); }
    Bytes& fill(std::size_t count, std::uint8_t value) {
        bytes_.insert(bytes_.end(), count, std::byte{value});
        return *this;
    }
    Bytes& text(const char* characters) {
        for (; *characters != 0; ++characters)
            u8(static_cast<std::uint8_t>(*characters));
        return *this;
    }
    Bytes& header(std::uint32_t type, std::uint32_t size, std::uint64_t flags) {
        return u32(type).u32(size).u64(flags);
    }

    operator const std::vector<std::byte>&() const { return bytes_; }
    const std::vector<std::byte>& get() const { return bytes_; }

  private:
    Bytes& little_endian(std::uint64_t value, int size) {
        for (int index = 0; index < size; ++index)
            u8(static_cast<std::uint8_t>(value >> (8 * index)));
        return *this;
    }

    std::vector<std::byte> bytes_;
};
