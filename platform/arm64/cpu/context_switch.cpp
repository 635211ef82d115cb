#include "platform/arm64/cpu/context_switch.hpp"

#include "platform/arm64/cpu/context_offsets.hpp"

namespace platform {

static_assert(offsetof(SwitchContext, x19_to_x28) == CONTEXT_X19);
static_assert(offsetof(SwitchContext, fp) == CONTEXT_FP);
static_assert(offsetof(SwitchContext, lr) == CONTEXT_FP + 8);
static_assert(offsetof(SwitchContext, sp) == CONTEXT_SP);
static_assert(offsetof(SwitchContext, fpcr) == CONTEXT_SP + 8);
static_assert(offsetof(SwitchContext, d8_to_d15) == CONTEXT_D8);

extern "C" const char thread_start_resume[];

void prepare_context(SwitchContext& context, std::uint64_t stack_top, void (*entry)(void*),
                     void* argument) {
    context = {};
    context.x19_to_x28[0] = reinterpret_cast<std::uint64_t>(entry);
    context.x19_to_x28[1] = reinterpret_cast<std::uint64_t>(argument);
    context.lr = reinterpret_cast<std::uint64_t>(thread_start_resume);
    context.sp = stack_top;
}

}  // namespace platform
