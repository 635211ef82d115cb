#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "platform/arm64/devicetree/board.hpp"

namespace platform {

/// What is wrong with a device tree.
enum class DevicetreeStatus : unsigned char {
    ok,
    bad_header,        ///< no device tree, or truncated, or a version we do not read
    bad_structure,     ///< libfdt cannot walk it
    missing_node,      ///< a node we need is not there
    missing_property,  ///< a property we need is not there
    bad_property,      ///< a property has a length or value that cannot be
    not_translatable,  ///< an address has no way through `ranges` up to the root
    too_many,          ///< more than Board has room for
};

/// The status' name as above, with words instead of underscores.
const char* name(DevicetreeStatus status);

struct DevicetreeResult {
    DevicetreeStatus status = DevicetreeStatus::ok;
    /// Path of the node and name of the property it is about, NUL-terminated; empty if ok.
    std::array<char, 128> where{};

    constexpr bool ok() const { return status == DevicetreeStatus::ok; }
};

/// Reads the tree in `blob` into `board`. Addresses are translated through `ranges`. The strings of
/// `board` point into `blob`, which must live as long. On an error `board` holds what was read
/// until then; the UART is read first, so that there is a way to say so. No allocation.
[[nodiscard]] DevicetreeResult parse_devicetree(std::span<const std::byte> blob, Board& board);

/// Moves the CPU we booted on to the front of board.cpus; false if the tree does not list it.
[[nodiscard]] bool set_boot_cpu(Board& board, Mpidr mpidr);

/// The size a device tree's header gives, or 0 if `header` (8 bytes or more) is not one.
std::size_t devicetree_size(std::span<const std::byte> header);

}  // namespace platform
