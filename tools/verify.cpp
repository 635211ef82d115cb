#include "tools/verify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kcdata/inflater.hpp"
#include "kcdata/schema.hpp"
#include "kcdata/types.hpp"
#include "tools/field_value.hpp"
#include "tools/item_layout.hpp"
#include "tools/item_walk.hpp"
#include "tools/printable.hpp"
#include "tools/record_order.hpp"
#include "tools/spool.hpp"

namespace tools {

using namespace kcdata;
using Payload = std::span<const std::byte>;

namespace {

// clang-format off
constexpr Rule all_rules[] = {
    {"begin-missing", "a buffer begins with a BEGIN item"},
    {"begin-not-empty", "a BEGIN item has no payload"},
    {"begin-inside", "no BEGIN item stands inside of a buffer"},
    {"header-cut", "an item has a whole header"},
    {"item-past-the-end", "an item lies inside the data"},
    {"no-item", "where an item must be there is one"},
    {"end-missing", "a buffer ends with BUFFER_END"},
    {"end-not-empty", "BUFFER_END has no payload and flags 0"},
    {"bytes-behind-end", "only zeros follow BUFFER_END"},
    {"zeros-behind-end", "nothing follows BUFFER_END", true},
    {"type-invalid", "no item has type 0, or the type of a container"},
    {"size-not-rounded", "the size of an item is a multiple of 16"},
    {"flags-unknown", "of an item's flags only padding count and mark are used"},
    {"flags-not-marked", "generation 3: the padding count is marked (0x80)"},
    {"flags-unpadded", "generation 1: the flags are 0"},
    {"definition-marked", "the padding count of a TYPEDEFINTION is not marked"},
    {"padding-too-long", "an item is not shorter than its padding"},
    {"padding-not-zero", "padding is zero", true},
    {"array-contradiction", "count, size and padding of an array agree"},
    {"array-legacy", "generations 2 and 3: an array's type tells its padding"},
    {"container-begin-size", "a CONTAINER_BEGIN holds a container type, padded to 16 bytes"},
    {"container-end-size", "a CONTAINER_END has no payload"},
    {"container-end-outside", "a CONTAINER_END stands inside of a container"},
    {"container-end-of-another", "a CONTAINER_END has the id of the innermost container"},
    {"container-not-ended", "no BUFFER_END stands inside of a container"},
    {"container-id-repeated", "containers of one type and parent have different ids"},
    {"record-cut", "a record ends at the end of a field"},
    {"record-repeated", "a record, arrays excepted, is there only once in its container"},
    {"record-not-array", "records that come in numbers are array elements"},
    {"description-too-long", "a description ends with a NUL in its 32 bytes"},
    {"string-not-ended", "a text ends with a NUL, or is cut at 256 bytes", true},
    {"definition-short", "a TYPEDEFINTION has its 40 bytes and whole fields of 40"},
    {"definition-count", "a TYPEDEFINTION has as many fields as it says"},
    {"definition-field", "a TYPEDEFINTION names only types of fields there are"},
    {"compressed-head", "a compressed buffer begins with its three numbers and the inner BEGIN"},
    {"compressed-stream", "one zlib stream of the length that is told follows"},
    {"compressed-totals", "what comes out of it has the length that is told, a multiple of 16"},
    {"record-misplaced", "stackshot: a record or container stands where it belongs"},
    {"record-missing", "stackshot: what every capture, task and thread has is there"},
    {"record-order", "stackshot: records are in the order of the last release", true},
    {"record-of-delta", "stackshot: only a delta has records of deltas, only a full one static ones"},
    {"record-id", "stackshot: a task's or thread's container has the id that is in its record"},
    {"description-type", "stackshot: a described number has the size it always has", true},
};
// clang-format on

/// std::size(all_rules): no rule is called so.
constexpr std::size_t rule_index(std::string_view name) {
    std::size_t index = 0;
    while (index < std::size(all_rules) && all_rules[index].name != name)
        ++index;
    return index;
}
/// The rule called so; known when this is compiled.
template <std::size_t size>
struct RuleName {
    char text[size];
    consteval RuleName(const char (&name)[size]) { std::copy_n(name, size, text); }
};
template <RuleName name>
constexpr const Rule& rule() {
    constexpr std::size_t index = rule_index(std::string_view(name.text, sizeof(name.text) - 1));
    static_assert(index < std::size(all_rules));
    return all_rules[index];
}

constexpr std::uint64_t marked_flag = KCDATA_FLAGS_STRUCT_HAS_PADDING;
constexpr std::uint64_t count_mask = KCDATA_FLAGS_STRUCT_PADDING_MASK;

/// The strings that are cut at this length, without their NUL.
constexpr std::size_t longest_string = 256;

bool is_container_item(std::uint32_t type) {
    return type == KCDATA_TYPE_CONTAINER_BEGIN || type == KCDATA_TYPE_CONTAINER_END;
}

/// Whether the item's flags tell its padding.
bool has_padding_flags(const Stretch& stretch) {
    const std::uint32_t type = stretch.header.type;
    return stretch.is_item() && !stretch.is_array() && !is_container_item(type) &&
           type != KCDATA_TYPE_BUFFER_END && type != KCDATA_TYPE_TYPEDEFINTION;
}

/// Finds out how the writer of a buffer tells padding.
class GenerationSigns {
  public:
    void look(const Stretch& stretch) {
        if (!has_padding_flags(stretch))
            return;
        if ((stretch.header.flags & marked_flag) != 0)
            marked_ = true;
        else if ((stretch.header.flags & count_mask) != 0)
            counted_ = true;
        else
            bare_ = true;
    }
    Generation generation() const {
        if (counted_ || (marked_ && bare_))
            return Generation::counted;
        return marked_ ? Generation::marked : Generation::unpadded;
    }

  private:
    bool marked_ = false, counted_ = false, bare_ = false;
};

class Verifier {
  public:
    Verifier(const VerifyOptions& options, VerifyReport& report)
        : options_(options), report_(report) {}

    void file(Payload bytes, std::uint64_t base) {
        const std::uint64_t outer_base = base_;
        base_ = base;
        ItemWalk walk(bytes);
        Stretch stretch;
        bool inside = false;
        while (walk.next(stretch)) {
            if (!inside && stretch.is_item()) {
                begin_buffer(bytes.subspan(stretch.offset), stretch);
                inside = true;
            }
            if (stretch.is_item())
                item(stretch);
            else
                no_item(stretch, inside);
            if (stretch.is_item() && stretch.header.type == KCDATA_TYPE_BUFFER_END) {
                end_buffer();
                inside = false;
            }
        }
        if (walk.problem_at_end() != ItemProblem::none) {
            broken<"end-missing">(bytes.size(), "the data ends before it");
            // What else is missing may have come behind.
            buffer_.frames.resize(1);
            conclude();
        }
        base_ = outer_base;
    }

    const std::optional<Failure>& failure() const { return failure_; }

  private:
    /// What is known of a container that is open, or of the buffer: the first of them.
    struct Frame {
        std::uint32_t type = 0;
        std::uint64_t id = 0;
        std::uint64_t offset = 0;
        std::uint64_t item = 0;
        Scope scope = Scope::other;
        /// Keys that are taken, and whether by a list.
        std::unordered_map<std::string, bool> keys{};
        std::unordered_map<std::string, std::unordered_set<std::uint64_t>> ids{};
        int rank = 0;
        /// Types and descriptions of the records that every scope of this kind has.
        std::set<std::string_view> present{};
    };

    /// A buffer that is being checked.
    struct Buffer {
        std::uint64_t offset = 0;
        std::uint32_t magic = 0;
        Generation generation = Generation::marked;
        std::uint64_t items = 0;
        std::vector<Frame> frames{};
    };

    template <RuleName name, typename... Arguments>
    void broken(std::uint64_t offset, fmt::format_string<Arguments...> what,
                Arguments&&... arguments) {
        broken_by<name>(buffer_.items == 0 ? 0 : buffer_.items - 1, offset, what,
                        std::forward<Arguments>(arguments)...);
    }
    /// By another item than the last one.
    template <RuleName name, typename... Arguments>
    void broken_by(std::uint64_t item, std::uint64_t offset, fmt::format_string<Arguments...> what,
                   Arguments&&... arguments) {
        constexpr const Rule& broken_rule = rule<name>();
        if (!broken_rule.strict || options_.strict)
            report_.violation({broken_rule, base_ + offset, item, where(),
                               fmt::format(what, std::forward<Arguments>(arguments)...)});
    }

    std::string where() const {
        std::string text = outer_where_;
        for (std::size_t i = 1; i < buffer_.frames.size(); ++i)
            text += fmt::format("{}{}/{}", text.empty() ? "" : "/",
                                container_key(buffer_.frames[i].type), buffer_.frames[i].id);
        return text;
    }

    bool is_stackshot() const {
        return buffer_.magic == KCDATA_BUFFER_BEGIN_STACKSHOT ||
               buffer_.magic == KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT;
    }

    // Buffers.

    void begin_buffer(Payload bytes, const Stretch& begin) {
        buffer_ = Buffer{};
        buffer_.offset = base_ + begin.offset;
        Frame& top = buffer_.frames.emplace_back();
        top.scope = Scope::top;
        top.offset = begin.offset;
        if (options_.generation) {
            buffer_.generation = *options_.generation;
        } else {
            GenerationSigns signs;
            ItemWalk walk(bytes);
            Stretch stretch;
            while (walk.next(stretch)) {
                signs.look(stretch);
                if (stretch.is_item() && stretch.header.type == KCDATA_TYPE_BUFFER_END)
                    break;
            }
            buffer_.generation = signs.generation();
        }
        if (!is_begin_magic(begin.header.type)) {
            broken<"begin-missing">(begin.offset, "the first item is {}",
                                    type_text(begin.header.type));
            return;
        }
        buffer_.magic = begin.header.type;
        if (buffer_.magic == KCDATA_BUFFER_BEGIN_COMPRESSED && level_ < max_nested_buffers)
            compressed(bytes, begin.offset);
    }

    void end_buffer() {
        if (is_stackshot())
            check_present(buffer_.frames[0]);
        conclude();
    }

    void conclude() {
        report_.buffer({buffer_.offset, buffer_.generation, buffer_.items});
        buffer_.frames.clear();
    }

    void compressed(Payload bytes, std::uint64_t offset) {
        CompressedHead head;
        const CompressionError error = read_compressed_head(bytes, head);
        switch (error) {
            case CompressionError::none:
            case CompressionError::missing_end:
                break;
            case CompressionError::truncated_stream:
            case CompressionError::unfinished:
                broken<"compressed-stream">(offset, "{}", compression_error_text(error));
                break;
            default:
                broken<"compressed-head">(offset, "{}", compression_error_text(error));
                return;
        }
        std::vector<std::byte> memory(Inflater::memory_size);
        Inflater inflater(head, memory, options_.max_inflated - held_);
        const auto plain = inflated(head.inner_begin, inflater);
        if (!plain.ok()) {
            failure_ = plain.failure();
            return;
        }
        switch (inflater.error()) {
            case CompressionError::none:
            case CompressionError::unfinished:
                break;
            case CompressionError::wrong_totalin:
            case CompressionError::wrong_totalout:
            case CompressionError::too_large:
                broken<"compressed-totals">(offset, "{}", compression_error_text(inflater.error()));
                break;
            default:
                if (error == CompressionError::none)
                    broken<"compressed-stream">(offset, "{}",
                                                compression_error_text(inflater.error()));
                break;
        }
        if (inflater.total() % alignment != 0)
            broken<"compressed-totals">(offset, "{} bytes come out", inflater.total());
        held_ += inflater.total();
        inner("compressed", plain.value().get(), 0);
        held_ -= inflater.total();
    }

    /// The plain buffer: all that can be inflated, between BEGIN and BUFFER_END.
    static Expected<HeldBytes> inflated(const ItemHeader& begin, Inflater& inflater) {
        Spool plain(UINT64_MAX, {});
        if (auto failure = plain.append(std::as_bytes(std::span(&begin, 1))))
            return *failure;
        std::vector<std::byte> piece(1 << 16);
        std::size_t size = 0;
        do {
            size = inflater.read(piece);
            if (auto failure = plain.append(std::span(piece).first(size)))
                return *failure;
        } while (size == piece.size());
        const ItemHeader end{KCDATA_TYPE_BUFFER_END, 0, 0};
        if (auto failure = plain.append(std::as_bytes(std::span(&end, 1))))
            return *failure;
        return plain.take();
    }

    /// Checks a buffer inside of this one.
    void inner(std::string_view name, Payload bytes, std::uint64_t base) {
        const std::string outer = outer_where_;
        outer_where_ = where();
        if (!outer_where_.empty())
            outer_where_ += '/';
        outer_where_ += name;
        Buffer kept = std::move(buffer_);
        buffer_ = Buffer{};
        ++level_;
        file(bytes, base);
        --level_;
        buffer_ = std::move(kept);
        outer_where_ = outer;
    }

    void no_item(const Stretch& stretch, bool inside) {
        switch (stretch.problem) {
            case ItemProblem::none:
                break;
            case ItemProblem::no_buffer:
                broken<"begin-missing">(stretch.offset, "{}", item_problem_text(stretch.problem));
                return;
            case ItemProblem::header_cut:
                broken<"header-cut">(stretch.offset, "{}", item_problem_text(stretch.problem));
                return;
            case ItemProblem::past_the_end:
                broken<"item-past-the-end">(stretch.offset, "{}",
                                            item_problem_text(stretch.problem));
                return;
            default:
                broken<"no-item">(stretch.offset, "{}", item_problem_text(stretch.problem));
                return;
        }
        if (inside)
            return;
        if (is_zero(stretch.data))
            broken<"zeros-behind-end">(stretch.offset, "{} bytes", stretch.data.size());
        else
            broken<"bytes-behind-end">(stretch.offset, "{} bytes", stretch.data.size());
    }

    // Items.

    void item(const Stretch& stretch) {
        const bool first = buffer_.items++ == 0;
        const std::uint32_t type = stretch.header.type;
        if (type == KCDATA_TYPE_CONTAINER_END)
            close_containers(stretch);
        switch (stretch.problem) {
            case ItemProblem::array_contradiction:
                broken<"array-contradiction">(stretch.offset, "{} of {} in {} bytes",
                                              static_cast<std::uint32_t>(stretch.header.flags),
                                              type_text(stretch.array.element_type),
                                              stretch.header.size);
                break;
            case ItemProblem::end_outside:
                broken<"container-end-outside">(stretch.offset, "id {}", stretch.header.flags);
                break;
            case ItemProblem::end_of_another:
                broken<"container-end-of-another">(stretch.offset, "id {}", stretch.header.flags);
                break;
            case ItemProblem::end_inside_container:
                broken<"container-not-ended">(stretch.offset, "{} are open",
                                              buffer_.frames.size() - 1);
                close_all();
                break;
            default:
                break;
        }
        if (stretch.header.size % alignment != 0)
            broken<"size-not-rounded">(stretch.offset, "{} has {} bytes", type_text(type),
                                       stretch.header.size);
        if (is_begin_magic(type))
            begin_item(stretch, first);
        else if (type == KCDATA_TYPE_BUFFER_END)
            end_item(stretch);
        else if (type == KCDATA_TYPE_CONTAINER_BEGIN)
            container_begin(stretch);
        else if (type == KCDATA_TYPE_CONTAINER_END)
            container_end(stretch);
        else if (stretch.is_array())
            array(stretch);
        else
            plain(stretch);
        if (!is_zero(stretch.padding()))
            broken<"padding-not-zero">(stretch.offset + sizeof(ItemHeader) + stretch.payload.size(),
                                       "{} bytes behind {}", stretch.padding().size(),
                                       type_text(type));
    }

    void begin_item(const Stretch& stretch, bool first) {
        // The one in front of a compressed buffer's stream.
        const bool of_stream =
            buffer_.magic == KCDATA_BUFFER_BEGIN_COMPRESSED &&
            base_ + stretch.offset + sizeof(ItemHeader) == buffer_.offset + compressed_head_size;
        if (!first && !of_stream) {
            broken<"begin-inside">(stretch.offset, "{}", type_text(stretch.header.type));
            return;
        }
        if (stretch.header.size != 0)
            broken<"begin-not-empty">(stretch.offset, "{} bytes", stretch.header.size);
        padding_flags(stretch);
    }

    void end_item(const Stretch& stretch) {
        if (stretch.header.size != 0 || stretch.header.flags != 0)
            broken<"end-not-empty">(stretch.offset, "{} bytes, flags {:#x}", stretch.header.size,
                                    stretch.header.flags);
    }

    void padding_flags(const Stretch& stretch) {
        const std::uint64_t flags = stretch.header.flags;
        const std::string name = type_text(stretch.header.type);
        if ((flags & ~(marked_flag | count_mask)) != 0)
            broken<"flags-unknown">(stretch.offset, "{} has flags {:#x}", name, flags);
        if ((flags & count_mask) > stretch.header.size)
            broken<"padding-too-long">(stretch.offset, "{} has {} bytes, {} of them padding", name,
                                       stretch.header.size, flags & count_mask);
        if (stretch.header.type == KCDATA_TYPE_TYPEDEFINTION) {
            if ((flags & marked_flag) != 0)
                broken<"definition-marked">(stretch.offset, "flags {:#x}", flags);
        } else if (buffer_.generation == Generation::marked && (flags & marked_flag) == 0) {
            broken<"flags-not-marked">(stretch.offset, "{} has flags {:#x}", name, flags);
        } else if (buffer_.generation == Generation::unpadded && flags != 0) {
            broken<"flags-unpadded">(stretch.offset, "{} has flags {:#x}", name, flags);
        }
    }

    void container_begin(const Stretch& stretch) {
        Frame& parent = buffer_.frames.back();
        if (stretch.header.size != alignment)
            broken<"container-begin-size">(stretch.offset, "{} bytes", stretch.header.size);
        Frame frame;
        frame.id = stretch.header.flags;
        frame.offset = stretch.offset;
        frame.item = buffer_.items - 1;
        if (stretch.payload.size() >= sizeof(frame.type)) {
            frame.type = static_cast<std::uint32_t>(load_value(FieldType::u32, stretch.payload));
            const std::string key = container_key(frame.type);
            if (!parent.ids[key].insert(frame.id).second)
                broken<"container-id-repeated">(stretch.offset, "{} {}", type_text(frame.type),
                                                frame.id);
            if (parent.ids[key].size() == 1 && parent.keys.contains(key))
                broken<"record-repeated">(stretch.offset, "\"{}\" is there already", key);
            if (is_stackshot()) {
                place(stretch.offset, parent, frame.type, {});
                frame.scope = scope_of(frame.type);
            }
        }
        buffer_.frames.push_back(std::move(frame));
    }

    void container_end(const Stretch& stretch) {
        if (!stretch.data.empty())
            broken<"container-end-size">(stretch.offset, "{} bytes", stretch.data.size());
    }

    /// Leaves the containers that are no longer open behind a CONTAINER_END.
    void close_containers(const Stretch& stretch) {
        while (buffer_.frames.size() > stretch.depth + 1)
            close();
    }
    void close_all() {
        while (buffer_.frames.size() > 1)
            close();
    }
    void close() {
        if (is_stackshot())
            check_present(buffer_.frames.back());
        buffer_.frames.pop_back();
    }

    void array(const Stretch& stretch) {
        const ArrayLayout& layout = stretch.array;
        if (stretch.header.type == KCDATA_TYPE_ARRAY && buffer_.generation != Generation::unpadded)
            broken<"array-legacy">(stretch.offset, "{} x {}", layout.count,
                                   type_text(layout.element_type));
        if (!layout.valid)
            return;
        if (layout.count != 0)
            whole_fields(stretch.offset, layout.element_type, layout.element_size);
        const Type* const type = find_type(layout.element_type);
        const bool known =
            type != nullptr && (type->shape == Shape::basic || type->shape == Shape::structure ||
                                type->shape == Shape::merged);
        if (!known)
            take_key(stretch.offset, fmt::format("Type_{:#x}", layout.element_type), true);
        else
            take_key(stretch.offset,
                     std::string(type->shape == Shape::basic ? type->fields[0].key : type->key),
                     true);
        if (is_stackshot())
            record(stretch.offset, layout.element_type, {});
    }

    void plain(const Stretch& stretch) {
        const std::uint32_t id = stretch.header.type;
        const Type* const type = find_type(id);
        if (id == 0 || (type != nullptr && type->shape == Shape::container)) {
            broken<"type-invalid">(stretch.offset, "an item of type {}", type_text(id));
            return;
        }
        padding_flags(stretch);
        std::string_view description;
        const Payload payload = stretch.payload;
        switch (type != nullptr ? type->shape : Shape::opaque) {
            case Shape::described:
                description = description_in(payload);
                if (description.size() == description_size)
                    broken<"description-too-long">(stretch.offset, "{} begins with \"{}\"",
                                                   type->name, printable(description));
                whole_fields(stretch, id);
                if (payload.size() >= fields_size(type->fields))
                    take_key(stretch.offset, std::string(description), false);
                break;
            case Shape::type_definition:
                definition(stretch);
                break;
            case Shape::nested:
                if (level_ < max_nested_buffers)
                    inner("nested", payload, base_ + stretch.offset + sizeof(ItemHeader));
                break;
            case Shape::basic:
                whole_fields(stretch, id);
                if (payload.size() >= type->fields[0].element_size())
                    take_key(stretch.offset, std::string(type->fields[0].key),
                             type->fields[0].type != FieldType::character &&
                                 type->fields[0].count > 1 && payload.size() > 1);
                string_end(stretch, id);
                break;
            case Shape::structure:
                whole_fields(stretch, id);
                take_key(stretch.offset, std::string(type->key), false);
                break;
            case Shape::merged:
                whole_fields(stretch, id);
                for (const Field& field : type->fields)
                    if (field.decoded && payload.size() >= field.offset + field.element_size())
                        take_key(stretch.offset, std::string(field.key), false);
                break;
            default:
                whole_fields(stretch, id);
                if (!payload.empty())
                    take_key(stretch.offset, fmt::format("Type_{:#x}", id), payload.size() > 1);
                break;
        }
        if (!is_stackshot())
            return;
        record(stretch.offset, id, description);
        record_id(stretch);
        if (comes_in_numbers(id))
            broken<"record-not-array">(stretch.offset, "{} is an item of its own", type_text(id));
        if (type != nullptr && type->shape == Shape::described) {
            const std::uint32_t usual = type_of_described(description);
            if (usual != 0 && usual != id && buffer_.frames.size() == 1)
                broken<"description-type">(stretch.offset, "{} is a {}", printable(description),
                                           type_text(id));
        }
    }

    void string_end(const Stretch& stretch, std::uint32_t type) {
        if (type != STACKSHOT_KCTYPE_BOOTARGS && type != STACKSHOT_KCTYPE_OSVERSION &&
            type != STACKSHOT_KCTYPE_OS_BUILD_VERSION)
            return;
        const std::size_t length = text_in(stretch.payload).size();
        if (length + 1 != stretch.payload.size() && length != longest_string)
            broken<"string-not-ended">(stretch.offset, "{}: {} characters in {} bytes",
                                       type_text(type), length, stretch.payload.size());
    }

    void whole_fields(const Stretch& stretch, std::uint32_t type) {
        // Of a payload that is rounded up, nobody knows the end.
        if (buffer_.generation != Generation::unpadded)
            whole_fields(stretch.offset, type, stretch.payload.size());
    }
    void whole_fields(std::uint64_t offset, std::uint32_t type, std::size_t size) {
        const std::span<const Field> fields = fields_of(type);
        if (size == 0 || size >= fields_size(fields))
            return;
        for (const Field& field : fields) {
            if (size == field.offset)
                return;
            if (size < field.offset + field.size()) {
                if (field.count > 1 && (size - field.offset) % field.element_size() == 0)
                    return;
                broken<"record-cut">(offset, "{} of {} bytes ends inside of {}", type_text(type),
                                     size, field.name);
                return;
            }
        }
    }

    void definition(const Stretch& stretch) {
        constexpr std::size_t head = 40;
        const Payload payload = stretch.payload;
        if (payload.size() < head || (payload.size() - head) % subtype_descriptor_size != 0) {
            broken<"definition-short">(stretch.offset, "{} bytes", payload.size());
            if (payload.size() < head)
                return;
        }
        const std::uint64_t told = load_value(FieldType::u32, payload.subspan(4));
        const std::size_t count = (payload.size() - head) / subtype_descriptor_size;
        if (told != count)
            broken<"definition-count">(stretch.offset, "{} fields, {} told", count, told);
        for (std::size_t i = 0; i < count; ++i) {
            const Payload field = payload.subspan(head + i * subtype_descriptor_size);
            const std::uint64_t type = load_value(FieldType::u8, field.subspan(1));
            if (type < static_cast<std::uint64_t>(FieldType::character) ||
                type > static_cast<std::uint64_t>(FieldType::u64))
                broken<"definition-field">(stretch.offset, "field {} is of type {}", i, type);
        }
    }

    /// A key of the decoded container that this item takes.
    void take_key(std::uint64_t offset, std::string key, bool list) {
        Frame& frame = buffer_.frames.back();
        const auto [place, fresh] = frame.keys.emplace(std::move(key), list);
        if ((!fresh && !(list && place->second)) || (fresh && frame.ids.contains(place->first)))
            broken<"record-repeated">(offset, "\"{}\" is there already", printable(place->first));
    }

    // Records of a stackshot.

    void record(std::uint64_t offset, std::uint32_t type, std::string_view description) {
        Frame& frame = buffer_.frames.back();
        place(offset, frame, type, description);
        const bool delta = buffer_.magic == KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT;
        if ((is_of_delta(type) && !delta) || (is_of_full(type) && delta))
            broken<"record-of-delta">(offset, "{} in a {} one", type_text(type),
                                      delta ? "delta" : "full");
    }

    void place(std::uint64_t offset, Frame& frame, std::uint32_t type,
               std::string_view description) {
        const std::string_view name = record_name(type, description);
        const auto rank = rank_in(frame.scope, name);
        if (!rank) {
            if (frame.scope != Scope::other && belongs_elsewhere(name))
                broken<"record-misplaced">(offset, "{}", name);
            return;
        }
        if (*rank < frame.rank)
            broken<"record-order">(offset, "{} comes too late", name);
        frame.rank = std::max(frame.rank, *rank);
        frame.present.insert(name);
    }

    void check_present(const Frame& frame) {
        for (const Required& required : required_records()) {
            if (required.scope != frame.scope ||
                (frame.scope != Scope::top && required.container != frame.type))
                continue;
            const bool there = std::any_of(required.one_of.begin(), required.one_of.end(),
                                           [&frame](std::string_view name) {
                                               return !name.empty() && frame.present.contains(name);
                                           });
            if (!there)
                broken_by<"record-missing">(frame.item, frame.offset, "{}", required.one_of[0]);
        }
    }

    void record_id(const Stretch& stretch) {
        const Frame& frame = buffer_.frames.back();
        const std::string_view field = id_field(stretch.header.type);
        if (field.empty() || frame.scope == Scope::other || frame.scope == Scope::top ||
            stretch.payload.size() < sizeof(std::uint64_t))
            return;
        const std::uint64_t id = load_value(FieldType::u64, stretch.payload);
        if (id != frame.id)
            broken<"record-id">(stretch.offset, "{} is {} in container {}", field, id, frame.id);
    }

    const VerifyOptions& options_;
    VerifyReport& report_;
    std::optional<Failure> failure_{};
    /// Bytes that are inflated now.
    std::uint64_t held_ = 0;
    std::uint64_t base_ = 0;
    std::size_t level_ = 0;
    std::string outer_where_{};
    Buffer buffer_{};
};

}  // namespace

std::span<const Rule> rules() {
    return all_rules;
}

std::optional<Failure> verify(std::span<const std::byte> bytes, const VerifyOptions& options,
                              VerifyReport& report) {
    Verifier verifier(options, report);
    verifier.file(bytes, 0);
    return verifier.failure();
}

}  // namespace tools
