#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kcdata/names.hpp"
#include "kcdata/schema.hpp"

namespace tools {

/// How the fields of one type become JSON, made ready once: texts quoted, keys hashed.

/// FNV-1a. For putting equal keys side by side, never for telling that keys are equal.
std::uint32_t key_hash(std::string_view key);

/// A key of the JSON document, as it is printed there: keys that differ in bytes that are not UTF-8
/// are one.
struct PlannedKey {
    PlannedKey() = default;
    explicit PlannedKey(std::string_view text);

    std::string text{};
    std::string quoted{};  ///< as JsonEmitter::key_text() takes it
    std::uint32_t hash = 0;
};

struct FieldPlan {
    PlannedKey key{};
    kcdata::FieldType type{};
    std::uint8_t size_shift = 0;  ///< a value has 1 << size_shift bytes
    bool list = false;            ///< declared with more than one value; never of text
    bool address = false;         ///< printed in hexadecimal
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
    const kcdata::ValueNames* names = nullptr;  ///< printed by name

    /// How many values of the field a payload of `size` bytes holds.
    std::size_t count_in(std::size_t size) const {
        if (size <= offset)
            return 0;
        const std::size_t fitting = (size - offset) >> size_shift;
        return fitting < count ? fitting : count;
    }
};

struct TypePlan {
    kcdata::Shape shape = kcdata::Shape::opaque;
    /// Of the item in its parent, and of arrays; empty: "Type_0x...". Fields of a merged type and
    /// described values have keys of their own.
    PlannedKey key{};
    /// The buffer's own TYPEDEFINITION of the type, if there is one, comes first.
    bool definable = false;
    /// By ascending offset.
    std::vector<FieldPlan> fields{};
};

/// What is printed, besides what libkdd prints.
struct DecodeOptions {
    /// XNU's field names and types in place of libkdd's; everything the buffer holds.
    bool full = false;
    /// Flags and enumerations by name.
    bool names = false;
};

FieldPlan plan_field(std::uint32_t type, const kcdata::Field& field, const DecodeOptions& options);

/// The plans of all types of the schema.
class DecodePlan {
  public:
    explicit DecodePlan(const DecodeOptions& options);

    /// The plan of an item or element type; that of an unknown one if there is no other.
    const TypePlan& find(std::uint32_t type) const {
        return plans_[type < index_.size() ? index_[type] : 0];
    }
    /// The plan of a TYPEDEFINTION where it is an item like any other.
    const TypePlan& plain_definition() const { return plain_definition_; }

  private:
    /// The first is that of an unknown type.
    std::vector<TypePlan> plans_;
    /// By type. Item types are small numbers; those above are magics.
    std::vector<std::uint16_t> index_;
    TypePlan plain_definition_;
};

}  // namespace tools
