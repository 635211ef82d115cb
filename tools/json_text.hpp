#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tools/failure.hpp"

namespace tools {

/// A value of a JSON text that knows where it stands.
struct JsonValue {
    using Array = std::vector<JsonValue>;
    /// In the order of the text.
    using Object = std::vector<std::pair<std::string, JsonValue>>;

    /// Bytes from the start of the text.
    std::size_t offset = 0;
    /// A number that is no integer of 64 bits is a double.
    std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array,
                 Object>
        content{};

    template <typename T>
    const T* get() const {
        return std::get_if<T>(&content);
    }
    /// Of an object: the value of `key`, or nullptr.
    const JsonValue* find(std::string_view key) const;
};

/// "LINE:COLUMN" of an offset, both from 1; columns are bytes.
std::string json_position(std::string_view text, std::size_t offset);

/// Reads a JSON array and hands over its elements one at a time, so that only one is ever held.
/// Stops at the first that is not taken (false), with no Failure. // and /* */ are allowed. `name`
/// of the text is for messages: "NAME:LINE:COLUMN: what is wrong".
std::optional<Failure> read_json_array(std::string_view text, const std::string& name,
                                       const std::function<bool(const JsonValue&)>& take);

}  // namespace tools
