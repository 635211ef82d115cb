#include <cstdint>

#include "kernel/machine.hpp"
#include "kernel/panic.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/thread.hpp"

// Panics on purpose. The test outside looks at what the console says and at how the machine ends.
namespace kernel::selftest {
namespace {

/// Calls itself until the stack is used up.
[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth) {
    volatile std::uint64_t room[32] = {depth};
    if (depth == UINT64_MAX)
        return 0;
    return recurse(depth + 1) + room[depth % 32];
}

}  // namespace

void panic_test(Verdict&) {
    panic("on purpose, thread %lu", current_thread().thread_id);
}

void panic_twice_test(Verdict&) {
    // The report of the first panic faults.
    panic("%s", reinterpret_cast<const char*>(std::uintptr_t{0xdead'beef'0}));
}

void exception_test(Verdict&) {
    // The lower half of the address space is not mapped.
    *reinterpret_cast<volatile std::uint64_t*>(std::uintptr_t{0xdead'beef'0}) = 1;
    panic("a store to an unmapped address went through");
}

void overflow_test(Verdict& verdict) {
    verdict.fail("recursion came back with %lu", recurse(0));
}

}  // namespace kernel::selftest
