#pragma once

#include <atomic>

#include "kernel/machine.hpp"
#include "kernel/panic.hpp"

namespace kernel {

/// IRQs masked on this CPU for as long as this lives.
class InterruptsOff {
  public:
    InterruptsOff() : enabled_(machine::interrupts_disable()) {}
    ~InterruptsOff() { machine::interrupts_restore(enabled_); }
    InterruptsOff(const InterruptsOff&) = delete;
    InterruptsOff& operator=(const InterruptsOff&) = delete;

  private:
    bool enabled_;
};

/// A lock that is waited for by spinning. Held with interrupts off only, so that no interrupt
/// handler, stop included, finds its own CPU holding it. Owned by a CPU, not by a thread: it may be
/// taken by one thread and given back by the next one on the same CPU.
///
/// The word is the owner, tested before it is set. No tickets: where vCPUs outnumber host CPUs the
/// next in line may not be running at all.
class SpinLock {
  public:
    constexpr SpinLock() = default;
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

    /// Interrupts off; this CPU does not hold it.
    void acquire() {
        CHECK(!machine::interrupts_enabled());
        const CpuIndex self = machine::current_cpu();
        CpuIndex owner = no_cpu;
        // Acquire: what the last owner wrote under the lock.
        if (!owner_.compare_exchange_strong(owner, self, std::memory_order_acquire,
                                            std::memory_order_relaxed)) [[unlikely]]
            acquire_contended(self);
    }
    /// This CPU holds it.
    void release() {
        CHECK(held());
        // Release: what was written under the lock is seen by the next owner.
        owner_.store(no_cpu, std::memory_order_release);
        machine::send_event();
    }
    /// Whether this CPU holds it. Interrupts off.
    bool held() const { return owner_.load(std::memory_order_relaxed) == machine::current_cpu(); }

  private:
    void acquire_contended(CpuIndex self);

    std::atomic<CpuIndex> owner_{no_cpu};
};

/// Holds a SpinLock, with interrupts off, for as long as it lives.
class SpinLockGuard {
  public:
    explicit SpinLockGuard(SpinLock& lock) : lock_(lock) { lock_.acquire(); }
    ~SpinLockGuard() { lock_.release(); }
    SpinLockGuard(const SpinLockGuard&) = delete;
    SpinLockGuard& operator=(const SpinLockGuard&) = delete;

  private:
    InterruptsOff interrupts_off_{};
    SpinLock& lock_;
};

}  // namespace kernel
