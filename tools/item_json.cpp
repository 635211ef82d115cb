#include "tools/item_json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kcdata/names.hpp"
#include "kcdata/types.hpp"
#include "tools/append.hpp"
#include "tools/field_value.hpp"
#include "tools/item_layout.hpp"
#include "tools/utf8.hpp"

namespace tools {

using kcdata::Field;
using kcdata::FieldType;
using Payload = std::span<const std::byte>;

// clang-format off
const char* const item_format =
    "\n"
    "The text is a JSON array with one object for each item. // comments are allowed.\n"
    "\n"
    "  {\"type\": T, \"fields\": {NAME: VALUE, ...}}   an item: fields as in XNU's struct, those\n"
    "                                              left out are 0\n"
    "  {\"type\": T, \"hex\": \"00 01 ...\"}             an item: the bytes of its payload\n"
    "  {\"type\": T, \"items\": [...]}                 an item that is a whole buffer\n"
    "  {\"array\": T, \"elements\": [...]}             an array: each {NAME: VALUE, ...}, or the\n"
    "                                              bare value of the only field, or {\"hex\": ...}\n"
    "  {\"container\": T, \"id\": N, \"items\": [...]}   a container: begin and end around the items\n"
    "  {\"container\": T, \"id\": N}                   only the begin\n"
    "  {\"container_end\": N}                        only the end\n"
    "  {\"bytes\": \"00 01 ...\"}                      no item, just bytes\n"
    "  {\"zeros\": N}                                so many bytes of zero\n"
    "\n"
    "T is XNU's name (STACKSHOT_KCTYPE_TASK_SNAPSHOT), a number, or \"0x905\". A number is a JSON number\n"
    "or \"0x...\"; of flags and enumerations also \"NAME|NAME|0x40\". A text is a string, filled up with\n"
    "zeros; where it takes the rest of the item, one NUL follows it. A UUID is a string of hexadecimal\n"
    "digits. Any text or list of numbers may be {\"hex\": \"...\"}. Instead of one string of hexadecimal\n"
    "digits there may be a list of them, with comments in between.\n"
    "\n"
    "What follows from this is filled in as XNU's writer does it: size, flags, and padding to a multiple\n"
    "of 16. To write something else, give:\n"
    "\n"
    "  \"length\": N         bytes of the payload: cut off there, or filled up with zeros\n"
    "  \"tail\": \"...\"       bytes behind the fields\n"
    "  \"element_size\": N   bytes of each element\n"
    "  \"padding\": \"...\"    the bytes behind the payload\n"
    "  \"flags\": N, \"type\": T (of an array), \"size\": N, \"count\": N\n"
    "                      what the header says\n"
    "  \"note\": \"...\"       nothing; for the reader\n";
// clang-format on

namespace {

/// Bytes of a {"bytes"} object at most, to keep lines in bounds.
constexpr std::size_t bytes_in_line = 1024;

void append_hex(std::string& out, Payload bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += '"';
    for (const std::byte byte : bytes) {
        out += digits[std::to_integer<unsigned>(byte) >> 4];
        out += digits[std::to_integer<unsigned>(byte) & 0xf];
    }
    out += '"';
}

/// The text in front of the first NUL, if a JSON string can hold it as it is and only zeros follow
/// it.
std::optional<std::string_view> plain_text(Payload bytes) {
    const std::string_view text = text_in(bytes);
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t length = utf8_sequence_length(rest);
        const auto first = static_cast<unsigned char>(rest.front());
        if (length == 0 || first == 0x7f || (first < 0x20 && first != '\n' && first != '\t'))
            return std::nullopt;
        rest.remove_prefix(length);
    }
    if (!is_zero(bytes.subspan(text.size())))
        return std::nullopt;
    return text;
}

void append_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        if (c == '\n' || c == '\t') {
            out += c == '\n' ? "\\n" : "\\t";
            continue;
        }
        if (c == '"' || c == '\\')
            out += '\\';
        out += c;
    }
    out += '"';
}

void append_type(std::string& out, std::uint32_t type) {
    append(out, "\"{}\"", type_text(type));
}

void append_number(std::string& out, FieldType type, std::uint64_t value,
                   const kcdata::ValueNames* names) {
    if (names != nullptr && value != 0) {
        std::string text;
        const std::uint64_t rest =
            names->for_each_name(value, [&text](const kcdata::ValueName& name, std::uint64_t part) {
                // What stands for a number within the value has no name of its own to be told by.
                text += text.empty() ? "" : "|";
                text += part == name.value ? std::string(name.name) : fmt::format("{:#x}", part);
            });
        if (rest != value) {
            if (rest != 0)
                text += fmt::format("|{:#x}", rest);
            append_string(out, text);
            return;
        }
    }
    if (kcdata::is_signed(type))
        append(out, "{}", static_cast<std::int64_t>(value));
    else
        append(out, "{}", value);
}

/// A field, or as much of it as `bytes` holds: whole values, at least one.
void append_field(std::string& out, const Field& field, Payload bytes,
                  const kcdata::ValueNames* names) {
    if (field.type == FieldType::character) {
        if (const auto text = plain_text(bytes)) {
            append_string(out, *text);
        } else {
            out += "{\"hex\":";
            append_hex(out, bytes);
            out += '}';
        }
    } else if (field.count == 1) {
        append_number(out, field.type, load_value(field.type, bytes), names);
    } else if (field.type == FieldType::u8) {
        append_hex(out, bytes);
    } else {
        const std::size_t size = field.element_size();
        char separator = '[';
        for (; !bytes.empty(); bytes = bytes.subspan(size)) {
            out += separator;
            append_number(out, field.type, load_value(field.type, bytes), names);
            separator = ',';
        }
        out += ']';
    }
}

/// What of a payload its fields tell.
struct Told {
    std::size_t size = 0;       ///< of the payload, from its start
    std::size_t made_size = 0;  ///< that encode() makes of the fields when nothing else is said
};

/// {"name":value,...} of the fields that are there.
Told append_fields(std::string& out, std::uint32_t type, std::span<const Field> fields,
                   Payload payload) {
    Told told{0, fields_size(fields)};
    // encode() reads the description as it is told here: one that is no text has no names.
    const std::string_view description =
        plain_text(payload.first(std::min(kcdata::description_size, payload.size())))
            .value_or(std::string_view());
    bool first = true;
    out += '{';
    for (const Field& field : fields) {
        const Payload bytes = field_bytes(field, payload);
        if (bytes.empty())
            break;
        append_string(out += first ? "" : ",", field.name);
        out += ':';
        append_field(out, field, bytes, value_names(type, field, description));
        first = false;
        told.size = field.offset + bytes.size();
        if (takes_the_rest(field)) {
            // A text is followed by one NUL when it is made.
            const auto text = plain_text(bytes);
            told.made_size = field.offset + (text ? text->size() + 1 : bytes.size());
        }
    }
    out += '}';
    return told;
}

/// The list of fields that a type definition defines; returns the bytes it tells.
std::size_t append_subtypes(std::string& out, Payload payload) {
    const std::size_t size = payload.size() / subtype_descriptor_size * subtype_descriptor_size;
    out += '[';
    for (std::size_t at = 0; at < size; at += subtype_descriptor_size) {
        out += at == 0 ? "" : ",";
        append_fields(out, kcdata::KCDATA_TYPE_TYPEDEFINTION, subtype_descriptor,
                      payload.subspan(at, subtype_descriptor_size));
    }
    out += ']';
    return size;
}

}  // namespace

void ItemJsonWriter::begin() {
    text_ += '[';
    first_ = true;
}

void ItemJsonWriter::end(ItemProblem problem) {
    if (problem != ItemProblem::none) {
        separate();
        text_ += "{\"bytes\":\"\"";
        write_note(problem);
        text_ += '}';
    }
    text_ += first_ ? "]\n" : "\n]\n";
    flush();
}

void ItemJsonWriter::stretch(const Stretch& stretch) {
    write(stretch);
    constexpr std::size_t held_back = 1 << 16;
    if (text_.size() >= held_back)
        flush();
}

void ItemJsonWriter::flush() {
    failed_ = failed_ || !sink_.write(text_);
    text_.clear();
}

void ItemJsonWriter::write_hex(std::string_view key, Payload bytes) {
    append(text_, ",\"{}\":", key);
    constexpr std::size_t piece = 1 << 15;
    if (bytes.size() <= piece) {
        append_hex(text_, bytes);
        return;
    }
    // A list of pieces, so that no more than one is held.
    char separator = '[';
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
        text_ += separator;
        append_hex(text_, bytes.first(std::min(piece, bytes.size())));
        flush();
        separator = ',';
    }
    text_ += ']';
}

void ItemJsonWriter::separate() {
    text_ += first_ ? "\n" : ",\n";
    text_.append(level_ * 2, ' ');
    first_ = false;
}

void ItemJsonWriter::write(const Stretch& stretch) {
    if (!stretch.is_item()) {
        write_bytes(stretch);
        return;
    }
    separate();
    if (stretch.is_array() && stretch.array.valid) {
        write_array(stretch);
    } else if (stretch.header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN && stretch.sound()) {
        text_ += "{\"container\":";
        append_type(text_, static_cast<std::uint32_t>(load_value(FieldType::u32, stretch.payload)));
        append(text_, ",\"id\":{}", stretch.header.flags);
        write_padding(stretch);
    } else if (stretch.header.type == kcdata::KCDATA_TYPE_CONTAINER_END) {
        append(text_, "{{\"container_end\":{}", stretch.header.flags);
        if (!stretch.data.empty())
            write_hex("hex", stretch.data);
    } else {
        write_plain(stretch);
    }
    write_note(stretch.problem);
    text_ += '}';
}

void ItemJsonWriter::write_note(ItemProblem problem) {
    if (problem == ItemProblem::none)
        return;
    ++problems_;
    append_string(text_ += ",\"note\":", item_problem_text(problem));
}

void ItemJsonWriter::write_bytes(const Stretch& stretch) {
    Payload rest = stretch.data;
    while (!rest.empty()) {
        separate();
        const auto nonzero = std::find_if(rest.begin(), rest.end(),
                                          [](std::byte byte) { return byte != std::byte{0}; });
        auto size = static_cast<std::size_t>(nonzero - rest.begin());
        // A short run of zeros is part of what surrounds it.
        if (size >= bytes_in_line || size == rest.size()) {
            size = std::min(size, max_zeros);
            append(text_, "{{\"zeros\":{}", size);
        } else {
            size = std::min(rest.size(), bytes_in_line);
            append_hex(text_ += "{\"bytes\":", rest.first(size));
        }
        if (rest.data() == stretch.data.data())
            write_note(stretch.problem);
        text_ += '}';
        rest = rest.subspan(size);
        if (text_.size() > (1 << 16))
            flush();
    }
}

void ItemJsonWriter::write_padding(const Stretch& stretch) {
    const Payload padding = stretch.padding();
    if (padding.size() != kcdata::padding_for(stretch.payload.size()) || !is_zero(padding))
        write_hex("padding", padding);
}

void ItemJsonWriter::write_array(const Stretch& stretch) {
    const kcdata::ArrayLayout& array = stretch.array;
    text_ += "{\"array\":";
    append_type(text_, array.element_type);
    const std::uint32_t made_type =
        kcdata::KCDATA_TYPE_ARRAY_PAD0 +
        static_cast<std::uint32_t>(stretch.padding().size() % kcdata::alignment);
    if (stretch.header.type != made_type) {
        text_ += ",\"type\":";
        append_type(text_, stretch.header.type);
    }
    const std::span<const Field> fields = fields_of(array.element_type);
    const std::size_t made_size = fields_size(fields);
    if (array.count != 0 && array.element_size != made_size)
        append(text_, ",\"element_size\":{}", array.element_size);
    text_ += ",\"elements\":[";
    const bool bare = fields.size() == 1 && fields[0].count == 1;
    for (std::size_t i = 0; i < array.count; ++i) {
        const Payload element = stretch.payload.subspan(i * array.element_size, array.element_size);
        text_ += i == 0 ? "" : ",";
        const std::size_t before = text_.size();
        if (bare && array.element_size == made_size) {
            append_field(text_, fields[0], element,
                         kcdata::field_value_names(array.element_type, fields[0].name));
            continue;
        }
        const Told told = append_fields(text_, array.element_type, fields, element);
        if (told.size != element.size()) {
            text_.resize(before);
            append_hex(text_ += "{\"hex\":", element);
            text_ += '}';
        }
        if (text_.size() > (1 << 16))
            flush();
    }
    text_ += ']';
    write_padding(stretch);
}

void ItemJsonWriter::write_plain(const Stretch& stretch) {
    const std::uint32_t type = stretch.header.type;
    const Payload payload = stretch.payload;
    text_ += "{\"type\":";
    append_type(text_, type);
    const bool array = stretch.is_array();
    if (array || stretch.header.flags != writer_flags(type, stretch.padding().size()))
        append(text_, ",\"flags\":\"{:#x}\"", stretch.header.flags);

    const std::span<const Field> fields = fields_of(type);
    const std::size_t before = text_.size();
    if (payload.empty() && fields.empty()) {
        // Nothing to tell.
    } else if (type == kcdata::KCDATA_TYPE_NESTED_KCDATA && level_ < max_nested_buffers) {
        write_nested(payload);
    } else if (fields.empty()) {
        write_hex("hex", payload);
    } else {
        Told told = append_fields(text_ += ",\"fields\":", type, fields, payload);
        if (type == kcdata::KCDATA_TYPE_TYPEDEFINTION && payload.size() > told.made_size) {
            text_.back() = ',';
            text_ += "\"kct_elements\":";
            told.size += append_subtypes(text_, payload.subspan(told.size));
            told.made_size = told.size;
            text_ += '}';
        }
        const Payload tail = payload.subspan(told.size);
        if (told.size == 0) {
            text_.resize(before);
            write_hex("hex", payload);
        } else {
            if (told.made_size + tail.size() != payload.size())
                append(text_, ",\"length\":{}", payload.size());
            if (!tail.empty())
                write_hex("tail", tail);
        }
    }
    write_padding(stretch);
}

void ItemJsonWriter::write_nested(std::span<const std::byte> buffer) {
    text_ += ",\"items\":[";
    const bool first = first_;
    first_ = true;
    ++level_;
    ItemWalk walk(buffer);
    Stretch inner;
    while (walk.next(inner))
        write(inner);
    --level_;
    first_ = first;
    text_ += ']';
    write_note(walk.problem_at_end());
}

}  // namespace tools
