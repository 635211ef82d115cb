#include "kernel/boot_arguments.hpp"

namespace kernel {
namespace {

constinit BootArguments the_boot_arguments;

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t scale = 1;
    if (!text.empty()) {
        switch (text.back()) {
            case 'K':
                scale = std::uint64_t{1} << 10;
                break;
            case 'M':
                scale = std::uint64_t{1} << 20;
                break;
            case 'G':
                scale = std::uint64_t{1} << 30;
                break;
            default:
                break;
        }
        if (scale != 1)
            text.remove_suffix(1);
    }
    std::uint64_t base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    if (text.empty())
        return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : text) {
        const auto digit = static_cast<std::uint64_t>(digit_value(c));
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return std::nullopt;
    }
    if (__builtin_mul_overflow(value, scale, &value))
        return std::nullopt;
    return value;
}

}  // namespace

BootArguments& boot_arguments() {
    return the_boot_arguments;
}

/// Reads the word at `position` and moves behind it; false at the end.
bool BootArguments::next(std::size_t& position, std::size_t& index, Word& word) const {
    while (position < text_.size() && is_blank(text_[position]))
        position++;
    if (position == text_.size())
        return false;
    const std::size_t begin = position;
    while (position < text_.size() && !is_blank(text_[position]) && text_[position] != '=')
        position++;
    word.key = text_.substr(begin, position - begin);
    word.value = {};
    if (position < text_.size() && text_[position] == '=') {
        position++;
        const bool quoted = position < text_.size() && text_[position] == '"';
        if (quoted)
            position++;
        const std::size_t value = position;
        while (position < text_.size() &&
               (quoted ? text_[position] != '"' : !is_blank(text_[position])))
            position++;
        word.value = text_.substr(value, position - value);
        if (quoted && position < text_.size())
            position++;
    }
    word.index = index++;
    return true;
}

std::optional<std::string_view> BootArguments::find(std::string_view key) {
    std::optional<std::string_view> value;
    Word word;
    for (std::size_t position = 0, index = 0; next(position, index, word);) {
        if (word.key != key)
            continue;
        value = word.value;
        if (word.index < max_tracked)
            used_ |= std::uint64_t{1} << word.index;
    }
    return value;
}

std::uint64_t BootArguments::number(std::string_view key, std::uint64_t fallback, std::uint64_t low,
                                    std::uint64_t high) {
    const auto text = find(key);
    if (!text)
        return fallback;
    const auto value = parse_number(*text);
    if (!value) {
        complain(key, *text, "is not a number");
        return fallback;
    }
    if (*value < low || *value > high) {
        complain(key, *text, "is out of range");
        return fallback;
    }
    return *value;
}

bool BootArguments::flag(std::string_view key, bool fallback) {
    const auto text = find(key);
    if (!text)
        return fallback;
    if (text->empty() || *text == "1" || *text == "on" || *text == "yes" || *text == "true")
        return true;
    if (*text == "0" || *text == "off" || *text == "no" || *text == "false")
        return false;
    complain(key, *text, "is neither on nor off");
    return fallback;
}

std::size_t BootArguments::choice(std::string_view key, std::span<const std::string_view> names,
                                  std::size_t fallback) {
    const auto text = find(key);
    if (!text)
        return fallback;
    for (std::size_t i = 0; i < names.size(); i++)
        if (names[i] == *text)
            return i;
    complain(key, *text, "is not one of its values");
    return fallback;
}

void BootArguments::complain_of_unused() {
    Word word;
    for (std::size_t position = 0, index = 0; next(position, index, word);)
        if (word.index < max_tracked && (used_ >> word.index & 1) == 0)
            complain(word.key, word.value, "is not known");
}

void BootArguments::complain(std::string_view key, std::string_view value, const char* why) const {
    if (complaint_ != nullptr)
        complaint_(key, value, why);
}

}  // namespace kernel
