#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/failure.hpp"

namespace tools {

/// Makes the bytes of a text in the item format (item_format in item_json.hpp), item by item, and
/// hands them to `put`. `name` of the text is for messages. A Failure names line and column, the
/// path in the text and what is wrong; what came before it was handed over.
std::optional<Failure> encode(std::string_view text, const std::string& name,
                              const std::function<void(std::span<const std::byte>)>& put);

}  // namespace tools
