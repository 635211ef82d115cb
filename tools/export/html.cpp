#include <zlib.h>

#include <new>
#include <string>
#include <vector>

#include "tools/append.hpp"
#include "tools/export/export.hpp"
#include "tools/export/page_data.hpp"
#include "tools/export/page_pieces.hpp"
#include "tools/item_text.hpp"
#include "tools/item_walk.hpp"

// One page with everything in it: it needs no network, and shows what tools/export/page/ makes of
// the data. Names come from the capture, so nothing of them is ever HTML: the data are in script
// elements of types that browsers do not run, and those end only at "</script".

namespace tools {

namespace {

/// Of more than this the page has no raw records: they take several times as much text.
constexpr std::size_t most_bytes_shown = 32 << 20;

/// Passes JSON on so that neither HTML nor JavaScript can take any of it for their own.
class ScriptSink final : public TextSink {
  public:
    explicit ScriptSink(TextSink& sink) : sink_(sink) {}

    bool write(std::string_view text) override {
        std::string safe;
        safe.reserve(text.size());
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::string_view rest = text.substr(i);
            // Outside of strings JSON has none of them.
            if (rest[0] == '<' || rest[0] == '>' || rest[0] == '&') {
                append(safe, "\\u{:04x}", rest[0]);
            } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
                safe += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
                i += 2;
            } else {
                safe += rest[0];
            }
        }
        return sink_.write(safe);
    }

  private:
    TextSink& sink_;
};

std::string base64(std::span<const std::uint8_t> bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t size = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j)
            group = group << 8 | (j < size ? bytes[i + j] : 0u);
        for (std::size_t j = 0; j < 4; ++j)
            text += j <= size ? digits[group >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

/// zlib's stream of `bytes` in base64, as the page unpacks it.
std::string packed(std::string_view bytes) {
    uLongf size = compressBound(bytes.size());
    std::vector<std::uint8_t> result(size);
    if (compress2(result.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(),
                  Z_BEST_COMPRESSION) != Z_OK)
        throw std::bad_alloc();
    return base64(std::span(result).first(size));
}

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool shown_whole(const ExportedCapture& capture) {
    return capture.buffer.size() <= most_bytes_shown;
}

/// What `stackshot dump` shows.
std::string dump_text(std::span<const std::byte> buffer) {
    std::string text;
    StringSink sink(text);
    {
        ItemTextWriter writer(sink);
        ItemWalk walk(buffer);
        Stretch stretch;
        while (walk.next(stretch))
            writer.stretch(stretch);
        if (walk.problem_at_end() != ItemProblem::none)
            writer.problem(buffer.size(), walk.problem_at_end());
    }
    return text;
}

std::string html_text(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        if (c == '<')
            safe += "&lt;";
        else if (c == '&')
            safe += "&amp;";
        else
            safe += c;
    }
    return safe;
}

}  // namespace

void write_html(std::span<const ExportedCapture> captures, TextSink& sink) {
    sink.write(page_pieces[0]);
    sink.write(captures.empty() ? "stackshot" : html_text(captures[0].place) + " – stackshot");
    sink.write(page_pieces[1]);
    ScriptSink script(sink);
    JsonEmitter json(script, 0);
    json.begin_array();
    for (const ExportedCapture& capture : captures)
        write_page_data(capture, json);
    json.end_array();
    // One line for each capture; an empty one says that it is too large.
    sink.write(page_pieces[2]);
    for (const ExportedCapture& capture : captures)
        sink.write((shown_whole(capture) ? packed(dump_text(capture.buffer)) : "") + '\n');
    sink.write(page_pieces[3]);
    for (const ExportedCapture& capture : captures)
        sink.write((shown_whole(capture) ? packed(text_of(capture.buffer)) : "") + '\n');
    sink.write(page_pieces[4]);
}

}  // namespace tools
