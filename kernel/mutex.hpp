#pragma once

#include "kernel/turnstile.hpp"

namespace kernel {

/// A lock that is waited for by blocking. It is handed over: unlock() makes the first waiter the
/// owner. The owner inherits the priority of the waiters. Thread context, interrupts on; its owner
/// gives it back.
class Mutex {
  public:
    constexpr Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    /// The calling thread does not own it.
    void lock();
    /// False if another thread owns it.
    bool try_lock();
    void unlock();

    /// Who owns it, for a reader in a stop.
    Thread* owner() const { return turnstile_.inheritor(); }

  private:
    friend class Condition;
    void lock(SchedulerGuard&);
    void unlock(SchedulerGuard&);

    Turnstile turnstile_{};
};

/// Owns a Mutex for as long as it lives.
class MutexGuard {
  public:
    explicit MutexGuard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexGuard() { mutex_.unlock(); }
    MutexGuard(const MutexGuard&) = delete;
    MutexGuard& operator=(const MutexGuard&) = delete;

  private:
    Mutex& mutex_;
};

}  // namespace kernel
