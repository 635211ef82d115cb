#include "tools/json_emitter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tools/utf8.hpp"

namespace tools {

namespace {

/// Whether a character of ASCII stands in a JSON string as it is.
constexpr bool is_plain(char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/// Calls put(std::string_view) with `text` as the inside of a JSON string, in pieces.
template <typename Put>
void escape(std::string_view text, Put put) {
    while (!text.empty()) {
        const auto special = std::find_if_not(text.begin(), text.end(), is_plain);
        if (special != text.begin()) {
            const auto size = static_cast<std::size_t>(special - text.begin());
            put(text.substr(0, size));
            text.remove_prefix(size);
            continue;
        }
        const char c = text.front();
        const std::size_t length = utf8_sequence_length(text);
        if (length == 0) {
            put("\xef\xbf\xbd");
            text.remove_prefix(1);
            continue;
        }
        if (length > 1) {
            put(text.substr(0, length));
        } else if (c == '"') {
            put("\\\"");
        } else if (c == '\\') {
            put("\\\\");
        } else if (c == '\n') {
            put("\\n");
        } else if (c == '\t') {
            put("\\t");
        } else {
            constexpr std::string_view digits = "0123456789abcdef";
            const auto code = static_cast<unsigned char>(c);
            const char escaped[] = {'\\', 'u', '0', '0', digits[code >> 4], digits[code & 0xf]};
            put(std::string_view(escaped, sizeof(escaped)));
        }
        text.remove_prefix(length);
    }
}

struct Decimal {
    char digits[3];
    unsigned char size;
};

/// Every byte as text.
constexpr auto decimals = [] {
    std::array<Decimal, 256> table{};
    for (unsigned value = 0; value < table.size(); ++value) {
        Decimal& text = table[value];
        if (value >= 100)
            text.digits[text.size++] = static_cast<char>('0' + value / 100);
        if (value >= 10)
            text.digits[text.size++] = static_cast<char>('0' + value / 10 % 10);
        text.digits[text.size++] = static_cast<char>('0' + value % 10);
    }
    return table;
}();

/// Every number below 100 as two digits.
constexpr auto pairs = [] {
    std::array<char, 200> table{};
    for (std::size_t value = 0; value < 100; ++value) {
        table[2 * value] = static_cast<char>('0' + value / 10);
        table[2 * value + 1] = static_cast<char>('0' + value % 10);
    }
    return table;
}();

/// Writes eight digits of a number below 10^8.
void put_eight(char* out, std::uint32_t number) {
    const std::uint32_t high = number / 10000, low = number % 10000;
    for (const std::uint32_t pair : {high / 100, high % 100, low / 100, low % 100}) {
        std::memcpy(out, &pairs[2 * pair], 2);
        out += 2;
    }
}

/// Writes the number's digits to `out`, which has room for 20; returns what is behind them. Long
/// numbers, as addresses are, go by eight digits: dividing digit by digit takes most of the time
/// of a stack otherwise.
char* put_number(char* out, std::uint64_t number) {
    constexpr std::uint64_t eight_digits = 100'000'000;
    if (number < decimals.size()) {
        const Decimal& text = decimals[number];
        std::memcpy(out, text.digits, sizeof(text.digits));
        return out + text.size;
    }
    if (number < eight_digits)
        return std::to_chars(out, out + 8, static_cast<std::uint32_t>(number)).ptr;
    out = put_number(out, number / eight_digits);
    put_eight(out, static_cast<std::uint32_t>(number % eight_digits));
    return out + 8;
}

}  // namespace

JsonEmitter::JsonEmitter(TextSink& sink, unsigned indent)
    : sink_(sink),
      indent_(indent),
      buffer_(std::make_unique_for_overwrite<char[]>(buffer_size)),
      position_(buffer_.get()),
      limit_(buffer_.get() + buffer_size) {}

void JsonEmitter::begin(char bracket) {
    before_value();
    put(bracket);
    ++depth_;
    empty_ = true;
}

void JsonEmitter::end(char bracket) {
    --depth_;
    if (!empty_)
        line_break();
    empty_ = false;
    put(bracket);
    if (depth_ == 0)
        flush();
}

void JsonEmitter::key(std::string_view name) {
    before_value();
    string(name);
    put(indent_ != 0 ? ": " : ":");
    after_key_ = true;
}

void JsonEmitter::key_text(std::string_view quoted) {
    before_value();
    put(quoted);
    if (indent_ != 0)
        put(' ');
    after_key_ = true;
}

void JsonEmitter::value(std::uint64_t number) {
    before_value();
    position_ = put_number(room(number_room), number);
}

void JsonEmitter::value(std::int64_t number) {
    before_value();
    char* out = room(number_room);
    auto magnitude = static_cast<std::uint64_t>(number);
    if (number < 0) {
        *out++ = '-';
        magnitude = -magnitude;
    }
    position_ = put_number(out, magnitude);
}

void JsonEmitter::value(double number) {
    before_value();
    if (!std::isfinite(number)) {
        put("null");
        return;
    }
    constexpr std::size_t longest = 32;
    char* const out = room(longest);
    position_ = std::to_chars(out, out + longest, number).ptr;
}

void JsonEmitter::value(std::string_view text) {
    before_value();
    string(text);
}

void JsonEmitter::boolean(bool truth) {
    before_value();
    put(truth ? "true" : "false");
}

void JsonEmitter::hexadecimal(std::uint64_t number) {
    before_value();
    char* out = room(number_room);
    *out++ = '"';
    *out++ = '0';
    *out++ = 'x';
    out = std::to_chars(out, out + 16, number, 16).ptr;
    *out++ = '"';
    position_ = out;
}

void JsonEmitter::values(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
        before_value();
        position_ = put_number(room(number_room), std::to_integer<std::uint64_t>(byte));
    }
}

void JsonEmitter::line_feed() {
    put('\n');
    if (depth_ == 0)
        flush();
}

std::string JsonEmitter::quoted_key(std::string_view name) {
    std::string text = "\"";
    escape(name, [&text](std::string_view piece) { text += piece; });
    return text + "\":";
}

void JsonEmitter::before_value() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (depth_ == 0)
        return;
    if (!empty_)
        put(',');
    empty_ = false;
    line_break();
}

void JsonEmitter::line_break() {
    if (indent_ == 0)
        return;
    put('\n');
    for (std::size_t blanks = depth_ * indent_; blanks != 0;) {
        const std::size_t size = std::min<std::size_t>(blanks, 64);
        std::memset(room(size), ' ', size);
        position_ += size;
        blanks -= size;
    }
}

void JsonEmitter::put(std::string_view text) {
    while (text.size() > buffer_size) {
        const std::size_t size = buffer_size;
        std::memcpy(room(size), text.data(), size);
        position_ += size;
        text.remove_prefix(size);
    }
    std::memcpy(room(text.size()), text.data(), text.size());
    position_ += text.size();
}

void JsonEmitter::string(std::string_view text) {
    put('"');
    escape(text, [this](std::string_view piece) { put(piece); });
    put('"');
}

void JsonEmitter::flush() {
    const std::string_view text(buffer_.get(), static_cast<std::size_t>(position_ - buffer_.get()));
    position_ = buffer_.get();
    failed_ = failed_ || !sink_.write(text);
}

}  // namespace tools
