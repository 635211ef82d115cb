#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/list.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/thread.hpp"

namespace kernel {

struct PortLabel;

/// Threads that wait for one thing: by priority, in order of arrival within a priority. All waiting
/// in the kernel for anything but time or the end of a thread is done here.
///
/// A turnstile may have an inheritor: the thread the waiters depend on, which runs at least at the
/// priority of the first of them. If the inheritor waits itself, whoever it depends on inherits in
/// turn, and so on along the chain. A chain that comes back to where it began is a deadlock: there
/// the priority stops rising, and the walk ends.
///
/// The scheduler lock guards all of it. A reader in a stop may find a CPU that did not stop, or
/// that panicked, in the middle of a change: then in_flux() holds.
class Turnstile {
  public:
    /// Links of a chain that are followed at a time. Those behind get the priority with the next
    /// change that reaches them.
    static constexpr int max_hops = 128;

    constexpr Turnstile() = default;
    /// `owner_pid`: the task that makes the waiters go on, if the thread is not known.
    /// `wait_flags`: STACKSHOT_WAITINFO_FLAGS of those who wait here.
    constexpr explicit Turnstile(std::int32_t owner_pid, std::uint32_t wait_flags = 0)
        : wait_flags_(wait_flags), owner_pid_(owner_pid) {}
    Turnstile(const Turnstile&) = delete;
    Turnstile& operator=(const Turnstile&) = delete;

    /// Blocks the calling thread until it is woken, or until `deadline` (absolute time). The lock
    /// is held on return, but not all the time. Thread context.
    WaitResult wait(SchedulerGuard&, const WaitFor& what, std::uint64_t deadline = no_deadline);
    /// The waiter to be woken next; null if nobody waits.
    Thread* first() const { return waiters_.first(); }
    /// Makes a waiter runnable. Any context but a stop.
    void wake(SchedulerGuard&, Thread& waiter);
    /// Makes the first waiter runnable and returns it; null if nobody waits.
    Thread* wake_one(SchedulerGuard&);
    void wake_all(SchedulerGuard&);

    /// Whom the waiters depend on from now on; null: nobody in particular. It must be null when the
    /// turnstile goes away, and becomes null by itself when the thread ends. `hops` to it: 1, or
    /// more when the thread is known only by what is between, such as the queue of a port.
    void set_inheritor(SchedulerGuard&, Thread* inheritor, std::uint8_t hops = 1);
    Thread* inheritor() const { return inheritor_; }
    std::uint8_t hops() const { return hops_; }

    /// The priority of the first waiter; 0 if nobody waits.
    int priority() const { return priority_; }
    std::int32_t owner_pid() const { return owner_pid_; }
    void set_owner_pid(SchedulerGuard&, std::int32_t pid);
    /// Of the port whose turnstile this is, or that whoever waits here depends on; null: none. Good
    /// as long as it is set.
    const PortLabel* port_label() const { return port_label_; }
    void set_port_label(SchedulerGuard&, const PortLabel* label);
    std::uint32_t wait_flags() const { return wait_flags_; }
    /// Counts the changes, two each; odd in the middle of one. For a reader in a stop: what it
    /// reads between two looks at the same even number belongs together.
    std::uint32_t sequence() const { return sequence_; }
    bool in_flux() const { return sequence_ % 2 != 0; }

    /// Where in it, for such a reader, the inheritor and the port's label stand; and what else it
    /// asks for.
    static constexpr std::size_t inheritor_offset = 16;
    static constexpr std::size_t status_offset = 0;

    /// A scope in which waiters and inheritor are about to change, and do not fit together. May be
    /// nested. Nothing may block in it.
    class Change {
      public:
        Change(SchedulerGuard&, Turnstile& turnstile)
            : turnstile_(turnstile), outermost_(!turnstile.in_flux()) {
            if (outermost_)
                advance();
        }
        ~Change() {
            if (outermost_)
                advance();
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

      private:
        // Release: the number goes up behind the change before, and is even behind this one. That
        // it is odd before anything of this change is seen, the changes' own stores see to.
        void advance() {
            std::atomic_ref(turnstile_.sequence_)
                .store(turnstile_.sequence_ + 1, std::memory_order_release);
        }

        Turnstile& turnstile_;
        bool outermost_;
    };

    // What the scheduler and thread.cpp call.
    /// Takes out a thread whose deadline has come.
    void expire(SchedulerGuard&, Thread& thread);
    /// The thread is the inheritor of no turnstile any more.
    static void renounce_all(SchedulerGuard&, Thread& thread);
    /// Gives `thread` the priority that is its own or inherited, and lets those it depends on
    /// inherit it: after a change of its base priority, of its turnstiles or of their waiters.
    static void update_priority(SchedulerGuard&, Thread* thread);

  private:
    static void check_layout() {
        static_assert(offsetof(Turnstile, inheritor_) == inheritor_offset);
        static_assert(offsetof(Turnstile, port_label_) == inheritor_offset + 8);
        static_assert(offsetof(Turnstile, sequence_) == status_offset);
        static_assert(offsetof(Turnstile, hops_) < status_offset + 16);
    }
    void insert(Thread& thread);
    void remove(Thread& thread);
    void link(Thread& inheritor);
    void unlink();

    std::uint32_t sequence_ = 0;
    std::uint32_t wait_flags_ = 0;
    std::int32_t owner_pid_ = 0;
    std::int16_t priority_ = 0;
    std::uint8_t hops_ = 1;
    Thread* inheritor_ = nullptr;
    const PortLabel* port_label_ = nullptr;
    ListLink<Turnstile> inheritor_link_{};  ///< among Thread::inherited
    ThreadQueue waiters_{};
};

}  // namespace kernel
