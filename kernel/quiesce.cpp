#include "kernel/quiesce.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernel/boot_arguments.hpp"
#include "kernel/callers_registers.hpp"
#include "kernel/panic.hpp"

namespace kernel {
namespace {

constinit Quiesce the_quiesce;

}  // namespace

Quiesce& quiesce() {
    return the_quiesce;
}

void configure_quiesce(BootArguments& arguments) {
    const std::uint64_t ticks_per_ms = machine::ticks_per_second() / 1000;
    const std::uint64_t acknowledge = arguments.number("ack_timeout_ms", 10, 1, 3'600'000);
    // Generous: its end is a panic, and an emulator may leave a CPU out for seconds.
    const std::uint64_t progress = std::max<std::uint64_t>(100 * acknowledge, 10'000);
    the_quiesce.set_timeouts({acknowledge * ticks_per_ms, progress * ticks_per_ms});
}

// A sequence lock whose order is on the atomics: a reader that sees a new value (acquire) also sees
// the odd sequence stored before it (release).
void PositionCell::store(const stackshot::Registers& registers, bool interrupted) {
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence | 1, std::memory_order_relaxed);
    pc_.store(registers.pc, std::memory_order_release);
    lr_.store(registers.lr, std::memory_order_release);
    fp_.store(registers.fp, std::memory_order_release);
    sp_.store(registers.sp, std::memory_order_release);
    interrupted_.store(interrupted ? 1 : 0, std::memory_order_release);
    sequence_.store((sequence | 1) + 1, std::memory_order_release);
}

bool PositionCell::load(stackshot::Registers& registers, bool& interrupted) const {
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    registers.pc = pc_.load(std::memory_order_acquire);
    registers.lr = lr_.load(std::memory_order_acquire);
    registers.fp = fp_.load(std::memory_order_acquire);
    registers.sp = sp_.load(std::memory_order_acquire);
    interrupted = interrupted_.load(std::memory_order_acquire) != 0;
    return before != 0 && before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before;
}

// Not inlined, for it to have a caller.
[[gnu::noinline]] void Quiesce::admit() {
    CHECK(!machine::interrupts_enabled());
    const CpuIndex self = machine::current_cpu();
    slots_[self].position.store(callers_registers(), false);
    acquire(self);
    // A panic waits for no owner. Either it sees this CPU online, and its SGI too, or this CPU sees
    // the panic below: both are a store and then a load, all sequentially consistent.
    machine::announce_online();
    park_where_positioned();
    // Release, by way of the owner: the next stop sees this CPU.
    release();
}

stackshot::TrapOutcome Quiesce::stop(stackshot::TrapBody& body, const stackshot::Registers& entry) {
    const bool enabled = machine::interrupts_disable();
    const std::uint64_t start = machine::absolute_time();
    const CpuIndex self = machine::current_cpu();
    slots_[self].position.store(entry, false);
    acquire(self);

    const CpuMask others = machine::online_cpus() & ~bit_of(self);
    const auto count = static_cast<std::uint32_t>(std::popcount(others));
    // A panic has to end the body: it sees it here, or this CPU sees the panic below.
    body_.store(&body, std::memory_order_seq_cst);
    park_where_positioned();
    absent_.store(0, std::memory_order_relaxed);
    not_stopped_.store(count, std::memory_order_relaxed);
    not_resumed_.store(count, std::memory_order_relaxed);
    held_.store(true, std::memory_order_relaxed);
    // Release: what was stored above is seen by a CPU that finds itself requested.
    for_each_cpu(others, [this](CpuIndex cpu) {
        slots_[cpu].state.store(State::requested, std::memory_order_release);
    });
    machine::send_stop(others);
    machine::send_event();  // for CPUs that wait for their own turn with interrupts off

    body.cpu_preflight(self);
    if (!wait_until_zero(not_stopped_, timeouts_.acknowledge)) {
        CpuMask absent = 0;
        for_each_cpu(others, [this, &absent](CpuIndex cpu) {
            State state = State::requested;
            if (slots_[cpu].state.compare_exchange_strong(state, State::absent,
                                                          std::memory_order_acq_rel)) {
                absent |= bit_of(cpu);
                not_stopped_.fetch_sub(1, std::memory_order_relaxed);
            }
        });
        absent_.store(absent, std::memory_order_release);
        // The rest are arriving: past the point where they could be left out.
        if (!wait_until_zero(not_stopped_, timeouts_.progress))
            panic("quiesce: %u CPUs began to stop and did not finish",
                  not_stopped_.load(std::memory_order_relaxed));
    }
    const CpuMask absent = absent_.load(std::memory_order_relaxed);

    {
        Token token(self);
        body.initiator(token);
    }

    // Release: what this CPU did inside the stop is seen by every CPU that resumes.
    held_.store(false, std::memory_order_release);
    machine::send_event();
    for_each_cpu(absent, [this](CpuIndex cpu) {
        State state = State::absent;
        if (slots_[cpu].state.compare_exchange_strong(state, State::idle,
                                                      std::memory_order_acq_rel))
            not_resumed_.fetch_sub(1, std::memory_order_relaxed);
    });
    if (!wait_until_zero(not_resumed_, timeouts_.progress))
        panic("quiesce: %u stopped CPUs did not resume",
              not_resumed_.load(std::memory_order_relaxed));

    // A panic that still saw the body goes on with it: then it stays, and this CPU with it.
    body_.store(nullptr, std::memory_order_seq_cst);
    park_where_positioned();
    release();
    const std::uint64_t interrupts_off = machine::absolute_time() - start;
    machine::interrupts_restore(enabled);
    return {(others & ~absent) | bit_of(self), absent, interrupts_off};
}

void Quiesce::answer(const stackshot::Registers& interrupted) {
    CHECK(!machine::interrupts_enabled());
    const CpuIndex self = machine::current_cpu();
    slots_[self].position.store(interrupted, true);
    serve(self);
}

void Quiesce::saw_interrupt(const stackshot::Registers& interrupted) {
    slots_[machine::current_cpu()].position.store(interrupted, true);
}

bool Quiesce::position(CpuIndex cpu, CpuPosition& position) const {
    const Slot& slot = slots_[cpu];
    // Acquire: a CPU publishes its position before it moves on from `requested`.
    const State state = slot.state.load(std::memory_order_acquire);
    const bool parked = (parked_.load(std::memory_order_acquire) & bit_of(cpu)) != 0;
    const bool initiator = owner_.load(std::memory_order_relaxed) == cpu;
    const bool panicking = panic_cpu_.load(std::memory_order_relaxed) == cpu;
    position.exact = state == State::arriving || state == State::stopped || state == State::late ||
                     parked || initiator || panicking;
    return slot.position.load(position.registers, position.interrupted);
}

StoppedForGood Quiesce::stop_for_panic(const stackshot::Registers& entry, bool interrupted) {
    machine::interrupts_disable();
    const CpuIndex self = machine::current_cpu();
    stackshot::TrapBody* body = nullptr;
    CpuIndex first = no_cpu;
    const bool is_first =
        panic_cpu_.compare_exchange_strong(first, self, std::memory_order_seq_cst) || first == self;
    if (is_first && stopped_for_good_)
        return StoppedForGood(self);
    // Once on each CPU: what brings it here again before that is the body itself.
    if (!std::exchange(slots_[self].panics, true)) {
        slots_[self].position.store(entry, interrupted);
        body = body_.load(std::memory_order_seq_cst);
    }
    if (body != nullptr)
        body->panic(self);
    if (!is_first)
        park();

    const CpuMask others = machine::online_cpus() & ~bit_of(self);
    machine::send_stop(others);
    machine::send_event();
    const std::uint64_t start = machine::absolute_time();
    std::uint64_t may_stop = start;
    for (CpuMask left = others; left != 0;) {
        machine::wait_for_event();
        left = others & ~parked_.load(std::memory_order_acquire);
        // A CPU that works on the body looks up now and then only, and stops when it has left.
        const std::uint64_t now = machine::absolute_time();
        if (body != nullptr && (left & body->working()) != 0 && now - start < timeouts_.progress)
            may_stop = now;
        else if (now - may_stop >= timeouts_.acknowledge)
            break;
    }
    silent_ = machine::online_cpus() & ~bit_of(self) & ~parked_.load(std::memory_order_acquire);
    stopped_for_good_ = true;
    return StoppedForGood(self);
}

CpuMask Quiesce::absent(const stackshot::Quiesced& quiesced) const {
    if (panic_cpu_.load(std::memory_order_relaxed) == quiesced.cpu())
        return silent_;
    return absent_.load(std::memory_order_acquire);
}

bool Quiesce::other_cpu_panics() const {
    const CpuIndex panicking = panic_cpu_.load(std::memory_order_seq_cst);
    return panicking != no_cpu && panicking != machine::current_cpu();
}

// Not inlined, for it to have a caller.
[[gnu::noinline]] void Quiesce::park_if_panicking() {
    if (!other_cpu_panics())
        return;
    slots_[machine::current_cpu()].position.store(callers_registers_at_call(), false);
    park();
}

/// For waits whose caller has stored this CPU's position.
void Quiesce::park_where_positioned() {
    if (other_cpu_panics())
        park();
}

void Quiesce::park() {
    // Release: the position.
    parked_.fetch_or(bit_of(machine::current_cpu()), std::memory_order_release);
    machine::send_event();
    machine::halt();
}

void Quiesce::release() {
    owner_.store(no_cpu, std::memory_order_release);
    machine::send_event();
}

void Quiesce::acquire(CpuIndex self) {
    for (;;) {
        CpuIndex owner = no_cpu;
        // Acquire: the states and counts the last owner left.
        if (owner_.compare_exchange_strong(owner, self, std::memory_order_acquire,
                                           std::memory_order_relaxed))
            return;
        CHECK(owner != self);
        // The owner may be waiting for this very CPU, which has its interrupts off.
        if (!serve(self))
            machine::wait_for_event();
    }
}

/// Takes part in the stop that asks for this CPU, if one does, until the world resumes. Its
/// position is stored.
bool Quiesce::serve(CpuIndex self) {
    park_where_positioned();
    std::atomic<State>& state = slots_[self].state;
    State seen = State::requested;
    // Acquire: body_. Release: the position is published before the CPU is seen to arrive.
    if (state.compare_exchange_strong(seen, State::arriving, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        stackshot::TrapBody& body = *body_.load(std::memory_order_relaxed);
        body.cpu_preflight(self);
        state.store(State::stopped, std::memory_order_release);
        // Release: what the preflight did is seen by the initiator once the count is 0.
        not_stopped_.fetch_sub(1, std::memory_order_release);
        machine::send_event();
        Token token(self);
        body.auxiliary(token);
    } else if (seen != State::absent ||
               !state.compare_exchange_strong(seen, State::late, std::memory_order_acq_rel,
                                              std::memory_order_relaxed)) {
        return false;
    }

    // Acquire: what the initiator did inside the stop.
    while (held_.load(std::memory_order_acquire)) {
        park_where_positioned();
        machine::wait_for_event();
    }
    state.store(State::idle, std::memory_order_relaxed);
    // Release: the state is idle before the initiator can end this stop and another can begin.
    not_resumed_.fetch_sub(1, std::memory_order_release);
    machine::send_event();
    return true;
}

/// False if `count` was not 0 within `timeout` ticks.
bool Quiesce::wait_until_zero(const std::atomic<std::uint32_t>& count, std::uint64_t timeout) {
    const std::uint64_t start = machine::absolute_time();
    while (count.load(std::memory_order_acquire) != 0) {
        if (machine::absolute_time() - start >= timeout)
            return false;
        park_where_positioned();
        machine::wait_for_event();
    }
    return true;
}

}  // namespace kernel
