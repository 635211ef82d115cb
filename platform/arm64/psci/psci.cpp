#include "platform/arm64/psci/psci.hpp"

#include "platform/arm64/psci/smccc.hpp"

namespace platform::psci {

namespace {

/// Function identifiers [DEN 0022 5.1]: the SMC64 form where there is one.
enum class Function : std::uint64_t {
    PSCI_VERSION = 0x8400'0000,
    CPU_OFF = 0x8400'0002,
    CPU_ON = 0xc400'0003,
    AFFINITY_INFO = 0xc400'0004,
    SYSTEM_OFF = 0x8400'0008,
    SYSTEM_RESET = 0x8400'0009,
};

Conduit conduit = Conduit::none;

std::int32_t call(Function function, std::uint64_t x1 = 0, std::uint64_t x2 = 0,
                  std::uint64_t x3 = 0) {
    const auto id = static_cast<std::uint64_t>(function);
    switch (conduit) {
        // All of PSCI's return values are 32 bits with a sign.
        case Conduit::hvc:
            return static_cast<std::int32_t>(smccc_hvc(id, x1, x2, x3));
        case Conduit::smc:
            return static_cast<std::int32_t>(smccc_smc(id, x1, x2, x3));
        case Conduit::none:
            break;
    }
    return static_cast<std::int32_t>(Status::NOT_SUPPORTED);
}

}  // namespace

const char* name(Status status) {
    switch (status) {
        case Status::SUCCESS:
            return "SUCCESS";
        case Status::NOT_SUPPORTED:
            return "NOT_SUPPORTED";
        case Status::INVALID_PARAMETERS:
            return "INVALID_PARAMETERS";
        case Status::DENIED:
            return "DENIED";
        case Status::ALREADY_ON:
            return "ALREADY_ON";
        case Status::ON_PENDING:
            return "ON_PENDING";
        case Status::INTERNAL_FAILURE:
            return "INTERNAL_FAILURE";
        case Status::NOT_PRESENT:
            return "NOT_PRESENT";
        case Status::DISABLED:
            return "DISABLED";
        case Status::INVALID_ADDRESS:
            return "INVALID_ADDRESS";
    }
    return "unknown";
}

const char* name(AffinityState state) {
    switch (state) {
        case AffinityState::ON:
            return "ON";
        case AffinityState::OFF:
            return "OFF";
        case AffinityState::ON_PENDING:
            return "ON_PENDING";
    }
    return name(static_cast<Status>(state));
}

void initialize(Conduit value) {
    conduit = value;
}

std::int32_t version() {
    return call(Function::PSCI_VERSION);
}

Status cpu_on(Mpidr target, PhysicalAddress entry, std::uint64_t context) {
    return static_cast<Status>(call(Function::CPU_ON, target.value(), entry.value(), context));
}

Status cpu_off() {
    return static_cast<Status>(call(Function::CPU_OFF));
}

AffinityState affinity_info(Mpidr target) {
    return static_cast<AffinityState>(call(Function::AFFINITY_INFO, target.value()));
}

Status system_off() {
    return static_cast<Status>(call(Function::SYSTEM_OFF));
}

Status system_reset() {
    return static_cast<Status>(call(Function::SYSTEM_RESET));
}

}  // namespace platform::psci
