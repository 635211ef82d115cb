#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/text_sink.hpp"

namespace tools {

/// Writes JSON text piece by piece. Integers are exact over the whole range of 64 bits. Bytes of a
/// string that are not UTF-8 become U+FFFD, as JSON can hold nothing else.
///
/// The caller opens and closes in order: inside an object each value follows a key(); begin and end
/// match. Text is held back in a buffer of fixed size; all of it is in the sink when everything
/// opened is closed, or the emitter is gone.
class JsonEmitter {
  public:
    /// `indent` blanks for each level; 0 writes everything on one line. `sink` outlives the
    /// emitter.
    explicit JsonEmitter(TextSink& sink, unsigned indent = 2);
    JsonEmitter(const JsonEmitter&) = delete;
    JsonEmitter& operator=(const JsonEmitter&) = delete;
    ~JsonEmitter() { flush(); }

    void begin_object() { begin('{'); }
    void end_object() { end('}'); }
    void begin_array() { begin('['); }
    void end_array() { end(']'); }
    void key(std::string_view name);
    /// A key as quoted_key() returns it.
    void key_text(std::string_view quoted);
    void value(std::uint64_t number);
    void value(std::int64_t number);
    /// Shortest digits that read back as it; null if it is not finite.
    void value(double number);
    void value(std::string_view text);
    void boolean(bool truth);
    /// "0x..." in a string: lower case, no leading zeros.
    void hexadecimal(std::uint64_t number);
    /// Each byte as a value of its own.
    void values(std::span<const std::byte> bytes);
    /// Between documents, or at the end of the last.
    void line_feed();

    // A member of an object: key() and its value.
    void text(std::string_view name, std::string_view value) { key(name), this->value(value); }
    void number(std::string_view name, std::uint64_t number) { key(name), value(number); }
    void signed_number(std::string_view name, std::int64_t number) { key(name), value(number); }
    void address(std::string_view name, std::uint64_t address) { key(name), hexadecimal(address); }
    void truth(std::string_view name, bool truth) { key(name), boolean(truth); }
    /// `write` writes one value for each of the elements.
    template <typename Elements, typename Write>
    void list(std::string_view name, const Elements& elements, Write write) {
        key(name);
        begin_array();
        for (const auto& element : elements)
            write(element);
        end_array();
    }

    /// How many objects and arrays are open.
    std::size_t depth() const { return depth_; }
    /// The sink takes no more: there is no use in going on.
    bool failed() const { return failed_; }

    /// `name` escaped, in quotes, with the colon: what key() makes of it, to be made only once.
    static std::string quoted_key(std::string_view name);

  private:
    static constexpr std::size_t buffer_size = 1 << 16;
    /// Enough for any number, with the comma in front of it.
    static constexpr std::size_t number_room = 24;

    void begin(char bracket);
    void end(char bracket);
    void before_value();
    void line_break();
    /// Where the next `size` bytes go; at most buffer_size.
    char* room(std::size_t size) {
        if (static_cast<std::size_t>(limit_ - position_) < size)
            flush();
        return position_;
    }
    void put(char c) { *room(1) = c, ++position_; }
    void put(std::string_view text);
    void string(std::string_view text);
    void flush();

    TextSink& sink_;
    unsigned indent_;
    std::size_t depth_ = 0;
    /// Nothing stands yet in the innermost object or array.
    bool empty_ = true;
    bool after_key_ = false;
    bool failed_ = false;
    std::unique_ptr<char[]> buffer_;
    char* position_;
    char* limit_;
};

}  // namespace tools
