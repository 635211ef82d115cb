#pragma once

#include <cstdint>

#include "kernel/turnstile.hpp"

namespace kernel {

/// A reader-writer lock: shared by readers or exclusive to one writer. Thread context, interrupts
/// on; who holds it gives it back.
///
/// It is granted by priority, then in order of arrival, to readers and writers alike; readers that
/// follow each other in that order share it. So a reader that comes while others read waits if a
/// waiting writer is not of lower priority, and neither kind starves the other within a priority.
/// An upgrade goes before all of them.
///
/// A writer that holds it inherits the priority of the waiters. Readers do not: who they are is not
/// kept.
class RwLock {
  public:
    constexpr RwLock() = default;
    RwLock(const RwLock&) = delete;
    RwLock& operator=(const RwLock&) = delete;

    void lock_shared();
    void lock_exclusive();
    /// False if it would have to wait.
    bool try_lock_shared();
    bool try_lock_exclusive();
    void unlock_shared();
    void unlock_exclusive();
    /// Makes the reader the writer, when the other readers have gone. False, and the lock is given
    /// back, if another reader is doing so: what was read may be out of date then.
    [[nodiscard]] bool upgrade();
    /// Makes the writer a reader.
    void downgrade();

    /// Who holds it exclusively; null: nobody, or readers. For a reader in a stop.
    Thread* owner() const { return turnstile_.inheritor(); }

  private:
    bool may_share(const Thread& thread) const;
    void wait(SchedulerGuard&, std::uint8_t block_hint);
    void grant(SchedulerGuard&);

    /// Who holds it shared.
    std::uint32_t readers_ = 0;
    /// The reader that waits to become the writer; one of the readers.
    Thread* upgrader_ = nullptr;
    Turnstile turnstile_{};
};

}  // namespace kernel
