#include "tools/console_text.hpp"

#include <fmt/core.h>

#include <string_view>

#include "tools/printable.hpp"

namespace tools {

std::string console_text(std::span<const std::byte> bytes, bool backspaces) {
    std::string shown;
    for (const std::byte byte : bytes) {
        const char c = static_cast<char>(byte);
        if (c == '\b' && backspaces)
            shown += c;
        else if (std::to_integer<unsigned>(byte) < 0x80)
            shown += printable(std::string_view(&c, 1), true);
        else
            shown += fmt::format("\\x{:02x}", std::to_integer<unsigned>(byte));
    }
    return shown;
}

}  // namespace tools
