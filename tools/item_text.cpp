#include "tools/item_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "kcdata/names.hpp"
#include "kcdata/types.hpp"
#include "tools/append.hpp"
#include "tools/field_value.hpp"
#include "tools/item_layout.hpp"
#include "tools/printable.hpp"

namespace tools {

using kcdata::Field;
using kcdata::FieldType;

namespace {

constexpr std::size_t deepest_indent = 24;
constexpr std::size_t bytes_in_line = 16;

std::string named(std::uint32_t type) {
    const std::string_view name = type_name(type);
    return name.empty() ? fmt::format("unknown type {:#x}", type)
                        : fmt::format("{} ({:#x})", name, type);
}

std::string names_text(const kcdata::ValueNames* names, std::uint64_t value) {
    std::string text;
    if (names == nullptr)
        return text;
    const std::uint64_t rest =
        names->for_each_name(value, [&text](const kcdata::ValueName& name, std::uint64_t part) {
            text += text.empty() ? "  " : " | ";
            text += name.name;
            if (part != name.value)
                append(text, "={:#x}", part);
        });
    if (rest != 0)
        append(text, "{}{:#x} has no name", text.empty() ? "  " : " | ", rest);
    return text;
}

std::string number_text(FieldType type, std::uint64_t value) {
    if (kcdata::is_signed(type) && static_cast<std::int64_t>(value) < 0)
        return fmt::format("{}", static_cast<std::int64_t>(value));
    return value < 10 ? fmt::format("{}", value) : fmt::format("{} ({:#x})", value, value);
}

std::string hex_text(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes)
        append(text, "{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

/// Whole values of a field, at least one.
std::string value_text(const Field& field, std::span<const std::byte> bytes,
                       const kcdata::ValueNames* names) {
    if (field.type == FieldType::character) {
        const std::string_view text = text_in(bytes);
        std::string shown = fmt::format("\"{}\"", printable(text));
        if (text.size() == bytes.size() && field.count != 1)
            shown += "  no NUL";
        return shown;
    }
    if (field.count == 1) {
        const std::uint64_t value = load_value(field.type, bytes);
        return number_text(field.type, value) + names_text(names, value);
    }
    if (field.type == FieldType::u8)
        return hex_text(bytes);
    std::string text = "[";
    for (std::size_t at = 0; at < bytes.size(); at += field.element_size())
        text += (at == 0 ? "" : ", ") +
                number_text(field.type, load_value(field.type, bytes.subspan(at)));
    return text + "]";
}

}  // namespace

void ItemTextWriter::line(std::size_t offset, std::string_view text) {
    append(text_, "{:08x}  ", base_ + offset);
    text_.append(2 * std::min(level_, deepest_indent), ' ');
    text_ += text;
    text_ += '\n';
    constexpr std::size_t held_back = 1 << 16;
    if (text_.size() >= held_back)
        flush();
}

void ItemTextWriter::flush() {
    failed_ = failed_ || !sink_.write(text_);
    text_.clear();
}

void ItemTextWriter::problem(std::size_t offset, ItemProblem problem) {
    ++problems_;
    line(offset, fmt::format("!! {}", item_problem_text(problem)));
}

void ItemTextWriter::stretch(const Stretch& stretch) {
    const std::size_t outer = level_;
    level_ += stretch.depth;
    switch (stretch.kind) {
        case Stretch::Kind::item:
            item(stretch);
            break;
        case Stretch::Kind::stream:
            line(stretch.offset,
                 fmt::format("zlib stream, {} bytes; `stackshot decompress` shows the items "
                             "in it",
                             stretch.data.size()));
            ++level_;
            hexadecimal(stretch.data, stretch.offset);
            break;
        case Stretch::Kind::behind:
            line(stretch.offset,
                 fmt::format("{} bytes behind the end of the buffer", stretch.data.size()));
            ++level_;
            hexadecimal(stretch.data, stretch.offset);
            break;
        case Stretch::Kind::damaged:
            problem(stretch.offset, stretch.problem);
            if (stretch.data.size() >= sizeof(kcdata::ItemHeader)) {
                const kcdata::ItemHeader header = kcdata::load_header(stretch.data.data());
                line(stretch.offset, fmt::format("as a header: type {:#x}, size {}, flags {:#x}",
                                                 header.type, header.size, header.flags));
            }
            ++level_;
            hexadecimal(stretch.data, stretch.offset);
            --level_;
            line(stretch.end(),
                 "end of the damage: the next 16-byte boundary where items make "
                 "sense, or the end of the data");
            break;
    }
    level_ = outer;
}

void ItemTextWriter::item(const Stretch& stretch) {
    const kcdata::ItemHeader& header = stretch.header;
    const std::size_t data_offset = stretch.offset + sizeof(header);
    std::string text = named(header.type);
    append(text, "  size {}", header.size);
    const bool container = header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN ||
                           header.type == kcdata::KCDATA_TYPE_CONTAINER_END;
    if (container) {
        if (header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN && stretch.payload.size() >= 4)
            text += "  " +
                    named(static_cast<std::uint32_t>(load_value(FieldType::u32, stretch.payload)));
        append(text, "  id {}", header.flags);
    } else if (stretch.is_array()) {
        append(text, "  {} x {}", static_cast<std::uint32_t>(header.flags),
               named(static_cast<std::uint32_t>(header.flags >> 32)));
        if (stretch.array.valid && stretch.array.count != 0)
            append(text, ", {} bytes each", stretch.array.element_size);
        append(text, "  pad {}", stretch.padding().size());
    } else {
        const std::uint64_t pad = header.flags & kcdata::KCDATA_FLAGS_STRUCT_PADDING_MASK;
        append(text, "  flags {:#x}: pad {}{}", header.flags, pad,
               names_text(kcdata::find_value_names("item flags"), header.flags - pad));
    }
    line(stretch.offset, text);
    ++level_;
    if (!stretch.sound())
        problem(stretch.offset, stretch.problem);
    if (stretch.is_array() && stretch.array.valid)
        array(stretch);
    else if (header.type == kcdata::KCDATA_TYPE_NESTED_KCDATA && buffers_ < max_nested_buffers)
        nested(stretch.payload, data_offset);
    else if (!container || !stretch.sound())
        payload(header.type, stretch.payload, data_offset);
    const auto padding = stretch.padding();
    if (!is_zero(padding)) {
        const std::size_t offset = data_offset + stretch.payload.size();
        line(offset, "padding that is not zero:");
        hexadecimal(padding, offset);
    }
    --level_;
}

void ItemTextWriter::array(const Stretch& stretch) {
    const kcdata::ArrayLayout& array = stretch.array;
    const std::span<const Field> known = fields_of(array.element_type);
    const bool bare = known.size() == 1 && known[0].size() == array.element_size;
    for (std::size_t i = 0; i < array.count; ++i) {
        const std::size_t at = i * array.element_size;
        const Payload element = stretch.payload.subspan(at, array.element_size);
        const std::size_t offset = stretch.offset + sizeof(kcdata::ItemHeader) + at;
        if (bare) {
            line(offset, fmt::format("[{}]  {}  {}", i, known[0].name,
                                     value_text(known[0], element,
                                                kcdata::field_value_names(array.element_type,
                                                                          known[0].name))));
            continue;
        }
        line(offset, fmt::format("[{}]", i));
        payload(array.element_type, element, offset);
    }
}

void ItemTextWriter::payload(std::uint32_t type, Payload payload, std::size_t offset) {
    std::size_t told = fields(type, fields_of(type), payload, offset);
    if (type == kcdata::KCDATA_TYPE_TYPEDEFINTION && told == fields_size(fields_of(type))) {
        for (; payload.size() - told >= subtype_descriptor_size; told += subtype_descriptor_size) {
            line(offset + told, "kct_elements");
            ++level_;
            fields(type, subtype_descriptor, payload.subspan(told, subtype_descriptor_size),
                   offset + told);
            --level_;
        }
    }
    if (told == payload.size())
        return;
    if (told != 0)
        line(offset + told, fmt::format("{} bytes behind the fields:", payload.size() - told));
    hexadecimal(payload.subspan(told), offset + told);
}

std::size_t ItemTextWriter::fields(std::uint32_t type, std::span<const Field> fields,
                                   Payload payload, std::size_t offset) {
    std::size_t width = 0;
    for (const Field& field : fields)
        width = std::max(width, field.name.size());
    std::size_t told = 0;
    for (const Field& field : fields) {
        const Payload bytes = field_bytes(field, payload);
        if (bytes.empty())
            break;
        const kcdata::ValueNames* names = value_names(type, field, description_in(payload));
        line(offset + field.offset, fmt::format("+{:<#5x} {:<{}}  {}", field.offset, field.name,
                                                width, value_text(field, bytes, names)));
        told = field.offset + bytes.size();
        if (field.type != FieldType::character)
            continue;
        const std::size_t text = text_in(bytes).size();
        if (!is_zero(bytes.subspan(text))) {
            line(offset + field.offset + text, "not zero behind the NUL:");
            hexadecimal(bytes.subspan(text), offset + field.offset + text);
        }
    }
    return told;
}

void ItemTextWriter::hexadecimal(Payload bytes, std::size_t offset) {
    bool skipping = false;
    for (std::size_t at = 0; at < bytes.size(); at += bytes_in_line) {
        const Payload row = bytes.subspan(at, std::min(bytes_in_line, bytes.size() - at));
        // Rows like the one before are left out, but the last.
        if (at != 0 && at + bytes_in_line < bytes.size() &&
            std::equal(row.begin(), row.end(),
                       bytes.begin() + static_cast<std::ptrdiff_t>(at - bytes_in_line))) {
            if (!skipping)
                line(offset + at, "*");
            skipping = true;
            continue;
        }
        skipping = false;
        std::string digits, characters;
        for (const std::byte byte : row) {
            const auto code = std::to_integer<unsigned>(byte);
            append(digits, "{:02x} ", code);
            characters += code >= 0x20 && code < 0x7f ? static_cast<char>(code) : '.';
        }
        line(offset + at, fmt::format("{:<48} |{}|", digits, characters));
    }
}

void ItemTextWriter::nested(Payload buffer, std::size_t offset) {
    const std::size_t base = base_;
    base_ += offset;
    ++buffers_;
    ItemWalk walk(buffer);
    Stretch inner;
    while (walk.next(inner))
        stretch(inner);
    if (walk.problem_at_end() != ItemProblem::none)
        problem(buffer.size(), walk.problem_at_end());
    --buffers_;
    base_ = base;
}

}  // namespace tools
