#include "tools/decode_plan.hpp"

#include <algorithm>
#include <bit>

#include "kcdata/format.hpp"
#include "kcdata/types.hpp"
#include "tools/json_emitter.hpp"
#include "tools/utf8.hpp"

namespace tools {

namespace {

using kcdata::Field;
using kcdata::FieldType;
using kcdata::Shape;
using kcdata::Type;

TypePlan plan_unknown(std::uint32_t count) {
    TypePlan plan;
    plan.definable = true;
    FieldPlan bytes;
    bytes.type = FieldType::u8;
    bytes.list = true;
    bytes.count = count;
    plan.fields.push_back(std::move(bytes));
    return plan;
}

/// As libkdd prints the type.
TypePlan plan_type(const Type& type, const DecodeOptions& options) {
    TypePlan plan;
    plan.shape = type.shape;
    for (const Field& field : type.fields)
        if (field.decoded)
            plan.fields.push_back(plan_field(type.id, field, options));
    plan.key = type.shape == Shape::basic ? plan.fields.front().key : PlannedKey(type.key);
    return plan;
}

/// The elements of backtraces, of which XNU only says that they are addresses.
const Field* pc_of(std::uint32_t type) {
    static constexpr Field pc32{
        .name = "pc", .type = FieldType::u32, .offset = 0, .is_address = true};
    static constexpr Field pc64{
        .name = "pc", .type = FieldType::u64, .offset = 0, .is_address = true};
    switch (type) {
        case kcdata::TASK_BTINFO_BACKTRACE:
            return &pc32;
        case kcdata::TASK_BTINFO_BACKTRACE64:
        case kcdata::TASK_BTINFO_ASYNC_BACKTRACE64:
            return &pc64;
        default:
            return nullptr;
    }
}

/// With all fields, under XNU's names.
TypePlan plan_full_type(const Type& type, const DecodeOptions& options) {
    TypePlan plan;
    plan.shape = type.shape;
    plan.definable = type.shape == Shape::opaque;
    for (const Field& field : type.fields)
        plan.fields.push_back(plan_field(type.id, field, options));
    if (type.id == kcdata::KCDATA_TYPE_BINDATA_DESC) {
        plan.shape = Shape::described;
        plan.fields = {
            plan_field(type.id,
                       {.name = "desc",
                        .type = FieldType::character,
                        .offset = 0,
                        .count = kcdata::description_size},
                       options),
            plan_field(type.id,
                       {.name = "data",
                        .type = FieldType::u8,
                        .offset = static_cast<std::uint32_t>(kcdata::description_size),
                        .count = Field::unbounded},
                       options),
        };
    } else if (type.shape == Shape::opaque) {
        plan.key = PlannedKey(type.name);
        if (const Field* const pc = pc_of(type.id)) {
            plan.fields = {plan_field(type.id, *pc, options)};
            plan.shape = Shape::basic;
        } else if (plan.fields.empty()) {
            plan.fields = plan_unknown(UINT32_MAX).fields;
            plan.fields.front().key = plan.key;
            plan.shape = Shape::basic;
        } else {
            plan.shape = plan.fields.size() == 1 ? Shape::basic : Shape::structure;
        }
    } else if (type.shape == Shape::basic && plan.fields.size() > 1) {
        // libkdd takes it for its first field.
        plan.shape = Shape::structure;
        plan.key = PlannedKey(type.name);
    } else {
        plan.key = type.shape == Shape::basic ? plan.fields.front().key : PlannedKey(type.key);
    }
    return plan;
}

}  // namespace

std::uint32_t key_hash(std::string_view key) {
    std::uint32_t hash = 2166136261;
    for (const char c : key)
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
    return hash;
}

PlannedKey::PlannedKey(std::string_view key)
    : text(utf8_text(key)), quoted(JsonEmitter::quoted_key(text)), hash(key_hash(text)) {}

FieldPlan plan_field(std::uint32_t type, const Field& field, const DecodeOptions& options) {
    FieldPlan plan;
    plan.key = PlannedKey(options.full ? field.name : field.key);
    plan.type = options.full ? field.type : field.read_as;
    plan.size_shift = static_cast<std::uint8_t>(std::countr_zero(kcdata::size_of(plan.type)));
    plan.offset = field.offset;
    plan.count = field.count;
    // The reference counts no values of an array that takes the rest of its item.
    if (options.full && (field.count == Field::unbounded || field.count == 0))
        plan.count = UINT32_MAX;
    plan.list = field.count != 1 && plan.type != FieldType::character;
    plan.address = options.full && field.is_address;
    if (options.names)
        plan.names = kcdata::field_value_names(type, field.name);
    return plan;
}

DecodePlan::DecodePlan(const DecodeOptions& options) : index_(0x1060) {
    plans_.push_back(plan_unknown(options.full ? UINT32_MAX : Field::unbounded));
    for (const Type& type : kcdata::schema()) {
        if (type.id >= index_.size() || type.shape == Shape::container ||
            type.shape == Shape::buffer || (type.shape == Shape::opaque && !options.full))
            continue;
        index_[type.id] = static_cast<std::uint16_t>(plans_.size());
        plans_.push_back(options.full ? plan_full_type(type, options) : plan_type(type, options));
    }
    plain_definition_ = find(kcdata::KCDATA_TYPE_TYPEDEFINTION);
    plain_definition_.shape = Shape::structure;
}

}  // namespace tools
