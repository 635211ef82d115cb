#include "tools/decode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "kcdata/format.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/types.hpp"
#include "tools/append.hpp"
#include "tools/field_value.hpp"
#include "tools/item_layout.hpp"
#include "tools/utf8.hpp"

namespace tools {

namespace {

using kcdata::Field;
using kcdata::FieldType;
using kcdata::Item;
using kcdata::ItemKind;
using kcdata::Reader;
using kcdata::ReadError;
using kcdata::Shape;
using kcdata::Type;
using kcdata::ValueNames;
using Payload = std::span<const std::byte>;

/// Fields of all type definitions of a buffer together. They are what is held in memory.
constexpr std::size_t max_defined_fields = 1 << 15;

/// Where bytes go that no field explains.
constexpr std::string_view tail_key = "trailing_bytes";

/// The root key of the plain buffer that begins `bytes`; nothing if none does.
std::string_view root_key(Payload bytes) {
    if (bytes.size() < sizeof(kcdata::ItemHeader))
        return {};
    const kcdata::ItemHeader header = kcdata::load_header(bytes.data());
    // libkdd takes no such buffer, and has no key for it.
    if (header.type == kcdata::KCDATA_BUFFER_BEGIN_BTINFO)
        return "kcdata_btinfo";
    const Type* const type = kcdata::find_type(header.type);
    const bool whole = header.size <= bytes.size() - sizeof(header);
    return whole && type != nullptr && type->shape == Shape::buffer ? type->key
                                                                    : std::string_view();
}

/// The payload of a TYPEDEFINTION.
class Definition {
  public:
    static constexpr const char* c_names[] = {"char",     "int8_t",   "uint8_t",
                                              "int16_t",  "uint16_t", "int32_t",
                                              "uint32_t", "int64_t",  "uint64_t"};
    struct FieldDefinition {
        std::uint8_t flags, type;
        std::uint16_t offset;
        std::uint32_t size_word;
        std::string_view name;

        bool is_array() const { return (flags & 1) != 0; }
        std::uint32_t count() const { return is_array() ? size_word >> 16 : 1; }
        std::uint32_t size() const {
            return is_array() ? count() * (size_word & 0xffff) : size_word;
        }
        std::string_view key() const { return name.substr(0, Field::max_key); }
    };

    explicit Definition(Payload payload) : payload_(payload) {}

    std::uint32_t id() const { return load<std::uint32_t>(payload_.data()); }
    std::string_view name() const { return text_in(payload_.subspan(name_offset, name_size)); }
    std::size_t field_count() const { return (payload_.size() - head_size) / field_size; }
    FieldDefinition field(std::size_t index) const {
        const Payload field = payload_.subspan(head_size + index * field_size, field_size);
        return {.flags = load<std::uint8_t>(field.data()),
                .type = load<std::uint8_t>(field.data() + 1),
                .offset = load<std::uint16_t>(field.data() + 2),
                .size_word = load<std::uint32_t>(field.data() + 4),
                .name = text_in(field.subspan(name_offset, name_size))};
    }
    bool any_field(std::uint8_t flag) const {
        for (std::size_t i = 0; i < field_count(); ++i)
            if ((field(i).flags & flag) != 0)
                return true;
        return false;
    }
    bool has_field(std::string_view key) const {
        for (std::size_t i = 0; i < field_count(); ++i)
            if (field(i).key() == key)
                return true;
        return false;
    }
    static constexpr std::uint8_t force_structure = 2, merge = 4;

    /// libkdd knows such a type by the name of its field.
    bool is_single() const { return field_count() == 1 && !any_field(force_structure); }

    /// What keeps it from describing anything, or nothing.
    std::optional<std::string> problem() const {
        if (payload_.size() < head_size)
            return "a type definition that is too short";
        if (field_count() == 0)
            return fmt::format("\"{}\" is defined without fields", name());
        if (field_count() > max_defined_fields)
            return fmt::format("\"{}\" is defined with {} fields", name(), field_count());
        std::set<std::string> keys;
        std::size_t end = 0, sum = 0;
        for (std::size_t i = 0; i < field_count(); ++i) {
            const FieldDefinition each = field(i);
            if (each.type < 1 || each.type > std::size(c_names))
                return fmt::format("\"{}\" has a field of unknown type {}", name(), each.type);
            if (!keys.insert(utf8_text(each.key())).second)
                return fmt::format("\"{}\" has two fields \"{}\"", name(), each.key());
            const std::size_t size =
                each.count() * kcdata::size_of(static_cast<FieldType>(each.type));
            end = std::max(end, each.offset + size);
            sum += size;
        }
        // Else a few bytes could be printed again and again, without end.
        constexpr std::size_t most_often = 4;
        if (sum > most_often * end)
            return fmt::format("the fields of \"{}\" lie over each other", name());
        return std::nullopt;
    }

  private:
    static constexpr std::size_t head_size = 40, field_size = 40, name_offset = 8, name_size = 32;

    Payload payload_;
};

/// A type that a TYPEDEFINTION describes to the items behind it.
struct DefinedType {
    std::size_t offset;
    TypePlan plan;
};

class Decoder {
  public:
    Decoder(JsonEmitter& json, const DecodeOptions& options)
        : json_(json), options_(options), plans_(plans_for(options)) {}

    Decoded run(Payload buffer, bool lines) {
        const std::string_view key = root_key(buffer);
        if (key.empty()) {
            Reader reader(buffer);
            Item begin;
            problem(0, 0,
                    reader.next(begin)
                        ? fmt::format("a buffer of kind {:#x} has no decoded form", begin.type)
                        : std::string(kcdata::read_error_text(reader.error())));
            return std::move(decoded_);
        }
        scan(buffer, 0, 0);
        const Scope scope{.reader = begun(buffer), .base = 0, .level = 0};
        const Members members = look_through(scope);
        json_.begin_object();
        json_.key(key);
        json_.begin_object();
        write_items(scope, members);
        if (!lines)
            for (const ChildType& type : child_types(scope, members))
                write_containers(scope, type);
        json_.end_object();
        json_.end_object();
        json_.line_feed();
        if (lines)
            for (const ChildType& type : child_types(scope, members))
                write_lines(scope, type);
        decoded_.written = true;
        return std::move(decoded_);
    }

  private:
    /// The inside of a container or buffer.
    struct Scope {
        Reader reader;     ///< in front of the first item inside
        std::size_t base;  ///< of its buffer: what offsets are counted from, from the outermost one
        std::size_t level;  ///< how many buffers its buffer lies in
    };
    /// An item that is written as (part of) a member, or a field of one that goes to the parent.
    struct Sibling {
        std::uint64_t place;   ///< offset << 16; plus, for a field, its index + 1
        std::uint32_t hash;    ///< of its key
        std::uint32_t number;  ///< of the item
    };
    struct Child {
        std::uint64_t id;
        std::uint64_t offset;
        std::uint32_t type;
        std::uint32_t number;
    };
    /// Siblings of one key, or children of one type and id: in order, one behind the other.
    struct Group {
        std::uint32_t first;
        std::uint32_t count;
        std::uint64_t order;  ///< groups are written by this
    };
    /// What lies directly in a container: the top of the three stacks.
    struct Members {
        std::size_t siblings, groups, children;
        std::size_t siblings_end, groups_end, children_end;
    };
    struct ChildType {
        std::uint32_t type;
        std::size_t first, end;
        std::uint64_t order;   ///< offset of the first in the buffer
        std::uint32_t number;  ///< and its number
    };
    /// A sibling, read again.
    struct Occurrence {
        Item item;
        const TypePlan* plan;
        std::size_t field;  ///< of a merged type: its index + 1
        std::size_t number;
    };
    struct PathStep {
        std::uint32_t type;
        std::uint64_t id;
        std::string_view buffer;  ///< root key, if it is one
    };
    using KeyText = std::string;

    static const DecodePlan& plans_for(const DecodeOptions& options) {
        static const DecodePlan plans[] = {
            DecodePlan({.full = false, .names = false}), DecodePlan({.full = true, .names = false}),
            DecodePlan({.full = false, .names = true}), DecodePlan({.full = true, .names = true})};
        return plans[(options.full ? 1 : 0) + (options.names ? 2 : 0)];
    }

    static Reader begun(Payload buffer) {
        Reader reader(buffer);
        Item begin;
        reader.next(begin);
        return reader;
    }

    // Problems.

    void problem(std::size_t offset, std::uint64_t number, std::string_view text) {
        if (++decoded_.problem_count > Decoded::told_problems)
            return;
        std::string path;
        for (const PathStep& step : path_) {
            path += path.empty() ? ", in " : "/";
            path += step.buffer.empty() ? fmt::format("{}/{}", container_key(step.type), step.id)
                                        : std::string(step.buffer);
        }
        decoded_.problems.push_back(
            fmt::format("offset {:#x}, item {}{}: {}", offset, number, path, text));
    }
    void problem(const Scope& scope, const Occurrence& at, std::string_view text) {
        problem(scope.base + at.item.offset, at.number, text);
    }

    /// Goes through all of a buffer: takes the type definitions in and tells what is wrong with it.
    void scan(Payload buffer, std::size_t base, std::size_t level) {
        const std::size_t depth = path_.size();
        Reader reader(buffer);
        Item item;
        for (;;) {
            if (!reader.next(item)) {
                if (reader.error() == ReadError::none)
                    break;
                std::string text = kcdata::read_error_text(reader.error());
                const bool truncated = reader.error() == ReadError::truncated_payload;
                const std::size_t offset = reader.offset();
                const bool resumed = reader.resume();
                if (resumed && truncated)
                    text += fmt::format("; what makes sense again is at offset {:#x}",
                                        base + reader.following());
                problem(base + offset, reader.number(), text);
                if (!resumed)
                    break;
            } else if (item.kind == ItemKind::container_begin) {
                path_.push_back({item.container_type, item.container_id, {}});
            } else if (item.kind == ItemKind::container_end) {
                path_.pop_back();
            } else if (item.type == kcdata::KCDATA_TYPE_TYPEDEFINTION) {
                if (options_.full || reader.depth() == 0)
                    define(item, base);
            } else if (item.type == kcdata::KCDATA_TYPE_NESTED_KCDATA) {
                scan_nested(item, base, level);
            }
        }
        path_.resize(depth);
    }

    void scan_nested(const Item& item, std::size_t base, std::size_t level) {
        const std::string_view key = root_key(item.payload);
        if (key.empty()) {
            problem(base + item.offset, item.number, "the nested buffer has no decoded form");
        } else if (level == max_nested_buffers) {
            problem(base + item.offset, item.number, "too many buffers inside each other");
        } else {
            path_.push_back({0, 0, key});
            scan(item.payload, base + item.offset + sizeof(kcdata::ItemHeader), level + 1);
            path_.pop_back();
        }
    }

    void define(const Item& item, std::size_t base) {
        const Definition definition(item.payload);
        if (auto why = definition.problem()) {
            problem(base + item.offset, item.number, *why);
            return;
        }
        // libkdd files a definition of a single field under the code of the field's type.
        const bool misfiled = definition.is_single() && !options_.full;
        const std::uint32_t id = misfiled ? definition.field(0).type : definition.id();
        if (defined_.contains(id))
            return;
        if (options_.full && definition.has_field(tail_key)) {
            problem(base + item.offset, item.number, "a field has a name that is taken");
            return;
        }
        defined_fields_ += definition.field_count();
        if (defined_fields_ > max_defined_fields) {
            problem(base + item.offset, item.number, "too many type definitions");
            return;
        }
        TypePlan plan;
        plan.shape = definition.any_field(Definition::merge) ? Shape::merged
                     : definition.is_single()                ? Shape::basic
                                                             : Shape::structure;
        plan.key = PlannedKey(misfiled ? definition.field(0).key()
                                       : definition.name().substr(0, Field::max_key));
        for (std::size_t i = 0; i < definition.field_count(); ++i) {
            const auto field = definition.field(i);
            if (field.count() != 0)
                plan.fields.push_back(plan_field(id,
                                                 {.name = field.key(),
                                                  .type = static_cast<FieldType>(field.type),
                                                  .offset = field.offset,
                                                  .count = field.count(),
                                                  .key = field.key(),
                                                  .read_as = static_cast<FieldType>(field.type)},
                                                 options_));
        }
        // Fields of no values describe nothing.
        if (plan.fields.empty())
            return;
        std::stable_sort(
            plan.fields.begin(), plan.fields.end(),
            [](const FieldPlan& a, const FieldPlan& b) { return a.offset < b.offset; });
        defined_.emplace(id, DefinedType{base + item.offset, std::move(plan)});
    }

    // Types.

    const TypePlan& find(std::uint32_t type, std::size_t offset) const {
        const TypePlan& plan = plans_.find(type);
        if (!plan.definable || defined_.empty())
            return plan;
        const auto defined = defined_.find(type);
        return defined != defined_.end() && defined->second.offset < offset ? defined->second.plan
                                                                            : plan;
    }

    /// How the item is written. What it holds may not be of the shape of its type: then as bytes.
    const TypePlan& plan_of(const Scope& scope, const Item& item) const {
        const bool array = item.kind == ItemKind::array;
        const TypePlan& plan =
            find(array ? item.element_type : item.type, scope.base + item.offset);
        switch (plan.shape) {
            case Shape::type_definition:
                if (array || !defines(scope))
                    return plans_.plain_definition();
                return Definition(item.payload).problem() ? plans_.find(unknown_type) : plan;
            case Shape::described:
            case Shape::nested:
                return !array && has_shape(scope, item, plan.shape) ? plan
                                                                    : plans_.find(unknown_type);
            default:
                return plan;
        }
    }
    /// Whether type definitions are such here; for libkdd they are at the top only.
    bool defines(const Scope& scope) const { return options_.full || scope.reader.depth() == 0; }
    bool has_shape(const Scope& scope, const Item& item, Shape shape) const {
        if (shape == Shape::nested)
            return scope.level < max_nested_buffers && !root_key(item.payload).empty();
        return true;
    }

    static bool is_padding(Payload bytes) {
        return bytes.size() < kcdata::alignment && is_zero(bytes);
    }
    /// What of a plain item or element lies behind its last value, which ends at `end`. Items of
    /// the first generation do not tell their padding: zeros are taken for it.
    static Payload tail_of(const Item& item, Payload payload, std::size_t end) {
        constexpr std::uint64_t padding_bits =
            kcdata::KCDATA_FLAGS_STRUCT_PADDING_MASK | kcdata::KCDATA_FLAGS_STRUCT_HAS_PADDING;
        const Payload tail = payload.subspan(std::min(end, payload.size()));
        if (item.kind != ItemKind::array && (item.flags & padding_bits) == 0 && is_padding(tail))
            return {};
        return tail;
    }
    static std::size_t end_of(const FieldPlan& field, std::size_t count) {
        return field.offset + (count << field.size_shift);
    }

    /// The field that alone makes up the value of the item.
    static const FieldPlan* only_field(const Occurrence& at) {
        switch (at.plan->shape) {
            case Shape::basic:
            case Shape::opaque:
                return &at.plan->fields.front();
            case Shape::described:
                return &at.plan->fields[1];
            case Shape::merged:
                return at.field != 0 ? &at.plan->fields[at.field - 1] : nullptr;
            default:
                return nullptr;
        }
    }
    /// Whether the value is a list: lists of one key are joined.
    bool is_list(const Occurrence& at) const {
        if (at.item.kind == ItemKind::array)
            return true;
        const FieldPlan* const field = only_field(at);
        return field != nullptr && field->type != FieldType::character &&
               field->count_in(at.item.payload.size()) > 1;
    }

    // Pass one: which keys and containers there are.

    Members look_through(const Scope& scope) {
        Members members{siblings_.size(), groups_.size(), children_.size(), 0, 0, 0};
        const std::size_t depth = scope.reader.depth();
        Reader reader = scope.reader;
        Item item;
        for (;;) {
            if (!reader.next(item)) {
                // The scan has told.
                if (reader.error() == ReadError::none || !reader.resume())
                    break;
                continue;
            }
            if (reader.depth() < depth)
                break;
            if (reader.depth() == depth) {
                if (item.kind == ItemKind::array)
                    add_array(scope, item);
                else if (item.kind == ItemKind::plain)
                    add_plain(scope, item);
            } else if (item.kind == ItemKind::container_begin && reader.depth() == depth + 1) {
                children_.push_back({item.container_id, item.offset, item.container_type,
                                     short_number(item.number)});
            }
        }
        members.siblings_end = siblings_.size();
        members.children_end = children_.size();
        group_siblings(scope, members);
        members.groups_end = groups_.size();
        return members;
    }
    void drop(const Members& members) {
        siblings_.resize(members.siblings);
        groups_.resize(members.groups);
        children_.resize(members.children);
    }

    static std::uint32_t short_number(std::uint64_t number) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
    }
    void add(const Item& item, std::uint32_t hash, std::size_t field = 0) {
        siblings_.push_back(
            {std::uint64_t{item.offset} << 16 | field, hash, short_number(item.number)});
    }
    void add_text(const Item& item, const TypePlan& plan) {
        KeyText text;
        add(item, key_hash(key_of(Occurrence{item, &plan, 0, 0}, text)));
    }

    void add_array(const Scope& scope, const Item& item) {
        const TypePlan& plan = plan_of(scope, item);
        const FieldPlan& first = plan.fields.front();
        if (plan.shape == Shape::basic && !options_.full && item.element_count != 0 &&
            first.count_in(item.element_size) == 0) {
            problem(
                scope.base + item.offset, item.number,
                fmt::format("elements of {} bytes hold no {}", item.element_size, plan.key.text));
            return;
        }
        if (plan.shape == Shape::opaque)
            add_text(item, plan);
        else
            add(item, plan.key.hash);
    }

    void add_plain(const Scope& scope, const Item& item) {
        const TypePlan& plan = plan_of(scope, item);
        const std::size_t size = item.payload.size();
        switch (plan.shape) {
            case Shape::basic:
                if (options_.full || plan.fields.front().count_in(size) != 0)
                    add(item, plan.key.hash);
                return;
            case Shape::structure:
                add(item, plan.key.hash);
                return;
            case Shape::merged:
                add_merged(item, plan);
                return;
            case Shape::described:
                if (options_.full || plan.fields[1].count_in(size) != 0)
                    add_text(item, plan);
                return;
            case Shape::type_definition:
            case Shape::nested:
                add_text(item, plan);
                return;
            case Shape::container:
            case Shape::buffer:
            case Shape::opaque:
                if (options_.full || size != 0)
                    add_text(item, plan);
                return;
        }
    }

    void add_merged(const Item& item, const TypePlan& plan) {
        const std::size_t size = item.payload.size();
        if (options_.full) {
            std::size_t end = 0;
            for (const FieldPlan& field : plan.fields)
                if (const std::size_t count = field.count_in(size); count != 0)
                    end = std::max(end, end_of(field, count));
            // Bytes that are left over have no place in the parent.
            if (end == 0 || !tail_of(item, item.payload, end).empty()) {
                add(item, plan.key.hash);
                return;
            }
        }
        for (std::size_t i = 0; i < plan.fields.size(); ++i)
            if (plan.fields[i].count_in(size) != 0)
                add(item, plan.fields[i].key.hash, i + 1);
    }

    Occurrence occurrence(const Scope& scope, const Sibling& sibling) const {
        Occurrence at{scope.reader.again(static_cast<std::size_t>(sibling.place >> 16)), nullptr,
                      static_cast<std::size_t>(sibling.place & 0xffff), sibling.number};
        at.plan = &plan_of(scope, at.item);
        return at;
    }

    /// The key as it is printed, but for escapes: in the plan or `text`.
    std::string_view key_of(const Occurrence& at, KeyText& text) const {
        const Item& item = at.item;
        if (item.kind == ItemKind::array && at.plan->shape != Shape::opaque)
            return at.plan->key.text;
        switch (at.plan->shape) {
            case Shape::basic:
            case Shape::structure:
                return at.plan->key.text;
            case Shape::merged:
                return at.field != 0 ? at.plan->fields[at.field - 1].key.text : at.plan->key.text;
            case Shape::described:
                text.clear();
                text.append(utf8_text(description_in(item.payload)));
                return {text.data(), text.size()};
            case Shape::nested:
                return root_key(item.payload);
            case Shape::type_definition: {
                const Definition definition(item.payload);
                const std::string_view name = definition.is_single() && !options_.full
                                                  ? definition.field(0).key()
                                                  : definition.name().substr(0, Field::max_key);
                text.clear();
                append(text, "typedef[{}]", utf8_text(name));
                return {text.data(), text.size()};
            }
            case Shape::container:
            case Shape::buffer:
            case Shape::opaque:
                break;
        }
        text.clear();
        append(text, "Type_{:#x}", item.kind == ItemKind::array ? item.element_type : item.type);
        return {text.data(), text.size()};
    }
    std::string_view key_of(const Scope& scope, const Sibling& sibling, KeyText& text) const {
        return key_of(occurrence(scope, sibling), text);
    }

    void group_siblings(const Scope& scope, const Members& members) {
        const auto at = [this](std::size_t i) {
            return siblings_.begin() + static_cast<std::ptrdiff_t>(i);
        };
        std::sort(at(members.siblings), at(members.siblings_end),
                  [](const Sibling& a, const Sibling& b) {
                      return a.hash != b.hash ? a.hash < b.hash : a.place < b.place;
                  });
        for (std::size_t first = members.siblings; first < members.siblings_end;) {
            std::size_t end = first + 1;
            while (end < members.siblings_end && siblings_[end].hash == siblings_[first].hash)
                ++end;
            group_equal_hashes(scope, first, end);
            first = end;
        }
        sort_groups(members.groups);
    }

    void group_equal_hashes(const Scope& scope, std::size_t first, std::size_t end) {
        KeyText one, other;
        const auto same = [&](std::size_t a, std::size_t b) {
            return key_of(scope, siblings_[a], one) == key_of(scope, siblings_[b], other);
        };
        bool all_same = true;
        for (std::size_t i = first + 1; i < end && all_same; ++i)
            all_same = same(first, i);
        if (!all_same)
            std::stable_sort(siblings_.begin() + static_cast<std::ptrdiff_t>(first),
                             siblings_.begin() + static_cast<std::ptrdiff_t>(end),
                             [&](const Sibling& a, const Sibling& b) {
                                 return key_of(scope, a, one) < key_of(scope, b, other);
                             });
        while (first < end) {
            std::size_t next = first + 1;
            while (next < end && (all_same || same(first, next)))
                ++next;
            groups_.push_back({static_cast<std::uint32_t>(first),
                               static_cast<std::uint32_t>(next - first), siblings_[first].place});
            first = next;
        }
    }

    void sort_groups(std::size_t first) {
        std::sort(groups_.begin() + static_cast<std::ptrdiff_t>(first), groups_.end(),
                  [](const Group& a, const Group& b) { return a.order < b.order; });
    }

    bool has_key(const Scope& scope, const Members& members, std::string_view key) const {
        const auto first = siblings_.begin() + static_cast<std::ptrdiff_t>(members.siblings);
        const auto end = siblings_.begin() + static_cast<std::ptrdiff_t>(members.siblings_end);
        const std::uint32_t hash = key_hash(key);
        KeyText text;
        for (auto each = std::lower_bound(
                 first, end, hash, [](const Sibling&s, std::uint32_t h) { return s.hash < h; });
             each != end && each->hash == hash; ++each)
            if (key_of(scope, *each, text) == key)
                return true;
        return false;
    }

    /// The kinds of containers, by where the first of each stands.
    std::vector<ChildType> child_types(const Scope& scope, const Members& members) {
        std::vector<ChildType> types;
        if (members.children == members.children_end)
            return types;
        std::sort(children_.begin() + static_cast<std::ptrdiff_t>(members.children),
                  children_.begin() + static_cast<std::ptrdiff_t>(members.children_end),
                  [](const Child& a, const Child& b) {
                      if (a.type != b.type)
                          return a.type < b.type;
                      return a.id != b.id ? a.id < b.id : a.offset < b.offset;
                  });
        for (std::size_t i = members.children; i < members.children_end; ++i) {
            const Child& child = children_[i];
            if (types.empty() || types.back().type != child.type)
                types.push_back({child.type, i, i, UINT64_MAX, 0});
            types.back().end = i + 1;
            if (child.offset < types.back().order) {
                types.back().order = child.offset;
                types.back().number = child.number;
            }
        }
        std::sort(types.begin(), types.end(),
                  [](const ChildType& a, const ChildType& b) { return a.order < b.order; });
        std::erase_if(types, [&](const ChildType& type) {
            const std::string name = container_key(type.type);
            if (!has_key(scope, members, name))
                return false;
            problem(scope.base + static_cast<std::size_t>(type.order), type.number,
                    fmt::format("\"{}\" is there already; the containers are left out", name));
            return true;
        });
        return types;
    }

    // Pass two: writing.

    void write_items(const Scope& scope, const Members& members) {
        for (std::size_t g = members.groups; g < members.groups_end; ++g) {
            const Group group = groups_[g];
            const Occurrence first = occurrence(scope, siblings_[group.first]);
            write_key(first);
            if (group.count == 1) {
                write(first, scope, false);
                continue;
            }
            const bool joined = options_.full || is_list(first);
            if (joined)
                json_.begin_array();
            write(first, scope, joined);
            for (std::size_t i = 1; i < group.count; ++i) {
                const Occurrence next = occurrence(scope, siblings_[group.first + i]);
                if (joined && (options_.full || is_list(next))) {
                    write(next, scope, true);
                } else {
                    KeyText text;
                    problem(scope, next,
                            fmt::format("\"{}\" is there already; this one is left out",
                                        key_of(next, text)));
                }
            }
            if (joined)
                json_.end_array();
        }
    }

    void write_key(const Occurrence& at) {
        const TypePlan& plan = *at.plan;
        if (plan.shape == Shape::merged && at.field != 0) {
            json_.key_text(plan.fields[at.field - 1].key.quoted);
        } else if (plan.shape == Shape::basic || plan.shape == Shape::structure ||
                   plan.shape == Shape::merged) {
            json_.key_text(plan.key.quoted);
        } else {
            KeyText text;
            json_.key(key_of(at, text));
        }
    }

    /// `bare`: what is a list is written without its brackets.
    void write(const Occurrence& at, const Scope& scope, bool bare) {
        const Item& item = at.item;
        const TypePlan& plan = *at.plan;
        if (item.kind == ItemKind::array) {
            write_array(at, bare);
            return;
        }
        switch (plan.shape) {
            case Shape::structure:
                write_structure(plan, item, item.payload);
                return;
            case Shape::merged:
                if (at.field == 0) {
                    write_structure(plan, item, item.payload);
                } else {
                    const FieldPlan& field = plan.fields[at.field - 1];
                    write_values(field, field.names, item.payload,
                                 field.count_in(item.payload.size()), bare);
                }
                return;
            case Shape::described:
                write_value(plan.fields[1],
                            options_.names
                                ? kcdata::described_value_names(description_in(item.payload))
                                : nullptr,
                            item, item.payload, bare);
                return;
            case Shape::type_definition:
                write_definition(plan, item);
                return;
            case Shape::nested:
                write_nested(item, scope);
                return;
            case Shape::basic:
            case Shape::container:
            case Shape::buffer:
            case Shape::opaque: {
                const FieldPlan& field = plan.fields.front();
                write_value(field, field.names, item, item.payload, bare);
                return;
            }
        }
    }

    void write_array(const Occurrence& at, bool bare) {
        const Item& item = at.item;
        const TypePlan& plan = *at.plan;
        const bool structure = plan.shape == Shape::structure || plan.shape == Shape::merged;
        const FieldPlan& field = plan.fields.front();
        if (!bare)
            json_.begin_array();
        for (std::size_t i = 0; i < item.element_count; ++i) {
            const Payload element = item.payload.subspan(i * item.element_size, item.element_size);
            if (structure)
                write_structure(plan, item, element);
            else
                write_value(field, field.names, item, element, false);
            if (json_.failed())
                break;
        }
        if (!bare)
            json_.end_array();
    }

    void write_structure(const TypePlan& plan, const Item& item, Payload payload) {
        std::size_t end = 0;
        json_.begin_object();
        for (const FieldPlan& field : plan.fields) {
            if (payload.size() <= field.offset)
                break;
            const std::size_t count = field.count_in(payload.size());
            if (count == 0)
                continue;
            json_.key_text(field.key.quoted);
            write_values(field, field.names, payload, count, false);
            end = std::max(end, end_of(field, count));
        }
        if (options_.full)
            write_tail(tail_of(item, payload, end));
        json_.end_object();
    }

    void write_tail(Payload tail) {
        if (tail.empty())
            return;
        json_.key(tail_key);
        json_.begin_array();
        json_.values(tail);
        json_.end_array();
    }

    /// The value of an item or element that is one field.
    void write_value(const FieldPlan& field, const ValueNames* names, const Item& item,
                     Payload payload, bool bare) {
        const std::size_t count = field.count_in(payload.size());
        if (options_.full) {
            const Payload tail = tail_of(item, payload, end_of(field, count));
            const bool empty = count == 0 && !field.list && field.type != FieldType::character;
            if (!tail.empty() || empty) {
                json_.begin_object();
                if (count != 0) {
                    json_.key_text(field.key.quoted);
                    write_values(field, names, payload, count, false);
                }
                write_tail(tail);
                json_.end_object();
                return;
            }
        }
        write_values(field, names, payload, count, bare);
    }

    void write_values(const FieldPlan& field, const ValueNames* names, Payload payload,
                      std::size_t count, bool bare) {
        const Payload values = payload.subspan(std::min<std::size_t>(field.offset, payload.size()));
        if (field.type == FieldType::character) {
            json_.value(text_in(values.first(count)));
            return;
        }
        const bool list = options_.full ? field.list : count > 1;
        if (!list) {
            write_scalar(field, names, values.data());
            return;
        }
        if (!bare)
            json_.begin_array();
        if (field.type == FieldType::u8 && names == nullptr) {
            json_.values(values.first(count));
        } else {
            for (std::size_t i = 0; i < count; ++i)
                write_scalar(field, names, values.data() + (i << field.size_shift));
        }
        if (!bare)
            json_.end_array();
    }

    void write_scalar(const FieldPlan& field, const ValueNames* names, const std::byte* bytes) {
        switch (field.type) {
            case FieldType::character:
                return;
            case FieldType::i8:
                return write_number(field, names, std::int64_t{load<std::int8_t>(bytes)});
            case FieldType::u8:
                return write_number(field, names, std::uint64_t{load<std::uint8_t>(bytes)});
            case FieldType::i16:
                return write_number(field, names, std::int64_t{load<std::int16_t>(bytes)});
            case FieldType::u16:
                return write_number(field, names, std::uint64_t{load<std::uint16_t>(bytes)});
            case FieldType::i32:
                return write_number(field, names, std::int64_t{load<std::int32_t>(bytes)});
            case FieldType::u32:
                return write_number(field, names, std::uint64_t{load<std::uint32_t>(bytes)});
            case FieldType::i64:
                return write_number(field, names, load<std::int64_t>(bytes));
            case FieldType::u64:
                return write_number(field, names, load<std::uint64_t>(bytes));
        }
    }

    template <typename Number>
    void write_number(const FieldPlan& field, const ValueNames* names, Number number) {
        if (names != nullptr)
            write_names(*names, number);
        else if (field.address)
            json_.hexadecimal(static_cast<std::uint64_t>(number));
        else
            json_.value(number);
    }

    /// An enumeration is its name, or the number if it has none. Flags are a list of names; a part
    /// of several bits is "MASK=0x...", and "0x..." is what has no name.
    template <typename Number>
    void write_names(const ValueNames& names, Number number) {
        const auto value = static_cast<std::uint64_t>(number);
        if (names.kind == ValueNames::Kind::enumeration) {
            std::string_view found;
            const std::uint64_t rest =
                names.for_each_name(value, [&](const auto& name, auto) { found = name.name; });
            if (rest == 0 && !found.empty())
                json_.value(found);
            else
                json_.value(number);
            return;
        }
        json_.begin_array();
        std::uint64_t rest = names.for_each_name(value, [&](const auto& name, std::uint64_t part) {
            if (value == 0 || std::has_single_bit(name.value))
                json_.value(name.name);
            else
                json_.value(std::string_view(fmt::format("{}={:#x}", name.name, part)));
        });
        if (rest != 0)
            json_.hexadecimal(rest);
        json_.end_array();
    }

    void write_definition(const TypePlan& plan, const Item& item) {
        const Definition definition(item.payload);
        json_.begin_object();
        for (const FieldPlan& field : plan.fields) {
            json_.key_text(field.key.quoted);
            write_values(field, field.names, item.payload, field.count_in(item.payload.size()),
                         false);
        }
        json_.key("fields");
        json_.begin_array();
        for (std::size_t i = 0; i < definition.field_count(); ++i) {
            const auto field = definition.field(i);
            json_.value(std::string_view(fmt::format(
                "[{},{}] {}  {}{};", field.offset, field.size(),
                Definition::c_names[field.type - 1], field.name,
                field.is_array() ? fmt::format("[{}]", field.count()) : std::string())));
        }
        json_.end_array();
        json_.end_object();
    }

    void write_nested(const Item& item, const Scope& scope) {
        path_.push_back({0, 0, root_key(item.payload)});
        write_inside({.reader = begun(item.payload),
                      .base = scope.base + item.offset + sizeof(kcdata::ItemHeader),
                      .level = scope.level + 1});
        path_.pop_back();
    }

    /// The inside of a container or nested buffer, as an object.
    void write_inside(const Scope& scope) {
        const Members members = look_through(scope);
        json_.begin_object();
        write_items(scope, members);
        for (const ChildType& type : child_types(scope, members))
            write_containers(scope, type);
        json_.end_object();
        drop(members);
    }

    /// {id: {...}, ...}: all containers of one type.
    void write_containers(const Scope& scope, const ChildType& type) {
        const std::size_t groups = group_children(type);
        const std::size_t groups_end = groups_.size();
        json_.key(container_key(type.type));
        json_.begin_object();
        for (std::size_t g = groups; g < groups_end && !json_.failed(); ++g)
            write_container(scope, groups_[g]);
        json_.end_object();
        groups_.resize(groups);
    }

    void write_lines(const Scope& scope, const ChildType& type) {
        const std::size_t groups = group_children(type);
        const std::size_t groups_end = groups_.size();
        for (std::size_t g = groups; g < groups_end && !json_.failed(); ++g) {
            json_.begin_object();
            json_.key(container_key(type.type));
            json_.begin_object();
            write_container(scope, groups_[g]);
            json_.end_object();
            json_.end_object();
            json_.line_feed();
        }
        groups_.resize(groups);
    }

    /// Puts groups of equal ids on the stack, by where the first of each stands; returns where they
    /// begin.
    std::size_t group_children(const ChildType& type) {
        const std::size_t groups = groups_.size();
        for (std::size_t first = type.first; first < type.end;) {
            std::size_t end = first + 1;
            while (end < type.end && children_[end].id == children_[first].id)
                ++end;
            groups_.push_back({static_cast<std::uint32_t>(first),
                               static_cast<std::uint32_t>(end - first), children_[first].offset});
            first = end;
        }
        sort_groups(groups);
        return groups;
    }

    void write_container(const Scope& scope, Group group) {
        const bool joined = options_.full && group.count > 1;
        json_.key(std::to_string(children_[group.first].id));
        if (joined)
            json_.begin_array();
        for (std::size_t i = 0; i < group.count; ++i) {
            const Child child = children_[group.first + i];
            const auto offset = static_cast<std::size_t>(child.offset);
            if (i > 0 && !joined) {
                problem(scope.base + offset, child.number,
                        fmt::format("{}/{} is there already; this one is left out",
                                    container_key(child.type), child.id));
                continue;
            }
            path_.push_back({child.type, child.id, {}});
            write_inside({.reader = scope.reader.inside(offset, child.number),
                          .base = scope.base,
                          .level = scope.level});
            path_.pop_back();
        }
        if (joined)
            json_.end_array();
    }

    /// What is no item type.
    static constexpr std::uint32_t unknown_type = UINT32_MAX;

    JsonEmitter& json_;
    DecodeOptions options_;
    const DecodePlan& plans_;
    std::map<std::uint32_t, DefinedType> defined_{};
    std::size_t defined_fields_ = 0;
    // Stacks: each container that is being written has its members on top.
    std::vector<Sibling> siblings_{};
    std::vector<Group> groups_{};
    std::vector<Child> children_{};
    std::vector<PathStep> path_{};
    Decoded decoded_{};
};

}  // namespace

Decoded decode(std::span<const std::byte> buffer, JsonEmitter& json, const DecodeOptions& options) {
    return Decoder(json, options).run(buffer, false);
}

Decoded decode_lines(std::span<const std::byte> buffer, JsonEmitter& json,
                     const DecodeOptions& options) {
    return Decoder(json, options).run(buffer, true);
}

}  // namespace tools
