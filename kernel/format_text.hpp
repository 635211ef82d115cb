#pragma once

#include <cstdarg>
#include <cstddef>

namespace kernel {

/// Takes formatted text piece by piece.
class TextSink {
  public:
    virtual void put(const char* text, std::size_t length) = 0;

  protected:
    ~TextSink() = default;
};

/// printf's formatting for the kernel: %d %i %u %x %X %p %c %s %% with the flags `-` and `0`, width
/// and precision (numbers or `*`), and the lengths h, hh, l, ll, z, j, t. Integer registers only,
/// no locks, no allocation: any context, panic and stop included. A conversion it does not know is
/// printed as it stands.
void format_text(TextSink& sink, const char* format, std::va_list arguments);

/// The same for arguments of its own.
[[gnu::format(printf, 2, 3)]] void put_text(TextSink& sink, const char* format, ...);

/// Formats into `buffer`, always NUL-terminated if `size` is not 0. Returns the length the whole
/// text has, which may be more than fits.
[[gnu::format(printf, 3, 4)]] std::size_t format_to(char* buffer, std::size_t size,
                                                    const char* format, ...);
std::size_t format_to_v(char* buffer, std::size_t size, const char* format, std::va_list arguments);

}  // namespace kernel
