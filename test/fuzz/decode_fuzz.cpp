#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "kcdata/reader.hpp"
#include "tools/decode.hpp"
#include "tools/report.hpp"
#include "tools/snapshot.hpp"

/// Any bytes: decode prints well-formed JSON, and calls complete only what the reader finds sound;
/// the report shows what it can.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto buffer = std::as_bytes(std::span(data, size));
    const tools::Decoded decoded = tools::decode(buffer);
    std::string text;
    tools::JsonEmitter json(text);
    emit(json, decoded.root);
    if (!nlohmann::json::accept(text))
        std::abort();
    const tools::Snapshot snapshot = tools::read_snapshot(buffer);
    report(snapshot, nullptr, {});
    report(snapshot, nullptr, {.brief = true});

    kcdata::Reader reader(buffer);
    kcdata::Item item;
    while (reader.next(item)) {
    }
    const bool sound = reader.error() == kcdata::ReadError::none;
    if (!sound && (decoded.problems.empty() || snapshot.problems.empty()))
        std::abort();
    return 0;
}
