#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "kcdata/reader.hpp"
#include "test/unit/tools/strict_json.hpp"
#include "tools/decode.hpp"
#include "tools/input.hpp"
#include "tools/report.hpp"
#include "tools/snapshot.hpp"

namespace {

using Bytes = std::span<const std::byte>;

void check(bool holds) {
    if (!holds)
        std::abort();
}

bool is_sound(Bytes buffer) {
    kcdata::Reader reader(buffer);
    kcdata::Item item;
    while (reader.next(item)) {
    }
    return reader.error() == kcdata::ReadError::none;
}

/// Decodes `buffer` and looks at the text: one document, or one each line, with no key twice; the
/// same each time.
void check_decode(Bytes buffer, const tools::DecodeOptions& options, bool lines, unsigned indent) {
    std::string text[2];
    for (std::string& each : text) {
        tools::StringSink sink(each);
        tools::JsonEmitter json(sink, indent);
        const tools::Decoded decoded = lines ? tools::decode_lines(buffer, json, options)
                                             : tools::decode(buffer, json, options);
        check(json.depth() == 0);
        check(decoded.written != each.empty());
        check(decoded.problem_count != 0 || is_sound(buffer));
        check(decoded.problems.size() <= tools::Decoded::told_problems);
    }
    check(text[0] == text[1]);
    std::string_view rest = text[0];
    if (!lines && !rest.empty())
        tools_test::parse_strictly(rest);
    while (lines && !rest.empty()) {
        const std::size_t end = rest.find('\n');
        check(end != std::string_view::npos);
        tools_test::parse_strictly(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
}

void check_buffer(Bytes buffer) {
    check_decode(buffer, {}, false, 2);
    check_decode(buffer, {}, true, 0);
    check_decode(buffer, {.full = true}, false, 0);
    check_decode(buffer, {.full = true, .names = true}, true, 0);
    const tools::Snapshot snapshot = tools::read_snapshot(buffer);
    report(snapshot, nullptr, {});
    report(snapshot, nullptr, {.brief = true});
    check(is_sound(buffer) || !snapshot.problems.empty());
}

}  // namespace

/// Any bytes, as they come in a file: what is packed is unpacked up to a limit; each buffer is
/// decoded in every way to well-formed JSON, and is called complete only if the reader finds it
/// sound; the report shows what it can.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    check_buffer(bytes);
    constexpr std::uint64_t limit = 1 << 18;
    const auto input = tools::Input::of({bytes.begin(), bytes.end()}, "input", limit);
    if (!input.ok())
        return 0;
    std::uint64_t sum = 0;
    for (const tools::Input::Buffer& buffer : input.value().buffers()) {
        if (buffer.bytes.size() != size)
            check_buffer(buffer.bytes);
        sum += buffer.bytes.size();
    }
    check(sum <= size + limit);
    return 0;
}
