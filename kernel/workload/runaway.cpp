#include "kernel/console.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

[[gnu::noinline]] std::uint64_t go_round(std::uint64_t seed) {
    Random random(seed);
    for (;;)
        seed += random.next();
}

void runaway(void* seed) {
    go_round(reinterpret_cast<std::uint64_t>(seed));
}

}  // namespace

/// A thread that neither waits nor yields, of higher priority than everything but the kernel's own.
void start_runaway(const Size& size) {
    Scene scene("runaway", size.seed);
    const Thread& thread =
        scene.actor(runaway, reinterpret_cast<void*>(scene.random().next()), scene.between(62, 70));
    console::print("scene: thread %lu runs away\n", thread.thread_id);
}

}  // namespace kernel::workload
