#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kcdata/schema.hpp"
#include "tools/item_walk.hpp"
#include "tools/text_sink.hpp"

namespace tools {

/// Shows stretch after stretch as lines: offset in the file, what stands there, and below it every
/// field with its offset, value and names, what has no field as hexadecimal bytes, and what is
/// wrong. Containers indent.
class ItemTextWriter {
  public:
    explicit ItemTextWriter(TextSink& sink) : sink_(sink) {}
    ~ItemTextWriter() { flush(); }
    ItemTextWriter(const ItemTextWriter&) = delete;
    ItemTextWriter& operator=(const ItemTextWriter&) = delete;

    void stretch(const Stretch& stretch);
    /// A line about what is wrong at `offset`.
    void problem(std::size_t offset, ItemProblem problem);

    /// Things wrong so far.
    std::size_t problems() const { return problems_; }
    /// The sink takes no more.
    bool failed() const { return failed_; }

  private:
    using Payload = std::span<const std::byte>;

    void line(std::size_t offset, std::string_view text);
    void flush();
    void item(const Stretch& stretch);
    void array(const Stretch& stretch);
    void payload(std::uint32_t type, Payload payload, std::size_t offset);
    std::size_t fields(std::uint32_t type, std::span<const kcdata::Field> fields, Payload payload,
                       std::size_t offset);
    void hexadecimal(Payload bytes, std::size_t offset);
    void nested(Payload buffer, std::size_t offset);

    TextSink& sink_;
    std::string text_{};
    /// Added to every offset: of the buffer inside of the file.
    std::size_t base_ = 0;
    /// Levels of containers and buffers around.
    std::size_t level_ = 0;
    std::size_t buffers_ = 0;
    std::size_t problems_ = 0;
    bool failed_ = false;
};

}  // namespace tools
