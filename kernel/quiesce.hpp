#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "kernel/machine.hpp"
#include "stackshot/system.hpp"

namespace kernel {

class BootArguments;

/// Where a CPU is, or was when it was last seen.
struct CpuPosition {
    stackshot::Registers registers{};
    /// As in stackshot::StackFacts.
    bool interrupted = false;
    /// False: the CPU did not stop; it was here once and may have gone on since.
    bool exact = false;
};

/// One position, written by the CPU it belongs to and read by any other at any time.
class PositionCell {
  public:
    /// Interrupts off, on the owning CPU.
    void store(const stackshot::Registers& registers, bool interrupted);
    /// False if nothing was stored yet, or the owner was caught in the middle of storing.
    bool load(stackshot::Registers& registers, bool& interrupted) const;

  private:
    /// Odd while a store is under way.
    std::atomic<std::uint64_t> sequence_{0};
    std::atomic<std::uint64_t> pc_{0}, lr_{0}, fp_{0}, sp_{0}, interrupted_{0};
};

/// What stop_for_panic() leaves: a world that stands still, except for CPUs that did not answer.
class StoppedForGood final : public stackshot::Quiesced {
  private:
    friend class Quiesce;
    explicit StoppedForGood(CpuIndex cpu) : Quiesced(cpu) {}
};

/// Stops the world and lets it go on: who asked, who is stopped and where, who did not answer.
///
/// The initiator owns the stop from its first request to the moment the last CPU has left. Each
/// other CPU has a state that only moves
///
///     idle -> requested -> arriving -> stopped -> idle    it answered in time
///                       -> absent -> idle                 it never came
///                       -> absent -> late -> idle         it came too late: held, given no work
///
/// requested -> arriving is the CPU's step and requested -> absent the initiator's, both by
/// compare-exchange, so that a CPU either takes part in all of a stop or in nothing of it. Two
/// counts hold the initiator: CPUs yet to stop, and CPUs yet to leave.
class Quiesce {
  public:
    /// Ticks of machine::absolute_time().
    struct Timeouts {
        /// How long a CPU may take to answer a stop before it is absent.
        std::uint64_t acknowledge;
        /// How long a CPU that did answer may take for its next step. Missing it is our own bug,
        /// and a panic.
        std::uint64_t progress;
    };

    void set_timeouts(const Timeouts& timeouts) { timeouts_ = timeouts; }
    const Timeouts& timeouts() const { return timeouts_; }

    /// The calling CPU takes part from now on, and is in machine::online_cpus(). It comes between
    /// two stops, never into one: a stopped world does not see it arrive. Interrupts off.
    void admit();

    /// Stops the world, runs `body` on all CPUs, resumes. `entry` is where the caller's own stack
    /// is walked from. Any context but a stop; with interrupts off it still answers the stops of
    /// others while it waits for its turn.
    stackshot::TrapOutcome stop(stackshot::TrapBody& body, const stackshot::Registers& entry);

    /// The handler of the stop SGI. Interrupts off; `interrupted` are the registers the interrupt
    /// saved. Returns when the world resumes, or at once if no stop asks for this CPU any more.
    void answer(const stackshot::Registers& interrupted);

    /// Remembers where an interrupt found this CPU, in case it does not answer a later stop.
    /// Interrupts off.
    void saw_interrupt(const stackshot::Registers& interrupted);

    /// CPUs that did not answer the stop that is going on, or that for good.
    CpuMask absent(const stackshot::Quiesced& quiesced) const;

    /// Where `cpu` is stopped, or last was if it is absent; false if that is not known. Inside a
    /// stop, or after stop_for_panic() on the CPU that called it.
    bool position(CpuIndex cpu, CpuPosition& position) const;

    /// Stops every other CPU for good, whatever they do, a stop that is going on and its body
    /// included; the calling CPU continues alone with interrupts off. `entry` is where its stack is
    /// walked from, `interrupted` as in stackshot::StackFacts. The first caller wins: another CPU
    /// that calls this does not return, the same CPU gets the same answer again.
    ///
    /// CPUs have the ack timeout to stop; those that work on the body have it when they have left,
    /// for which they have the progress timeout.
    StoppedForGood stop_for_panic(const stackshot::Registers& entry, bool interrupted);

    /// Halts this CPU if another one panics; the caller's call is then its position. Every
    /// unbounded wait with interrupts off calls this.
    void park_if_panicking();

  private:
    enum class State : std::uint32_t { idle, requested, arriving, stopped, absent, late };

    struct alignas(64) Slot {
        std::atomic<State> state{State::idle};
        PositionCell position{};
        bool panics = false;  ///< this CPU's alone
    };

    class Token final : public stackshot::Quiesced {
      public:
        explicit Token(CpuIndex cpu) : Quiesced(cpu) {}
    };

    void acquire(CpuIndex self);
    void release();
    bool other_cpu_panics() const;
    [[noreturn]] void park();
    void park_where_positioned();
    bool serve(CpuIndex self);
    bool wait_until_zero(const std::atomic<std::uint32_t>& count, std::uint64_t timeout);

    std::array<Slot, max_cpus> slots_{};
    /// The CPU whose stop this is; no_cpu when the world runs.
    std::atomic<CpuIndex> owner_{no_cpu};
    /// What stopped CPUs run. Written by the owner before it requests anything, and null again when
    /// the last CPU has left.
    std::atomic<stackshot::TrapBody*> body_{nullptr};
    /// True from the first request until the world may resume.
    std::atomic<bool> held_{false};
    std::atomic<std::uint32_t> not_stopped_{0};
    std::atomic<std::uint32_t> not_resumed_{0};
    std::atomic<CpuMask> absent_{0};

    std::atomic<CpuIndex> panic_cpu_{no_cpu};
    std::atomic<CpuMask> parked_{0};
    // The panicking CPU's: whether it has stopped the others, and CPUs that did not stop for it.
    bool stopped_for_good_ = false;
    CpuMask silent_ = 0;

    Timeouts timeouts_{UINT64_MAX, UINT64_MAX};
};

/// The kernel's one Quiesce.
Quiesce& quiesce();

/// Takes the boot argument `ack_timeout_ms`: how long a CPU may take to answer a stop (10, which is
/// for hardware; an emulator needs more). Before other CPUs are started.
void configure_quiesce(BootArguments& arguments);

}  // namespace kernel
