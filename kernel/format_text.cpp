#include "kernel/format_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kernel {
namespace {

struct Conversion {
    bool left = false;
    bool zero = false;
    int width = 0;
    int precision = -1;
};

void put_repeated(TextSink& sink, char c, int count) {
    for (; count > 0; count--)
        sink.put(&c, 1);
}

/// Puts `prefix` and `body` into a field of the conversion's width; `zeros` come between the two.
void put_field(TextSink& sink, const Conversion& conversion, const char* prefix,
               std::size_t prefix_length, const char* body, std::size_t body_length, int zeros) {
    const int padding =
        conversion.width - zeros - static_cast<int>(prefix_length) - static_cast<int>(body_length);
    if (!conversion.left)
        put_repeated(sink, ' ', padding);
    sink.put(prefix, prefix_length);
    put_repeated(sink, '0', zeros);
    sink.put(body, body_length);
    if (conversion.left)
        put_repeated(sink, ' ', padding);
}

void put_number(TextSink& sink, const Conversion& conversion, std::uint64_t value, unsigned base,
                bool upper, const char* prefix) {
    const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[20];
    char* const end = text + sizeof(text);
    char* begin = end;
    for (; value != 0; value /= base)
        *--begin = digits[value % base];
    const auto length = static_cast<int>(end - begin);
    const auto prefix_length = std::strlen(prefix);
    int wanted = conversion.precision < 0 ? 1 : conversion.precision;
    if (conversion.zero && !conversion.left && conversion.precision < 0)
        wanted = std::max(wanted, conversion.width - static_cast<int>(prefix_length));
    put_field(sink, conversion, prefix, prefix_length, begin, static_cast<std::size_t>(length),
              std::max(wanted - length, 0));
}

/// Reads decimal digits, or the next int argument for `*`.
int read_count(const char*& at, std::va_list& arguments) {
    if (*at == '*') {
        at++;
        return va_arg(arguments, int);
    }
    int count = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        count = std::min(count * 10 + (*at - '0'), 4096);
    return count;
}

enum class Length { character, short_int, normal, long_int };

Length read_length(const char*& at) {
    switch (*at) {
        case 'h':
            if (*++at != 'h')
                return Length::short_int;
            at++;
            return Length::character;
        case 'l':
            if (*++at == 'l')
                at++;
            return Length::long_int;
        case 'z':
        case 'j':
        case 't':
            at++;
            return Length::long_int;
        default:
            return Length::normal;
    }
}

std::int64_t signed_argument(Length length, std::va_list& arguments) {
    switch (length) {
        case Length::long_int:
            return va_arg(arguments, long);
        case Length::short_int:
            return static_cast<short>(va_arg(arguments, int));
        case Length::character:
            return static_cast<signed char>(va_arg(arguments, int));
        default:
            return va_arg(arguments, int);
    }
}

std::uint64_t unsigned_argument(Length length, std::va_list& arguments) {
    switch (length) {
        case Length::long_int:
            return va_arg(arguments, unsigned long);
        case Length::short_int:
            return static_cast<unsigned short>(va_arg(arguments, unsigned));
        case Length::character:
            return static_cast<unsigned char>(va_arg(arguments, unsigned));
        default:
            return va_arg(arguments, unsigned);
    }
}

/// Handles the conversion behind a `%`; false if it is none this knows.
bool convert(TextSink& sink, const char*& at, std::va_list& arguments) {
    Conversion conversion;
    for (;; at++) {
        if (*at == '-')
            conversion.left = true;
        else if (*at == '0')
            conversion.zero = true;
        else
            break;
    }
    conversion.width = read_count(at, arguments);
    if (conversion.width < 0) {
        conversion.left = true;
        conversion.width = -conversion.width;
    }
    if (*at == '.')
        conversion.precision = read_count(++at, arguments);
    const Length length = read_length(at);

    switch (*at++) {
        case 'd':
        case 'i': {
            const std::int64_t value = signed_argument(length, arguments);
            const auto bits = static_cast<std::uint64_t>(value);
            put_number(sink, conversion, value < 0 ? 0 - bits : bits, 10, false,
                       value < 0 ? "-" : "");
            return true;
        }
        case 'u':
            put_number(sink, conversion, unsigned_argument(length, arguments), 10, false, "");
            return true;
        case 'x':
        case 'X':
            put_number(sink, conversion, unsigned_argument(length, arguments), 16, at[-1] == 'X',
                       "");
            return true;
        case 'p':
            put_number(sink, conversion, reinterpret_cast<std::uintptr_t>(va_arg(arguments, void*)),
                       16, false, "0x");
            return true;
        case 'c': {
            const char c = static_cast<char>(va_arg(arguments, int));
            put_field(sink, conversion, "", 0, &c, 1, 0);
            return true;
        }
        case 's': {
            const char* text = va_arg(arguments, const char*);
            if (text == nullptr)
                text = "(null)";
            std::size_t text_length = 0;
            while ((conversion.precision < 0 ||
                    text_length < static_cast<std::size_t>(conversion.precision)) &&
                   text[text_length] != '\0')
                text_length++;
            put_field(sink, conversion, "", 0, text, text_length, 0);
            return true;
        }
        case '%':
            sink.put("%", 1);
            return true;
        default:
            return false;
    }
}

class BufferSink final : public TextSink {
  public:
    BufferSink(char* buffer, std::size_t size) : buffer_(buffer), size_(size) {}

    void put(const char* text, std::size_t length) override {
        if (length_ + 1 < size_)
            std::memcpy(buffer_ + length_, text, std::min(length, size_ - 1 - length_));
        length_ += length;
    }
    std::size_t finish() {
        if (size_ != 0)
            buffer_[std::min(length_, size_ - 1)] = '\0';
        return length_;
    }

  private:
    char* buffer_;
    std::size_t size_;
    std::size_t length_ = 0;
};

}  // namespace

void format_text(TextSink& sink, const char* format, std::va_list arguments) {
    // A copy, since an array-typed va_list cannot be passed on by reference.
    std::va_list rest;
    va_copy(rest, arguments);
    for (const char* at = format; *at != '\0';) {
        const char* const percent = at;
        if (*at != '%') {
            while (*at != '\0' && *at != '%')
                at++;
            sink.put(percent, static_cast<std::size_t>(at - percent));
            continue;
        }
        at++;
        if (!convert(sink, at, rest)) {
            // Which argument comes next is no longer known: the rest is shown as it stands.
            sink.put(percent, std::strlen(percent));
            break;
        }
    }
    va_end(rest);
}

void put_text(TextSink& sink, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    format_text(sink, format, arguments);
    va_end(arguments);
}

std::size_t format_to_v(char* buffer, std::size_t size, const char* format,
                        std::va_list arguments) {
    BufferSink sink(buffer, size);
    format_text(sink, format, arguments);
    return sink.finish();
}

std::size_t format_to(char* buffer, std::size_t size, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    const std::size_t length = format_to_v(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

}  // namespace kernel
