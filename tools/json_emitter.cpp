#include "tools/json_emitter.hpp"

#include <fmt/format.h>

#include <iterator>

namespace tools {

namespace {

/// Length of the well-formed UTF-8 sequence `text` begins with (RFC 3629), 0 if there is none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return i < text.size() && byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return continues(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        // Neither overlong forms nor surrogates.
        const bool second = continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
        return second && continues(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const bool second = continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
        return second && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

}  // namespace

void JsonEmitter::begin_object() {
    before_value();
    out_ += '{';
    levels_.push_back({true, true});
}

void JsonEmitter::end_object() {
    end('}');
}

void JsonEmitter::begin_array() {
    before_value();
    out_ += '[';
    levels_.push_back({true, false});
}

void JsonEmitter::end_array() {
    end(']');
}

void JsonEmitter::key(std::string_view name) {
    before_value();
    string(name);
    out_ += indent_ != 0 ? ": " : ":";
    after_key_ = true;
}

void JsonEmitter::value(std::uint64_t number) {
    before_value();
    fmt::format_to(std::back_inserter(out_), "{}", number);
}

void JsonEmitter::value(std::int64_t number) {
    before_value();
    fmt::format_to(std::back_inserter(out_), "{}", number);
}

void JsonEmitter::value(std::string_view text) {
    before_value();
    string(text);
}

void JsonEmitter::before_value() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (levels_.empty())
        return;
    if (!levels_.back().empty)
        out_ += ',';
    levels_.back().empty = false;
    line_break();
}

void JsonEmitter::line_break() {
    if (indent_ == 0)
        return;
    out_ += '\n';
    out_.append(levels_.size() * indent_, ' ');
}

void JsonEmitter::end(char bracket) {
    const bool empty = levels_.back().empty;
    levels_.pop_back();
    if (!empty)
        line_break();
    out_ += bracket;
}

void JsonEmitter::string(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
        const char c = text.front();
        const std::size_t length = sequence_length(text);
        if (length == 0) {
            out_ += "\xef\xbf\xbd";
            text.remove_prefix(1);
            continue;
        }
        if (c == '"' || c == '\\') {
            out_ += '\\';
            out_ += c;
        } else if (c == '\n') {
            out_ += "\\n";
        } else if (c == '\t') {
            out_ += "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out_ += text.substr(0, length);
        }
        text.remove_prefix(length);
    }
    out_ += '"';
}

}  // namespace tools
