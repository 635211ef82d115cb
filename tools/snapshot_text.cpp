#include "tools/snapshot_text.hpp"

#include <fmt/core.h>

#include <ctime>
#include <utility>

#include "kcdata/records.hpp"
#include "tools/append.hpp"
#include "tools/printable.hpp"

namespace tools {

std::string task_title(const TaskSnapshot& task) {
    return fmt::format("{} [{}]", task.name.empty() ? "(no name)" : printable(task.name),
                       task.pid ? fmt::format("{}", *task.pid) : "unknown");
}

std::string thread_title(const ThreadSnapshot& thread) {
    return thread.name.empty() ? fmt::format("thread {}", thread.id)
                               : fmt::format("thread {} \"{}\"", thread.id, printable(thread.name));
}

std::vector<const char*> state_names(std::uint32_t state) {
    using namespace kcdata;
    constexpr std::pair<std::uint32_t, const char*> bits[] = {
        {SS_TH_WAIT, "TH_WAIT"},
        {SS_TH_SUSP, "TH_SUSP"},
        {SS_TH_RUN, "TH_RUN"},
        {SS_TH_UNINT, "TH_UNINT"},
        {SS_TH_TERMINATE, "TH_TERMINATE"},
        {SS_TH_TERMINATE2, "TH_TERMINATE2"},
        {SS_TH_WAIT_REPORT, "TH_WAIT_REPORT"},
        {SS_TH_IDLE, "TH_IDLE"},
    };
    std::vector<const char*> names;
    for (const auto& [bit, name] : bits)
        if ((state & bit) != 0)
            names.push_back(name);
    return names;
}

std::string plural(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string time_text(std::optional<double> nanoseconds) {
    if (!nanoseconds)
        return "unknown";
    constexpr struct {
        double size;
        const char* name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    for (const auto& [size, name] : units)
        if (*nanoseconds >= size) {
            const double value = *nanoseconds / size;
            return fmt::format("{:.{}f} {}", value, value < 10 ? 3 : value < 100 ? 2 : 1, name);
        }
    return fmt::format("{:.0f} ns", *nanoseconds);
}

std::string utc_text(std::uint64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    // A year that does not fit into an int.
    if (gmtime_r(&time, &parts) == nullptr)
        return "unknown";
    char text[64];
    return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes)
        append(text, "{:02x}", byte);
    return text;
}

std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
    std::string text = hexadecimal(uuid);
    for (const unsigned place : {20u, 16u, 12u, 8u})
        text.insert(place, 1, '-');
    return text;
}

}  // namespace tools
