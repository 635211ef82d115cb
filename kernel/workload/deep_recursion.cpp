#include "kernel/console.hpp"
#include "kernel/panic.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

[[gnu::noinline]] std::uintptr_t recurse(std::uintptr_t depth) {
    if (depth <= 1) {
        sleep_until(no_deadline);
        return 1;
    }
    return 1 + recurse(depth - 1);
}

void recursion(void* depth) {
    CHECK(recurse(reinterpret_cast<std::uintptr_t>(depth)) != 0);
}

}  // namespace

/// threads (1) that recurse `depth` (60 to 100, drawn) deep and sleep there.
void start_deep_recursion(const Size& size) {
    Scene scene("deep-recursion", size.seed);
    for (std::uint32_t threads = size.threads != 0 ? size.threads : 1; threads > 0; threads--) {
        const std::uintptr_t depth =
            size.depth != 0
                ? size.depth
                : static_cast<std::uintptr_t>(scene.between(60, static_cast<int>(max_depth)));
        const Thread& thread =
            scene.actor(recursion, reinterpret_cast<void*>(depth), scene.between(20, 50));
        scene.await_blocked(thread, kcdata::kThreadWaitNone);
        console::print("scene: thread %lu is %zu frames deep\n", thread.thread_id, depth);
    }
}

}  // namespace kernel::workload
