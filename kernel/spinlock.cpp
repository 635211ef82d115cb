#include "kernel/spinlock.hpp"

#include "kernel/quiesce.hpp"

namespace kernel {

void SpinLock::acquire_contended(CpuIndex self) {
    for (;;) {
        CpuIndex owner = owner_.load(std::memory_order_relaxed);
        CHECK(owner != self);
        if (owner == no_cpu && owner_.compare_exchange_weak(owner, self, std::memory_order_acquire,
                                                            std::memory_order_relaxed))
            return;
        // The owner may have panicked: nobody gives the lock back then.
        quiesce().park_if_panicking();
        machine::wait_for_event();
    }
}

}  // namespace kernel
