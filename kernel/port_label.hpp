#pragma once

#include <cstdint>

namespace kernel {

/// Which service a port is the way to, as launchd registers it. XNU's mach_service_port_info.
struct PortLabel {
    char name[64] = {};             ///< ends with a NUL
    std::uint64_t domain_type = 0;  ///< launchd's domain: 1 system, 2 user, 3 user login...
};

}  // namespace kernel
