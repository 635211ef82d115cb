#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tools/item_walk.hpp"
#include "tools/text_sink.hpp"

namespace tools {

/// The text form of kcdata that `encode` reads: a JSON array with one object an item. item_format
/// tells it to users.
extern const char* const item_format;

/// The most one {"zeros": N} stands for.
inline constexpr std::size_t max_zeros = 1 << 28;

/// Writes the JSON objects of one stretch after the other, so that encode() makes the same bytes of
/// them again, whatever they are.
class ItemJsonWriter {
  public:
    explicit ItemJsonWriter(TextSink& sink) : sink_(sink) {}

    void begin();
    void stretch(const Stretch& stretch);
    /// `problem`: what is wrong with how the file ends.
    void end(ItemProblem problem = ItemProblem::none);

    /// Things wrong so far; each has a "note" in the text.
    std::size_t problems() const { return problems_; }
    /// The sink takes no more.
    bool failed() const { return failed_; }

  private:
    void flush();
    void separate();
    void write(const Stretch& stretch);
    void write_bytes(const Stretch& stretch);
    void write_array(const Stretch& stretch);
    void write_plain(const Stretch& stretch);
    void write_nested(std::span<const std::byte> buffer);
    /// ,"key":"00 ...": the bytes in one string or several.
    void write_hex(std::string_view key, std::span<const std::byte> bytes);
    void write_padding(const Stretch& stretch);
    void write_note(ItemProblem problem);

    TextSink& sink_;
    std::string text_{};
    std::size_t level_ = 0;
    bool first_ = true;
    std::size_t problems_ = 0;
    bool failed_ = false;
};

}  // namespace tools
