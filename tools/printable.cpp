#include "tools/printable.hpp"

#include <fmt/core.h>

#include "tools/append.hpp"

namespace tools {

std::string printable(std::string_view text, bool keep_line_feeds) {
    std::string result;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '\r')
            continue;
        const bool control = code < 0x20 || code == 0x7f;
        if (!control || c == '\t' || (c == '\n' && keep_line_feeds))
            result += c;
        else
            append(result, "\\x{:02x}", code);
    }
    return result;
}

}  // namespace tools
