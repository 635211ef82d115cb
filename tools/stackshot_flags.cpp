#include "tools/stackshot_flags.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "kcdata/names.hpp"

namespace tools {

namespace {

bool parse_number(std::string_view text, std::uint64_t& value) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Expected<std::uint64_t> parse_stackshot_flags(const std::string& text) {
    const kcdata::ValueNames& known = *kcdata::find_value_names("stackshot_flags");
    std::uint64_t flags = 0;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find_first_of("|,", at), text.size());
        const std::string word = text.substr(at, end - at);
        at = end + 1;
        std::uint64_t value = 0;
        if (parse_number(word, value)) {
            flags |= value;
            continue;
        }
        std::string name = word;
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        const kcdata::ValueName* found = known.find(name);
        if (found == nullptr)
            found = known.find("STACKSHOT_" + name);
        if (found == nullptr)
            return Failure{
                fmt::format("{}: neither a number nor one of the STACKSHOT_ flags", word),
                exit_usage};
        flags |= found->value;
    }
    return flags;
}

}  // namespace tools
