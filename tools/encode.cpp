#include "tools/encode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kcdata/format.hpp"
#include "kcdata/names.hpp"
#include "kcdata/payload.hpp"
#include "kcdata/schema.hpp"
#include "kcdata/types.hpp"
#include "tools/field_value.hpp"
#include "tools/item_json.hpp"
#include "tools/item_layout.hpp"
#include "tools/json_text.hpp"

namespace tools {

namespace {

using kcdata::Field;
using kcdata::FieldType;
using kcdata::ItemHeader;
using Bytes = std::vector<std::byte>;

/// An item, payload and padding, has 32 bits of size; a text that asks for more is mistaken.
constexpr std::uint64_t max_size = UINT32_MAX;

constexpr std::string_view blanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(blanks), text.size());
    text.remove_prefix(first);
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

class Encoder {
  public:
    /// Appends the bytes of one item; false: failed.
    bool item(const JsonValue& value, Bytes& out) {
        if (value.get<JsonValue::Object>() == nullptr)
            return fail(value, "an item is an object");
        struct Form {
            const char* key;
            bool (Encoder::*make)(const JsonValue&, const JsonValue&, Bytes&);
            std::string_view keys;
        };
        // The first key that is there tells what is meant.
        static constexpr Form forms[] = {
            {"bytes", &Encoder::raw_bytes, "bytes note"},
            {"zeros", &Encoder::zeros, "zeros note"},
            {"container_end", &Encoder::container_end, "container_end hex padding size note"},
            {"container", &Encoder::container, "container id items padding size note"},
            {"array", &Encoder::array,
             "array elements element_size type count padding flags size note"},
            {"type", &Encoder::plain, "type fields hex items length tail padding flags size note"},
        };
        for (const Form& form : forms) {
            const JsonValue* key = value.find(form.key);
            if (key == nullptr)
                continue;
            return only(value, form.keys) && (this->*form.make)(value, *key, out);
        }
        return fail(value,
                    "an item has one of the keys type, array, container, container_end, bytes, "
                    "zeros");
    }

    /// Where what is wrong stands, its path inside of the item, and what it is.
    std::size_t problem_offset() const { return problem_offset_; }
    std::string problem(std::size_t index) const {
        return fmt::format("[{}]{}: {}", index, problem_path_, problem_);
    }

  private:
    /// Part of the path, for as long as it lives.
    class Step {
      public:
        Step(Encoder& encoder, std::string_view key) : path_(encoder.path_), size_(path_.size()) {
            path_ += '.';
            path_ += key;
        }
        Step(Encoder& encoder, std::size_t index) : path_(encoder.path_), size_(path_.size()) {
            path_ += fmt::format("[{}]", index);
        }
        Step(const Step&) = delete;
        Step& operator=(const Step&) = delete;
        ~Step() { path_.resize(size_); }

      private:
        std::string& path_;
        std::size_t size_;
    };

    bool fail(const JsonValue& value, std::string problem) {
        problem_offset_ = value.offset;
        problem_path_ = path_;
        problem_ = std::move(problem);
        return false;
    }

    /// No key but those in the list, separated by blanks.
    bool only(const JsonValue& object, std::string_view keys) {
        for (const auto& [key, value] : *object.get<JsonValue::Object>()) {
            bool known = false;
            for (std::string_view rest = keys; !rest.empty() && !known;) {
                const std::string_view word = rest.substr(0, rest.find(' '));
                known = word == key;
                rest.remove_prefix(std::min(word.size() + 1, rest.size()));
            }
            if (!known)
                return fail(value, fmt::format("\"{}\" has no meaning here; {} have", key, keys));
        }
        return true;
    }

    // Values.

    bool type(const JsonValue& value, std::uint32_t& type) {
        if (const auto* text = value.get<std::string>()) {
            if (const auto known = type_called(*text)) {
                type = *known;
                return true;
            }
            if (!number_in(*text))
                return fail(value, fmt::format("no type is called \"{}\"", *text));
        }
        std::uint64_t number = 0;
        if (!unsigned_number(value, UINT32_MAX, number))
            return false;
        type = static_cast<std::uint32_t>(number);
        return true;
    }

    bool unsigned_number(const JsonValue& value, std::uint64_t max, std::uint64_t& number) {
        if (const auto* positive = value.get<std::uint64_t>()) {
            number = *positive;
        } else if (const auto* text = value.get<std::string>()) {
            const auto read = number_in(*text);
            if (!read)
                return fail(value, fmt::format("\"{}\" is no number", *text));
            number = *read;
        } else {
            return fail(value, "an integer from 0 on is needed");
        }
        return number <= max || fail(value, fmt::format("{} is above {}", number, max));
    }

    /// A string of digits, or a list of such.
    bool hex(const JsonValue& value, Bytes& out) {
        const auto* list = value.get<JsonValue::Array>();
        if (list == nullptr)
            return hex_string(value, out);
        for (std::size_t i = 0; i < list->size(); ++i) {
            const Step step(*this, i);
            if (!hex_string((*list)[i], out))
                return false;
        }
        return true;
    }

    bool hex_string(const JsonValue& value, Bytes& out) {
        const auto* text = value.get<std::string>();
        if (text == nullptr)
            return fail(value, "a string of hexadecimal digits is needed");
        int high = -1;
        for (const char c : *text) {
            if (blanks.find(c) != blanks.npos && high < 0)
                continue;
            const int digit = hex_digit(c);
            if (digit < 0)
                return fail(value, fmt::format("\"{}\" is no hexadecimal digit", c));
            if (high < 0) {
                high = digit;
            } else {
                out.push_back(static_cast<std::byte>(high << 4 | digit));
                high = -1;
            }
        }
        return high < 0 || fail(value, "half a byte: hexadecimal digits come in pairs");
    }

    /// The optional number `key` of an object.
    bool optional_number(const JsonValue& object, std::string_view key, std::uint64_t max,
                         std::optional<std::uint64_t>& number) {
        const JsonValue* value = object.find(key);
        if (value == nullptr)
            return true;
        const Step step(*this, key);
        std::uint64_t read = 0;
        if (!unsigned_number(*value, max, read))
            return false;
        number = read;
        return true;
    }

    bool optional_hex(const JsonValue& object, std::string_view key, Bytes& out) {
        const JsonValue* value = object.find(key);
        const Step step(*this, key);
        return value == nullptr || hex(*value, out);
    }

    // Fields.

    bool field_number(const JsonValue& value, FieldType type, const kcdata::ValueNames* names,
                      std::byte* out) {
        std::uint64_t number = 0;
        if (const auto* negative = value.get<std::int64_t>()) {
            number = static_cast<std::uint64_t>(*negative);
        } else if (const auto* positive = value.get<std::uint64_t>()) {
            number = *positive;
            if (kcdata::is_signed(type) && number > INT64_MAX)
                return too_large(value, type, fmt::format("{}", number));
        } else if (const auto* text = value.get<std::string>()) {
            if (!named_number(value, *text, names, number))
                return false;
        } else {
            return fail(value, "an integer is needed");
        }
        const std::size_t size = kcdata::size_of(type);
        std::memcpy(out, &number, size);
        const bool negative = value.get<std::int64_t>() != nullptr;
        const std::uint64_t stored = load_value(type, std::span(out, size));
        if (stored != number || (negative && !kcdata::is_signed(type)))
            return too_large(value, type,
                             negative ? fmt::format("{}", static_cast<std::int64_t>(number))
                                      : fmt::format("{}", number));
        return true;
    }

    bool too_large(const JsonValue& value, FieldType type, std::string number) {
        return fail(value,
                    fmt::format("{} does not fit into {} bits{}", number, 8 * kcdata::size_of(type),
                                kcdata::is_signed(type) ? "" : " without a sign"));
    }

    /// "NAME|NAME|0x40", or only a number.
    bool named_number(const JsonValue& value, std::string_view text,
                      const kcdata::ValueNames* names, std::uint64_t& number) {
        for (;;) {
            const std::size_t bar = text.find('|');
            const std::string_view word = trimmed(text.substr(0, bar));
            const kcdata::ValueName* name = names != nullptr ? names->find(word) : nullptr;
            if (name != nullptr) {
                number |= name->value;
            } else if (const auto read = number_in(word)) {
                number |= *read;
            } else {
                return fail(value, fmt::format("no value of this field is called \"{}\"", word));
            }
            if (bar == text.npos)
                return true;
            text.remove_prefix(bar + 1);
        }
    }

    /// A field's bytes, put in their place; those of a field that takes the rest are appended.
    bool field(const JsonValue& value, const Field& field, const kcdata::ValueNames* names,
               Bytes& payload) {
        Bytes bytes;
        const auto* text = value.get<std::string>();
        const auto* list = value.get<JsonValue::Array>();
        const bool numbers = field.type != FieldType::character;
        if (const JsonValue* raw = value.find("hex")) {
            const Step step(*this, "hex");
            if (!only(value, "hex") || !hex(*raw, bytes))
                return false;
        } else if (!numbers) {
            if (text == nullptr)
                return fail(value, "a text is needed, or {\"hex\": ...}");
            const auto characters = std::as_bytes(std::span(*text));
            bytes.assign(characters.begin(), characters.end());
            if (takes_the_rest(field))
                bytes.push_back(std::byte{0});
        } else if (field.count == 1) {
            bytes.resize(field.element_size());
            if (!field_number(value, field.type, names, bytes.data()))
                return false;
        } else if (list != nullptr) {
            bytes.resize(list->size() * field.element_size());
            for (std::size_t i = 0; i < list->size(); ++i) {
                const Step step(*this, i);
                if (!field_number((*list)[i], field.type, names,
                                  bytes.data() + i * field.element_size()))
                    return false;
            }
        } else if (text != nullptr && field.type == FieldType::u8) {
            if (!hex(value, bytes))
                return false;
        } else {
            return fail(value, "a list of numbers is needed, or {\"hex\": ...}");
        }
        if (takes_the_rest(field)) {
            payload.resize(field.offset);
            payload.insert(payload.end(), bytes.begin(), bytes.end());
            return true;
        }
        if (bytes.size() > field.size())
            return fail(value, fmt::format("{} bytes are more than the {} of the field",
                                           bytes.size(), field.size()));
        std::copy(bytes.begin(), bytes.end(), payload.begin() + field.offset);
        return true;
    }

    static std::string description_of(const JsonValue& object) {
        const JsonValue* value = object.find("desc");
        const auto* text = value != nullptr ? value->get<std::string>() : nullptr;
        return text != nullptr ? *text : std::string();
    }

    /// A struct of fields; those not given are 0. A key that `elsewhere` names is passed over.
    bool fields(const JsonValue& object, std::uint32_t type, std::span<const Field> known,
                std::string_view elsewhere, Bytes& payload) {
        const auto* entries = object.get<JsonValue::Object>();
        if (entries == nullptr)
            return fail(object, "an object of fields is needed");
        payload.assign(fields_size(known), std::byte{0});
        const std::string description = description_of(object);
        for (const auto& [key, value] : *entries) {
            if (key == elsewhere)
                continue;
            const Step step(*this, key);
            const auto found =
                std::find_if(known.begin(), known.end(),
                             [&key = key](const Field& each) { return each.name == key; });
            if (found == known.end())
                return fail(value, fmt::format("{} has no field \"{}\"{}", type_text(type), key,
                                               known.empty() ? "; give \"hex\"" : ""));
            if (found->count == 0)
                return fail(value, "a list of any length is given as \"tail\"");
            if (!field(value, *found, value_names(type, *found, description), payload))
                return false;
        }
        return true;
    }

    /// The fields that a type definition defines.
    bool subtypes(const JsonValue& object, Bytes& payload) {
        const JsonValue* value = object.find("kct_elements");
        if (value == nullptr)
            return true;
        const Step step(*this, "kct_elements");
        const auto* list = value->get<JsonValue::Array>();
        if (list == nullptr)
            return fail(*value, "a list of field descriptions is needed");
        for (std::size_t i = 0; i < list->size(); ++i) {
            const Step element(*this, i);
            Bytes bytes;
            if (!fields((*list)[i], kcdata::KCDATA_TYPE_TYPEDEFINTION, subtype_descriptor, {},
                        bytes))
                return false;
            payload.insert(payload.end(), bytes.begin(), bytes.end());
        }
        return true;
    }

    // Items.

    /// Appends the item; what the object says of padding, flags and size has the last word. The
    /// header's type and flags may depend on the padding.
    template <typename MakeHeader>
    bool finish(const JsonValue& object, std::span<const std::byte> payload, Bytes padding,
                MakeHeader make_header, Bytes& out) {
        if (object.find("padding") != nullptr) {
            padding.clear();
            if (!optional_hex(object, "padding", padding))
                return false;
        }
        std::optional<std::uint64_t> size, flags;
        if (!optional_number(object, "size", max_size, size) ||
            !optional_number(object, "flags", UINT64_MAX, flags))
            return false;
        const std::uint64_t all = std::uint64_t{payload.size()} + padding.size();
        if (all > max_size)
            return fail(object, "an item has less than 4 GiB");
        ItemHeader header = make_header(padding.size());
        header.size = static_cast<std::uint32_t>(size.value_or(all));
        header.flags = flags.value_or(header.flags);
        const auto bytes = std::as_bytes(std::span(&header, 1));
        out.insert(out.end(), bytes.begin(), bytes.end());
        out.insert(out.end(), payload.begin(), payload.end());
        out.insert(out.end(), padding.begin(), padding.end());
        return true;
    }

    static Bytes padding_behind(std::size_t size) {
        return Bytes(kcdata::padding_for(size), std::byte{0});
    }

    bool items(const JsonValue& value, Bytes& out) {
        const Step step(*this, "items");
        const auto* list = value.get<JsonValue::Array>();
        if (list == nullptr)
            return fail(value, "a list of items is needed");
        for (std::size_t i = 0; i < list->size(); ++i) {
            const Step element(*this, i);
            if (!item((*list)[i], out))
                return false;
        }
        return true;
    }

    bool plain(const JsonValue& object, const JsonValue& type_value, Bytes& out) {
        std::uint32_t id = 0;
        {
            const Step step(*this, "type");
            if (!type(type_value, id))
                return false;
        }
        Bytes payload;
        const JsonValue* const given = object.find("fields");
        const JsonValue* const raw = object.find("hex");
        const JsonValue* const inner = object.find("items");
        if ((given != nullptr) + (raw != nullptr) + (inner != nullptr) > 1)
            return fail(object, "only one of fields, hex and items can be the payload");
        if (given != nullptr) {
            const Step step(*this, "fields");
            const bool definition = id == kcdata::KCDATA_TYPE_TYPEDEFINTION;
            if (!fields(*given, id, fields_of(id), definition ? "kct_elements" : "", payload) ||
                (definition && !subtypes(*given, payload)))
                return false;
        } else if (raw != nullptr) {
            if (!optional_hex(object, "hex", payload))
                return false;
        } else if (inner != nullptr) {
            if (!items(*inner, payload))
                return false;
        }
        Bytes tail;
        std::optional<std::uint64_t> length;
        if (!optional_hex(object, "tail", tail) ||
            !optional_number(object, "length", max_size, length))
            return false;
        if (length) {
            if (*length < tail.size())
                return fail(*object.find("length"), "the tail alone is longer");
            if (*length > payload.size() + tail.size() + max_zeros)
                return fail(*object.find("length"), too_many_zeros());
            payload.resize(static_cast<std::size_t>(*length) - tail.size());
        }
        payload.insert(payload.end(), tail.begin(), tail.end());
        return finish(
            object, payload, padding_behind(payload.size()),
            [id](std::size_t padding) {
                return ItemHeader{id, 0, writer_flags(id, padding)};
            },
            out);
    }

    bool array(const JsonValue& object, const JsonValue& type_value, Bytes& out) {
        std::uint32_t element_type = 0;
        {
            const Step step(*this, "array");
            if (!type(type_value, element_type))
                return false;
        }
        std::optional<std::uint32_t> item_type;
        if (const JsonValue* value = object.find("type")) {
            const Step step(*this, "type");
            if (!type(*value, item_type.emplace()))
                return false;
        }
        const std::span<const Field> known = fields_of(element_type);
        std::optional<std::uint64_t> element_size, count;
        if (!optional_number(object, "element_size", max_size, element_size) ||
            !optional_number(object, "count", UINT32_MAX, count))
            return false;
        const JsonValue* const elements = object.find("elements");
        const auto* list = elements != nullptr ? elements->get<JsonValue::Array>() : nullptr;
        if (list == nullptr)
            return fail(object, "an array has a list of \"elements\"");
        if (std::uint64_t total = 0;
            __builtin_mul_overflow(element_size.value_or(0), list->size(), &total) ||
            total > max_size)
            return fail(*elements, "an item has less than 4 GiB");
        Bytes payload;
        std::uint64_t filled = 0;
        for (std::size_t i = 0; i < list->size(); ++i) {
            const Step step(*this, "elements");
            const Step index(*this, i);
            Bytes bytes;
            if (!element((*list)[i], element_type, known, bytes))
                return false;
            if (element_size) {
                filled += *element_size - std::min<std::uint64_t>(*element_size, bytes.size());
                if (filled > max_zeros)
                    return fail(*object.find("element_size"), too_many_zeros());
                bytes.resize(static_cast<std::size_t>(*element_size));
            } else if (i > 0 && bytes.size() * i != payload.size()) {
                return fail((*list)[i], "not as long as the elements before");
            }
            payload.insert(payload.end(), bytes.begin(), bytes.end());
        }
        const std::uint64_t size = count.value_or(list->size());
        return finish(
            object, payload, padding_behind(payload.size()),
            [&](std::size_t padding) {
                const auto made = kcdata::KCDATA_TYPE_ARRAY_PAD0 +
                                  static_cast<std::uint32_t>(padding % kcdata::alignment);
                return ItemHeader{item_type.value_or(made), 0,
                                  std::uint64_t{element_type} << 32 | size};
            },
            out);
    }

    bool element(const JsonValue& value, std::uint32_t type, std::span<const Field> known,
                 Bytes& out) {
        if (const JsonValue* raw = value.find("hex")) {
            const Step step(*this, "hex");
            return only(value, "hex") && hex(*raw, out);
        }
        if (value.get<JsonValue::Object>() != nullptr)
            return fields(value, type, known, {}, out);
        if (known.size() != 1 || known[0].count != 1)
            return fail(value, "an element is an object of fields, or {\"hex\": ...}");
        out.assign(fields_size(known), std::byte{0});
        return field(value, known[0], kcdata::field_value_names(type, known[0].name), out);
    }

    bool container(const JsonValue& object, const JsonValue& type_value, Bytes& out) {
        std::uint32_t container_type = 0;
        {
            const Step step(*this, "container");
            if (!type(type_value, container_type))
                return false;
        }
        std::optional<std::uint64_t> id;
        if (!optional_number(object, "id", UINT64_MAX, id))
            return false;
        if (!id)
            return fail(object, "a container has an \"id\"");
        const auto payload = std::as_bytes(std::span(&container_type, 1));
        const auto begin = [&](std::size_t) {
            return ItemHeader{kcdata::KCDATA_TYPE_CONTAINER_BEGIN, 0, *id};
        };
        if (!finish(object, payload, padding_behind(payload.size()), begin, out))
            return false;
        const JsonValue* const inner = object.find("items");
        if (inner == nullptr)
            return true;
        if (!items(*inner, out))
            return false;
        const ItemHeader end{kcdata::KCDATA_TYPE_CONTAINER_END, 0, *id};
        const auto bytes = std::as_bytes(std::span(&end, 1));
        out.insert(out.end(), bytes.begin(), bytes.end());
        return true;
    }

    bool container_end(const JsonValue& object, const JsonValue& id_value, Bytes& out) {
        std::uint64_t id = 0;
        {
            const Step step(*this, "container_end");
            if (!unsigned_number(id_value, UINT64_MAX, id))
                return false;
        }
        Bytes payload;
        if (!optional_hex(object, "hex", payload))
            return false;
        return finish(
            object, payload, {},
            [id](std::size_t) {
                return ItemHeader{kcdata::KCDATA_TYPE_CONTAINER_END, 0, id};
            },
            out);
    }

    bool raw_bytes(const JsonValue&, const JsonValue& value, Bytes& out) {
        const Step step(*this, "bytes");
        return hex(value, out);
    }

    static std::string too_many_zeros() {
        return fmt::format("more than {} bytes to be filled up", max_zeros);
    }

    bool zeros(const JsonValue&, const JsonValue& value, Bytes& out) {
        const Step step(*this, "zeros");
        std::uint64_t count = 0;
        if (!unsigned_number(value, max_zeros, count))
            return false;
        out.resize(out.size() + static_cast<std::size_t>(count));
        return true;
    }

    std::string path_{};
    std::size_t problem_offset_ = 0;
    std::string problem_path_{};
    std::string problem_{};
};

}  // namespace

std::optional<Failure> encode(std::string_view text, const std::string& name,
                              const std::function<void(std::span<const std::byte>)>& put) {
    Encoder encoder;
    std::size_t index = 0;
    bool failed = false;
    Bytes bytes;
    auto failure = read_json_array(text, name, [&](const JsonValue& value) {
        bytes.clear();
        failed = !encoder.item(value, bytes);
        if (failed)
            return false;
        put(bytes);
        ++index;
        return true;
    });
    if (failed)
        return Failure{fmt::format("{}:{}: {}", name, json_position(text, encoder.problem_offset()),
                                   encoder.problem(index))};
    return failure;
}

}  // namespace tools
