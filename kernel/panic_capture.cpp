#include "kernel/panic_capture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/capture_sender.hpp"
#include "kernel/console.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/machine.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/trace.hpp"
#include "platform/arm64/cpu/context_switch.hpp"
#include "stackshot/panic_capture.hpp"

namespace kernel {
namespace {

using console::print;

constinit std::span<std::byte> memory;
constinit KernelStack stack;
/// Why there is no capture; null if there is one.
constinit const char* missing = "it is too early for one";

/// What goes on on the stack of its own.
struct Continuation {
    StoppedForGood& stopped;
    void (*then)();
};

const char* kind(std::uint64_t flags) {
    if ((flags & kcdata::STACKSHOT_DO_COMPRESS) != 0)
        return "compressed";
    return (flags & kcdata::STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY) != 0
               ? "plain, only threads with a kernel stack"
               : "plain";
}

void capture_and_send(StoppedForGood& stopped) {
    const std::uint64_t begin = machine::absolute_time();
    const auto capture = stackshot::take_panic_capture(stackshot_system(), stopped, memory);
    const std::uint64_t time = machine::absolute_time() - begin;
    if (capture.ok()) {
        const stackshot::PanicCapture& taken = capture.value();
        print("panic capture: %zu bytes (%s), %lu tasks, %lu threads, %u tries, %lu us\n",
              taken.data.size(), kind(taken.flags), taken.tasks, taken.threads, taken.tries,
              absolute_time_to_microseconds(time));
        if (const auto error = send_capture(taken.data); error != kcdata::KERN_SUCCESS)
            print("panic capture: not sent: %s\n", kcdata::kern_return_name(error));
    } else if (capture.error() == kcdata::KERN_INSUFFICIENT_BUFFER_SIZE) {
        print("panic capture: none: it does not fit in %zu KiB (stackshot.panic_kib)\n",
              memory.size() / 1024);
    } else {
        print("panic capture: none: %s\n", kcdata::kern_return_name(capture.error()));
        print_trace();
    }
}

void run(void* argument) {
    const auto& continuation = *static_cast<const Continuation*>(argument);
    capture_and_send(continuation.stopped);
    continuation.then();
}

}  // namespace

void reserve_panic_capture(BootArguments& arguments) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    const std::uint64_t usual = stackshot::panic_memory_size(stackshot_system().facts()) / 1024;
    const std::uint64_t wanted =
        arguments.number("stackshot.panic_kib", std::min(usual, most), 0, most);
    missing = "stackshot.panic_kib is 0";
    if (wanted == 0)
        return;
    memory = page_allocator().allocate((wanted * 1024 + page_size - 1) / page_size);
    stack = allocate_kernel_stack();
    missing = nullptr;
    if (memory.empty() || !stack.valid()) {
        missing = "there was no memory for one";
        print("panic capture: no %lu KiB to reserve (stackshot.panic_kib)\n", wanted);
    }
}

void capture_in_panic(StoppedForGood& stopped, void (*then)()) {
    if (missing != nullptr) {
        print("panic capture: none: %s\n", missing);
        then();
        machine::halt();
    }
    Continuation continuation{stopped, then};
    platform::SwitchContext here;
    platform::SwitchContext there;
    platform::prepare_context(there, stack.high, run, &continuation);
    platform::switch_context(here, there);
    machine::halt();
}

}  // namespace kernel
