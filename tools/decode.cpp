#include "tools/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <optional>

#include "kcdata/format.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/schema.hpp"
#include "kcdata/types.hpp"

namespace tools {

namespace {

using kcdata::Field;
using kcdata::FieldType;
using kcdata::Item;
using kcdata::ItemKind;
using kcdata::ReadError;
using kcdata::Shape;
using kcdata::Type;
using Payload = std::span<const std::byte>;

/// A buffer inside a buffer inside a buffer: nobody writes more.
constexpr std::size_t max_nested_buffers = 8;

std::string_view text_at(Payload payload) {
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    return text.substr(0, text.find('\0'));
}

template <typename T>
T load(Payload payload) {
    T value;
    std::memcpy(&value, payload.data(), sizeof(value));
    return value;
}

/// One value of the type; `payload` holds at least its bytes.
Value scalar(FieldType type, Payload payload) {
    const auto positive = [](std::uint64_t v) { return Value{v}; };
    const auto negative = [](std::int64_t v) { return Value{v}; };
    switch (type) {
        case FieldType::character:
            return Value{std::string(text_at(payload.first(1)))};
        case FieldType::i8:
            return negative(load<std::int8_t>(payload));
        case FieldType::u8:
            return positive(load<std::uint8_t>(payload));
        case FieldType::i16:
            return negative(load<std::int16_t>(payload));
        case FieldType::u16:
            return positive(load<std::uint16_t>(payload));
        case FieldType::i32:
            return negative(load<std::int32_t>(payload));
        case FieldType::u32:
            return positive(load<std::uint32_t>(payload));
        case FieldType::i64:
            return negative(load<std::int64_t>(payload));
        case FieldType::u64:
            return positive(load<std::uint64_t>(payload));
    }
    return positive(0);
}

/// The field's part of the payload, as far as the payload holds it; nothing if it holds none.
std::optional<Value> field_value(const Field& field, Payload payload) {
    if (payload.size() <= field.offset)
        return std::nullopt;
    const FieldType type = field.read_as;
    const std::size_t size = kcdata::size_of(type);
    payload = payload.subspan(field.offset);
    const std::size_t count = std::min<std::size_t>(field.count, payload.size() / size);
    if (count == 0)
        return std::nullopt;
    if (type == FieldType::character)
        return Value{std::string(text_at(payload.first(count)))};
    if (count == 1)
        return scalar(type, payload);
    List list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        list.push_back(scalar(type, payload.subspan(i * size)));
    return Value{std::move(list)};
}

/// How libkdd prints an item it has no description of.
constexpr Field unknown_bytes{.name = "",
                              .type = FieldType::u8,
                              .offset = 0,
                              .count = Field::unbounded,
                              .key = "",
                              .read_as = FieldType::u8};

/// A type that a TYPEDEFINTION of the buffer describes.
struct DefinedType {
    std::list<std::string> names{};  // fields and the type point into them
    std::vector<Field> fields{};
    Type type{};
};

class Decoder {
  public:
    Decoded run(Payload buffer) {
        buffer_into(decoded_.root, buffer, 0, 0);
        return std::move(decoded_);
    }

  private:
    void problem(std::size_t offset, std::string_view text) {
        decoded_.problems.push_back(fmt::format("offset {:#x}: {}", offset, text));
    }

    /// Adds `value`; lists under the same key are joined, anything else must be there only once.
    void put(Dictionary& parent, std::string_view key, Value value, std::size_t offset) {
        Value* const old = parent.find(key);
        if (old == nullptr) {
            parent.add(key, std::move(value));
            return;
        }
        auto* const old_list = std::get_if<List>(&old->content);
        auto* const new_list = std::get_if<List>(&value.content);
        if (old_list != nullptr && new_list != nullptr) {
            std::move(new_list->begin(), new_list->end(), std::back_inserter(*old_list));
            return;
        }
        problem(offset, fmt::format("\"{}\" is there already; this one is left out", key));
    }

    /// Decodes the whole buffer at `base` bytes of the file into parent[its root key].
    void buffer_into(Dictionary& parent, Payload buffer, std::size_t base, std::size_t level) {
        kcdata::Reader reader(buffer);
        Item item;
        if (!reader.next(item)) {
            problem(base + reader.offset(), kcdata::read_error_text(reader.error()));
            return;
        }
        const Type* const kind = kcdata::find_type(item.type);
        if (kind == nullptr || kind->shape != Shape::buffer || kind->key.empty()) {
            problem(base, item.type == kcdata::KCDATA_BUFFER_BEGIN_COMPRESSED
                              ? "a compressed buffer, which is not taken"
                              : fmt::format("a buffer of kind {:#x}, which has no decoded form",
                                            item.type));
            return;
        }
        Dictionary contents;
        items_into(contents, reader, base, level, nullptr);
        put(parent, kind->key, Value{std::move(contents)}, base);
    }

    /// Decodes items up to the end of the container `opened`, or of the buffer.
    void items_into(Dictionary& parent, kcdata::Reader& reader, std::size_t base, std::size_t level,
                    const Item* opened) {
        // Containers come behind the plain items of their parent, whatever their place.
        std::vector<std::pair<std::string, Dictionary>> containers;
        std::map<std::string, std::size_t, std::less<>> places;
        for (;;) {
            Item item;
            if (!reader.next(item)) {
                if (reader.error() == ReadError::none)
                    break;
                // Every open container runs into the same error: it is told once.
                if (!reported_)
                    problem(base + reader.offset(), kcdata::read_error_text(reader.error()));
                if (reader.resume())
                    continue;
                reported_ = true;
                break;
            }
            if (item.kind == ItemKind::container_end)
                break;
            if (item.kind == ItemKind::container_begin) {
                const std::string name = container_name(item.container_type);
                const auto [place, fresh] = places.try_emplace(name, containers.size());
                if (fresh)
                    containers.emplace_back(name, Dictionary());
                Dictionary contents;
                items_into(contents, reader, base, level, &item);
                put(containers[place->second].second, fmt::format("{}", item.container_id),
                    Value{std::move(contents)}, base + item.offset);
            } else if (item.kind == ItemKind::array) {
                array_into(parent, item, base);
            } else if (item.kind == ItemKind::plain) {
                plain_into(parent, item, base, level, opened == nullptr);
            }
        }
        for (auto& [name, contents] : containers)
            put(parent, name, Value{std::move(contents)},
                base + (opened != nullptr ? opened->offset : 0));
        if (opened == nullptr)
            reported_ = false;
    }

    static std::string container_name(std::uint32_t container_type) {
        const Type* const type = kcdata::find_type(container_type);
        return type != nullptr && type->shape == Shape::container
                   ? std::string(type->key)
                   : fmt::format("{}", container_type);
    }

    /// Built-in descriptions come first; libkdd has none of an opaque type, so the buffer may.
    const Type* find(std::uint32_t id) const {
        const Type* const known = kcdata::find_type(id);
        if (known != nullptr && known->shape != Shape::opaque)
            return known;
        const auto defined = defined_.find(id);
        return defined != defined_.end() ? &defined->second.type : known;
    }

    static Dictionary structure(const Type& type, Payload payload) {
        Dictionary fields;
        for (const Field& field : type.fields) {
            if (!field.decoded)
                continue;
            if (auto value = field_value(field, payload))
                fields.add(field.key, std::move(*value));
        }
        return fields;
    }

    void array_into(Dictionary& parent, const Item& item, std::size_t base) {
        const Type* const type = find(item.element_type);
        const bool basic = type != nullptr && type->shape == Shape::basic;
        const bool fields =
            type != nullptr && (type->shape == Shape::structure || type->shape == Shape::merged);
        std::string key = fmt::format("Type_{:#x}", item.element_type);
        if (basic)
            key = type->fields.front().key;
        else if (fields)
            key = type->key;
        List list;
        list.reserve(item.element_count);
        for (std::size_t i = 0; i < item.element_count; ++i) {
            const Payload element = item.payload.subspan(i * item.element_size, item.element_size);
            if (fields) {
                list.push_back(Value{structure(*type, element)});
                continue;
            }
            auto value = field_value(basic ? type->fields.front() : unknown_bytes, element);
            if (!value) {
                problem(base + item.offset,
                        fmt::format("elements of {} bytes hold no {}", item.element_size, key));
                return;
            }
            list.push_back(std::move(*value));
        }
        put(parent, key, Value{std::move(list)}, base + item.offset);
    }

    void plain_into(Dictionary& parent, const Item& item, std::size_t base, std::size_t level,
                    bool top) {
        const std::size_t offset = base + item.offset;
        const Type* const type = find(item.type);
        const auto put_unknown = [&] {
            if (auto value = field_value(unknown_bytes, item.payload))
                put(parent, fmt::format("Type_{:#x}", item.type), std::move(*value), offset);
        };
        switch (type != nullptr ? type->shape : Shape::opaque) {
            case Shape::basic: {
                const Field& field = type->fields.front();
                if (auto value = field_value(field, item.payload))
                    put(parent, field.key, std::move(*value), offset);
                return;
            }
            case Shape::structure:
                put(parent, type->key, Value{structure(*type, item.payload)}, offset);
                return;
            case Shape::merged: {
                const Dictionary fields = structure(*type, item.payload);
                for (const auto& [key, value] : fields.entries())
                    put(parent, key, value, offset);
                return;
            }
            case Shape::described: {
                const std::string_view description = text_at(
                    item.payload.first(std::min(kcdata::description_size, item.payload.size())));
                if (auto value = field_value(type->fields[1], item.payload))
                    put(parent, description, std::move(*value), offset);
                return;
            }
            case Shape::type_definition:
                if (top)
                    define(parent, *type, item.payload, offset);
                else
                    put_unknown();
                return;
            case Shape::nested: {
                const auto header = static_cast<std::size_t>(sizeof(kcdata::ItemHeader));
                if (level == max_nested_buffers)
                    problem(offset, "too many buffers inside each other");
                else
                    buffer_into(parent, item.payload, offset + header, level + 1);
                return;
            }
            case Shape::container:
            case Shape::buffer:
            case Shape::opaque:
                put_unknown();
                return;
        }
    }

    /// Takes a TYPEDEFINTION in and prints it the way libkdd does.
    void define(Dictionary& parent, const Type& shape, Payload payload, std::size_t offset) {
        constexpr std::size_t head_size = 40, field_size = 40, name_offset = 8, name_size = 32;
        constexpr std::uint8_t is_array = 1, is_structure = 2, is_merged = 4;
        constexpr const char* c_names[] = {"char",    "int8_t",   "uint8_t", "int16_t", "uint16_t",
                                           "int32_t", "uint32_t", "int64_t", "uint64_t"};
        if (payload.size() < head_size) {
            problem(offset, "a type definition that is too short");
            return;
        }
        const auto id = load<std::uint32_t>(payload);
        DefinedType defined;
        const auto keep = [&](std::string_view name) -> std::string_view {
            return defined.names.emplace_back(name.substr(0, Field::max_key));
        };
        const std::string_view type_name = keep(text_at(payload.subspan(name_offset, name_size)));
        bool structure_flag = false, merged_flag = false;
        List described;
        for (Payload rest = payload.subspan(head_size); rest.size() >= field_size;
             rest = rest.subspan(field_size)) {
            const auto flags = load<std::uint8_t>(rest);
            const auto element_type = load<std::uint8_t>(rest.subspan(1));
            const auto field_offset = load<std::uint16_t>(rest.subspan(2));
            const auto size_word = load<std::uint32_t>(rest.subspan(4));
            const std::string_view name = text_at(rest.subspan(name_offset, name_size));
            if (element_type < 1 || element_type > std::size(c_names)) {
                problem(offset, fmt::format("\"{}\" has a field of unknown type {}", type_name,
                                            element_type));
                return;
            }
            const bool array = (flags & is_array) != 0;
            const std::uint32_t count = array ? size_word >> 16 : 1;
            const std::uint32_t total = array ? count * (size_word & 0xffff) : size_word;
            structure_flag |= (flags & is_structure) != 0;
            merged_flag |= (flags & is_merged) != 0;
            const auto type = static_cast<FieldType>(element_type);
            described.push_back(Value{
                fmt::format("[{},{}] {}  {}{};", field_offset, total, c_names[element_type - 1],
                            name, array ? fmt::format("[{}]", count) : std::string())});
            const std::string_view kept = keep(name);
            defined.fields.push_back({.name = kept,
                                      .type = type,
                                      .offset = field_offset,
                                      .count = count,
                                      .key = kept,
                                      .read_as = type});
        }
        if (defined.fields.empty()) {
            problem(offset, fmt::format("\"{}\" is defined without fields", type_name));
            return;
        }
        const bool single = defined.fields.size() == 1 && !structure_flag;

        Dictionary print = structure(shape, payload);
        print.add("fields", Value{std::move(described)});
        put(parent, fmt::format("typedef[{}]", single ? defined.fields.front().key : type_name),
            Value{std::move(print)}, offset);
        // libkdd takes a definition of a single field under another id, where nobody finds it.
        if (single)
            return;
        const auto [place, fresh] = defined_.try_emplace(id, std::move(defined));
        if (fresh)
            place->second.type = {.id = id,
                                  .name = type_name,
                                  .key = type_name,
                                  .shape = merged_flag ? Shape::merged : Shape::structure,
                                  .fields = place->second.fields};
    }

    Decoded decoded_{};
    std::map<std::uint32_t, DefinedType> defined_{};
    bool reported_ = false;
};

}  // namespace

Value* Dictionary::find(std::string_view key) {
    if (entries_.size() < indexed_size) {
        const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                        [key](const auto& e) { return e.key == key; });
        return entry != entries_.end() ? &entry->value : nullptr;
    }
    const auto place = index_.find(std::string(key));
    return place != index_.end() ? &entries_[place->second].value : nullptr;
}

Value& Dictionary::add(std::string_view key, Value value) {
    entries_.push_back({std::string(key), std::move(value)});
    if (entries_.size() == indexed_size) {
        for (std::size_t i = 0; i < entries_.size(); ++i)
            index_.emplace(entries_[i].key, i);
    } else if (entries_.size() > indexed_size) {
        index_.emplace(entries_.back().key, entries_.size() - 1);
    }
    return entries_.back().value;
}

Decoded decode(std::span<const std::byte> buffer) {
    return Decoder().run(buffer);
}

void emit(JsonEmitter& json, const Value& value) {
    struct Visitor {
        JsonEmitter& json;
        void operator()(std::uint64_t number) const { json.value(number); }
        void operator()(std::int64_t number) const { json.value(number); }
        void operator()(const std::string& text) const { json.value(std::string_view(text)); }
        void operator()(const List& list) const {
            json.begin_array();
            for (const Value& element : list)
                emit(json, element);
            json.end_array();
        }
        void operator()(const Dictionary& dictionary) const { emit(json, dictionary); }
    };
    std::visit(Visitor{json}, value.content);
}

void emit(JsonEmitter& json, const Dictionary& dictionary) {
    json.begin_object();
    for (const auto& [key, value] : dictionary.entries()) {
        json.key(key);
        emit(json, value);
    }
    json.end_object();
}

}  // namespace tools
