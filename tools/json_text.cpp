#include "tools/json_text.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tools {

namespace {

/// Objects and arrays inside each other: more than any sensible text has.
constexpr std::size_t max_depth = 128;

/// Hands characters to the parser, and tells how far it has come.
class CountingIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* position, const char** reached)
        : position_(position), reached_(reached) {}

    reference operator*() const { return *position_; }
    CountingIterator& operator++() {
        *reached_ = ++position_;
        return *this;
    }
    CountingIterator operator++(int) {
        const CountingIterator old = *this;
        ++*this;
        return old;
    }
    bool operator==(const CountingIterator& other) const { return position_ == other.position_; }
    bool operator!=(const CountingIterator& other) const { return position_ != other.position_; }

  private:
    const char* position_;
    const char** reached_;
};

/// Builds a JsonValue of each element of the outermost array.
class Builder {
  public:
    Builder(std::string_view text, const std::function<bool(const JsonValue&)>& take)
        : text_(text), take_(take), reached_(text.data()) {}

    const char** reached() { return &reached_; }
    /// What is wrong, and where; empty: nothing.
    const std::string& problem() const { return problem_; }
    std::size_t problem_offset() const { return problem_offset_; }

    // What the parser calls, false to stop it.
    bool null() { return value(nullptr); }
    bool boolean(bool truth) { return value(truth); }
    bool number_integer(std::int64_t number) { return value(number); }
    bool number_unsigned(std::uint64_t number) { return value(number); }
    bool number_float(double number, const std::string&) { return value(number); }
    bool string(std::string& text) { return value(std::move(text)); }
    bool binary(nlohmann::json::binary_t&) { return false; }
    bool start_object(std::size_t) { return open(JsonValue{.content = JsonValue::Object()}); }
    bool start_array(std::size_t) { return open(JsonValue{.content = JsonValue::Array()}); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& name) {
        const std::size_t offset = token();
        auto& object = *std::get_if<JsonValue::Object>(&open_.back().content);
        const bool there = std::any_of(object.begin(), object.end(),
                                       [&name](const auto& entry) { return entry.first == name; });
        if (there)
            return fail(offset, "the key \"" + name + "\" is there twice");
        object.emplace_back(std::move(name), JsonValue{});
        return true;
    }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::json::exception& error) {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: what"
        const std::string_view text = error.what();
        const std::size_t place = text.find(": ");
        return fail(position == 0 ? 0 : position - 1,
                    std::string(place == text.npos ? text : text.substr(place + 2)));
    }

  private:
    bool fail(std::size_t offset, std::string problem) {
        problem_offset_ = std::min(offset, text_.size());
        problem_ = std::move(problem);
        return false;
    }

    /// Where the token begins that was just read; the next is looked for behind it.
    std::size_t token() {
        std::size_t at = behind_;
        for (;;) {
            at = std::min(text_.find_first_not_of(" \t\r\n,:", at), text_.size());
            if (text_.substr(at).starts_with("//"))
                at = std::min(text_.find('\n', at), text_.size());
            else if (text_.substr(at).starts_with("/*"))
                at = std::min(text_.find("*/", at + 2), text_.size() - 2) + 2;
            else
                break;
        }
        advance();
        return at;
    }
    void advance() { behind_ = static_cast<std::size_t>(reached_ - text_.data()); }

    /// Puts the value where it belongs and returns it.
    JsonValue* place(JsonValue value) {
        if (auto* array = std::get_if<JsonValue::Array>(&open_.back().content))
            return &array->emplace_back(std::move(value));
        auto& object = *std::get_if<JsonValue::Object>(&open_.back().content);
        return &(object.back().second = std::move(value));
    }

    template <typename T>
    bool value(T&& content) {
        JsonValue value{token(), std::forward<T>(content)};
        if (!begun_)
            return fail(value.offset, "the text is not an array of items");
        if (open_.empty())
            return take_(value);
        place(std::move(value));
        return true;
    }

    bool open(JsonValue value) {
        value.offset = token();
        if (!begun_) {
            if (value.get<JsonValue::Array>() == nullptr)
                return fail(value.offset, "the text is not an array of items");
            begun_ = true;
            return true;
        }
        if (open_.size() == max_depth)
            return fail(value.offset, "too many objects and arrays inside each other");
        open_.push_back(std::move(value));
        return true;
    }

    bool close() {
        advance();
        // The outermost array.
        if (open_.empty())
            return true;
        JsonValue value = std::move(open_.back());
        open_.pop_back();
        if (open_.empty())
            return take_(value);
        place(std::move(value));
        return true;
    }

    std::string_view text_;
    const std::function<bool(const JsonValue&)>& take_;
    const char* reached_;
    std::size_t behind_ = 0;
    bool begun_ = false;
    std::vector<JsonValue> open_{};
    std::string problem_{};
    std::size_t problem_offset_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
    const auto* object = get<Object>();
    if (object == nullptr)
        return nullptr;
    const auto found = std::find_if(object->begin(), object->end(),
                                    [key](const auto& entry) { return entry.first == key; });
    return found != object->end() ? &found->second : nullptr;
}

std::string json_position(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t feed = before.rfind('\n');
    return fmt::format("{}:{}", line,
                       feed == before.npos ? before.size() + 1 : before.size() - feed);
}

std::optional<Failure> read_json_array(std::string_view text, const std::string& name,
                                       const std::function<bool(const JsonValue&)>& take) {
    Builder builder(text, take);
    constexpr bool whole_text = true, comments = true;
    nlohmann::json::sax_parse(CountingIterator(text.data(), builder.reached()),
                              CountingIterator(text.data() + text.size(), builder.reached()),
                              &builder, nlohmann::json::input_format_t::json, whole_text, comments);
    if (builder.problem().empty())
        return std::nullopt;
    return Failure{fmt::format("{}:{}: {}", name, json_position(text, builder.problem_offset()),
                               builder.problem())};
}

}  // namespace tools
