#include "tools/item_layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace tools {

namespace {

struct FormatType {
    std::uint32_t id;
    std::string_view name;
};

#define NAMED(type) \
    { kcdata::type, #type }
/// The types that are not records and so not in the schema.
constexpr FormatType format_types[] = {
    {0x0, "KCDATA_TYPE_INVALID"},       NAMED(KCDATA_TYPE_ARRAY),
    NAMED(KCDATA_TYPE_CONTAINER_BEGIN), NAMED(KCDATA_TYPE_CONTAINER_END),
    {0x20, "KCDATA_TYPE_ARRAY_PAD0"},   {0x21, "KCDATA_TYPE_ARRAY_PAD1"},
    {0x22, "KCDATA_TYPE_ARRAY_PAD2"},   {0x23, "KCDATA_TYPE_ARRAY_PAD3"},
    {0x24, "KCDATA_TYPE_ARRAY_PAD4"},   {0x25, "KCDATA_TYPE_ARRAY_PAD5"},
    {0x26, "KCDATA_TYPE_ARRAY_PAD6"},   {0x27, "KCDATA_TYPE_ARRAY_PAD7"},
    {0x28, "KCDATA_TYPE_ARRAY_PAD8"},   {0x29, "KCDATA_TYPE_ARRAY_PAD9"},
    {0x2a, "KCDATA_TYPE_ARRAY_PADa"},   {0x2b, "KCDATA_TYPE_ARRAY_PADb"},
    {0x2c, "KCDATA_TYPE_ARRAY_PADc"},   {0x2d, "KCDATA_TYPE_ARRAY_PADd"},
    {0x2e, "KCDATA_TYPE_ARRAY_PADe"},   {0x2f, "KCDATA_TYPE_ARRAY_PADf"},
    NAMED(KCDATA_TYPE_BUFFER_END),
};
#undef NAMED

}  // namespace

std::string_view type_name(std::uint32_t type) {
    if (const kcdata::Type* known = kcdata::find_type(type))
        return known->name;
    for (const FormatType& each : format_types)
        if (each.id == type)
            return each.name;
    return {};
}

std::string type_text(std::uint32_t type) {
    const std::string_view name = type_name(type);
    return name.empty() ? fmt::format("{:#x}", type) : std::string(name);
}

std::optional<std::uint32_t> type_called(std::string_view name) {
    static const auto ids = [] {
        std::unordered_map<std::string_view, std::uint32_t> result;
        for (const kcdata::Type& type : kcdata::schema())
            result.emplace(type.name, type.id);
        for (const FormatType& type : format_types)
            result.emplace(type.name, type.id);
        return result;
    }();
    const auto found = ids.find(name);
    return found != ids.end() ? std::optional(found->second) : std::nullopt;
}

std::string container_key(std::uint32_t container_type) {
    const kcdata::Type* known = kcdata::find_type(container_type);
    return known != nullptr && known->shape == kcdata::Shape::container
               ? std::string(known->key)
               : fmt::format("{}", container_type);
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal)
        text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::span<const kcdata::Field> fields_of(std::uint32_t type) {
    const kcdata::Type* known = kcdata::find_type(type);
    return known != nullptr ? known->fields : std::span<const kcdata::Field>();
}

std::size_t fields_size(std::span<const kcdata::Field> fields) {
    std::size_t end = 0;
    for (const kcdata::Field& field : fields)
        end = std::max(end, field.offset + (takes_the_rest(field) ? 0 : field.size()));
    return end;
}

std::span<const std::byte> field_bytes(const kcdata::Field& field,
                                       std::span<const std::byte> payload) {
    if (field.offset >= payload.size())
        return {};
    const std::span<const std::byte> rest = payload.subspan(field.offset);
    const std::size_t size =
        takes_the_rest(field) ? rest.size() : std::min(rest.size(), field.size());
    return rest.first(size / field.element_size() * field.element_size());
}

const kcdata::ValueNames* value_names(std::uint32_t type, const kcdata::Field& field,
                                      std::string_view description) {
    const kcdata::Type* known = kcdata::find_type(type);
    if (known == nullptr || known->shape != kcdata::Shape::described)
        return kcdata::field_value_names(type, field.name);
    return field.offset == 0 ? nullptr : kcdata::described_value_names(description);
}

}  // namespace tools
