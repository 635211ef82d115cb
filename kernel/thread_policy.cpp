#include "kernel/thread_policy.hpp"

#include <algorithm>
#include <array>

namespace kernel {
namespace {

struct QosParameters {
    int base_priority;
    unsigned io_tier;
};
/// By class. XNU's thread_qos_policy_params.
constexpr std::array<QosParameters, 7> parameters = {{
    {0, 0},   // UNSPECIFIED
    {4, 3},   // MAINTENANCE
    {4, 2},   // BACKGROUND
    {20, 1},  // UTILITY
    {31, 0},  // LEGACY
    {37, 0},  // USER_INITIATED
    {46, 0},  // USER_INTERACTIVE
}};

ThreadQos effective_qos(const ThreadPolicy& policy) {
    if (!policy.darwin_background || policy.qos == ThreadQos::UNSPECIFIED)
        return policy.qos;
    return std::min(policy.qos, ThreadQos::BACKGROUND);
}

}  // namespace

PolicyWord requested_policy(const ThreadPolicy& policy) {
    return PolicyWord()
        .with(thrp_int_darwinbg, policy.darwin_background)
        .with(thrp_int_iopassive, policy.io_passive)
        .with(thrp_qos, static_cast<unsigned>(policy.qos));
}

PolicyWord effective_policy(const ThreadPolicy& policy) {
    const unsigned qos = static_cast<unsigned>(effective_qos(policy));
    const unsigned background_tier = policy.darwin_background ? 2 : 0;
    return PolicyWord()
        .with(thep_darwinbg, policy.darwin_background)
        .with(thep_io_tier, std::max(parameters[qos].io_tier, background_tier))
        .with(thep_io_passive, policy.io_passive)
        .with(thep_qos, qos);
}

int base_priority(const ThreadPolicy& policy, int unspecified) {
    const ThreadQos qos = effective_qos(policy);
    return qos == ThreadQos::UNSPECIFIED ? unspecified
                                         : parameters[static_cast<unsigned>(qos)].base_priority;
}

}  // namespace kernel
