#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kcdata {

/// What one value, or one flag, is called.
struct ValueName {
    std::string_view name;  ///< XNU's
    std::uint64_t value;    ///< of a signed field: extended to 64 bits
};

/// The names of the values of one set: an enum of XNU's, or what one field holds.
struct ValueNames {
    enum class Kind : std::uint8_t {
        enumeration,  ///< a value has one name
        flags,        ///< a value is an or of flags; one of several bits is a mask of a number
    };

    std::string_view group;  ///< of the reference table; empty if put together from several
    Kind kind;
    /// In ascending order. Of several names for one value, the first is the one to print.
    std::span<const ValueName> names;

    /// The value called `name`, or nullptr.
    const ValueName* find(std::string_view name) const;

    /// Calls visit(const ValueName&, std::uint64_t part) for everything in `value` that has a name;
    /// `part` is what of the value the name stands for. Returns the rest, that has none: for an
    /// enumeration all of the value, or nothing.
    ///
    /// True of any value: the parts and the rest, or-ed, are the value.
    template <typename Visit>
    std::uint64_t for_each_name(std::uint64_t value, Visit visit) const {
        if (kind == Kind::enumeration || value == 0) {
            for (const ValueName& each : names) {
                if (each.value == value) {
                    visit(each, value);
                    return 0;
                }
            }
            return value;
        }
        std::uint64_t rest = value;
        for (const ValueName& each : names) {
            if (const std::uint64_t part = rest & each.value; part != 0) {
                visit(each, part);
                rest &= ~part;
            }
        }
        return rest;
    }
};

/// Every set of XNU's that we know: kcdata.h's flags and enums, and debug.h's STACKSHOT_* flags.
std::span<const ValueNames> value_name_groups();
/// The set of value_name_groups() called `group`, or nullptr.
const ValueNames* find_value_names(std::string_view group);

/// The names of the values of a schema field, or nullptr: just a number. `type` is an item's or an
/// array element's; also takes the kcs_* fields of a KCDATA_TYPE_TYPEDEFINTION.
const ValueNames* field_value_names(std::uint32_t type, std::string_view field);
/// The same for the "data" of a KCDATA_TYPE_*_DESC item, by its description.
const ValueNames* described_value_names(std::string_view description);

}  // namespace kcdata
