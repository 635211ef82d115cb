#pragma once

#include <cstdint>

namespace stackshot {

/// What a task may be entitled to, one bit each.
enum Entitlement : std::uint64_t {
    entitlement_stackshot = 1 << 0,        ///< taking stackshots
    entitlement_stackshot_stats = 1 << 1,  ///< reading SubsystemStatistics
};

/// Whom a request is made for.
struct Credential {
    std::uint32_t uid = 0;
    std::uint64_t entitlements = 0;  ///< Entitlement

    bool superuser() const { return uid == 0; }
    bool entitled(Entitlement entitlement) const { return (entitlements & entitlement) != 0; }
};

}  // namespace stackshot
