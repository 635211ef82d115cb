#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

/// Writes JSON text piece by piece onto a string. Integers are exact over the whole range of 64
/// bits. Bytes of a string that are not UTF-8 become U+FFFD, as JSON can hold nothing else.
///
/// The caller opens and closes in order: inside an object each value follows a key(); begin and end
/// match. The text is complete when everything opened is closed.
class JsonEmitter {
  public:
    /// `indent` blanks for each level; 0 writes everything on one line.
    explicit JsonEmitter(std::string& out, unsigned indent = 2) : out_(out), indent_(indent) {}

    void begin_object();
    void end_object();
    void begin_array();
    void end_array();
    void key(std::string_view name);
    void value(std::uint64_t number);
    void value(std::int64_t number);
    void value(std::string_view text);

    /// How many objects and arrays are open.
    std::size_t depth() const { return levels_.size(); }

  private:
    struct Level {
        bool empty = true;
        bool object = false;
    };

    void before_value();
    void line_break();
    void end(char bracket);
    void string(std::string_view text);

    std::string& out_;
    unsigned indent_;
    std::vector<Level> levels_{};
    bool after_key_ = false;
};

}  // namespace tools
