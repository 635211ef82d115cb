#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/snapshot.hpp"

namespace tools {

// What several views of a snapshot say in the same words. Names are made printable().

/// name [pid]
std::string task_title(const TaskSnapshot& task);
/// thread 12 "name"
std::string thread_title(const ThreadSnapshot& thread);
/// "TH_WAIT" and so on, of SS_TH_*.
std::vector<const char*> state_names(std::uint32_t state);
/// "1 task", "2 tasks"
std::string plural(std::uint64_t count, std::string_view what);
/// A span of time in the unit that suits it, to about four digits; "unknown".
std::string time_text(std::optional<double> nanoseconds);
/// "2023-11-14 22:13:20" of seconds since 1970.
std::string utc_text(std::uint64_t seconds);
/// `bytes` as lowercase hexadecimal digits.
std::string hexadecimal(std::span<const std::uint8_t> bytes);
/// 01234567-89ab-cdef-0123-456789abcdef
std::string uuid_text(const std::array<std::uint8_t, 16>& uuid);

}  // namespace tools
