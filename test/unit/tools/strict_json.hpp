#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tools_test {

/// Parses a JSON document in which no object has a key twice; throws otherwise.
inline nlohmann::json parse_strictly(std::string_view text) {
    std::vector<std::set<std::string>> open;
    const auto check = [&open](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        using Event = nlohmann::json::parse_event_t;
        if (event == Event::object_start)
            open.emplace_back();
        else if (event == Event::object_end)
            open.pop_back();
        else if (event == Event::key && !open.back().insert(value.get<std::string>()).second)
            throw std::runtime_error("a key twice: " + value.get<std::string>());
        return true;
    };
    return nlohmann::json::parse(text, check);
}

}  // namespace tools_test
