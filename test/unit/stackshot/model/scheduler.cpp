#include "test/unit/stackshot/model/scheduler.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <exception>

#include "test/unit/kernel/sanitizer_fiber.hpp"

namespace model {

namespace {

constexpr std::size_t stack_size = 256 * 1024;
/// A schedule that takes more steps runs in circles.
constexpr std::uint64_t most_steps = 3'000'000;

}  // namespace

/// A fiber's stack. Mapped once for each CPU and thread, and used by one scheduler after the other.
struct Scheduler::Stack {
    Stack() {
        low = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (low == MAP_FAILED)
            std::abort();
    }
    ~Stack() { munmap(low, stack_size); }
    void* low;
};

struct Scheduler::Fiber {
    ucontext_t context{};
    fake_machine::SanitizerFiber sanitizer{};
    bool created = false;
    State state = State::ready;
    bool signalled = false;
    std::uint32_t priority = 0;
    std::uint64_t yields = 0;
    std::uint64_t panics_at = 0;
    std::uint64_t time = 0;
    std::uint64_t waited = 0;
    std::array<std::uint64_t, max_agents> signals_seen{};
    std::array<std::uint64_t, max_agents> signals_pending{};
};

thread_local Scheduler* Scheduler::active_ = nullptr;

namespace {

std::uint64_t runs = 0;
/// The fiber that was left for the one that arrives.
unsigned left_for_next = outside;

}  // namespace

Scheduler::Scheduler(std::uint64_t seed, unsigned cpus, Order order)
    : order_(order), cpus_(cpus), run_number_(++runs), random_(seed * 0x9e3779b97f4a7c15 + 1) {
    for (auto& fiber : fibers_) {
        fiber = std::make_unique<Fiber>();
        fiber->priority = draw(1U << 30);
    }
    constexpr std::uint32_t chances[] = {100, 50, 20, 5};
    switch_chance_ = chances[draw(4)];
    by_priority_ = draw(3) == 0;
}

Scheduler::~Scheduler() = default;

void Scheduler::spend(std::uint64_t time) {
    fibers_[self_]->time += time;
}
std::uint64_t Scheduler::time(unsigned cpu) const {
    return fibers_[cpu]->time;
}
std::uint64_t Scheduler::worked(unsigned cpu) const {
    return fibers_[cpu]->time - fibers_[cpu]->waited;
}
void Scheduler::panic_at(unsigned cpu, std::uint64_t count) {
    fibers_[cpu]->panics_at = count;
}
std::uint64_t Scheduler::seen_by_signal(unsigned writer) const {
    return fibers_[self_]->signals_seen[writer];
}

void Scheduler::note(std::uint64_t step) {
    // FNV-1a, by words.
    digest_ = (digest_ ^ step) * 0x100000001b3;
}

std::uint32_t Scheduler::draw(std::uint32_t limit) {
    const auto drawn = static_cast<std::uint32_t>(random_() % limit);
    note(drawn);
    return drawn;
}

const std::string& Scheduler::run(std::function<void(unsigned)> body) {
    static thread_local std::array<std::unique_ptr<Stack>, max_cpus> stacks;
    body_ = std::move(body);
    active_ = this;
    fibers_[outside]->sanitizer.adopt_host_thread();
    for (unsigned cpu = 0; cpu < cpus_; ++cpu) {
        if (!stacks[cpu])
            stacks[cpu] = std::make_unique<Stack>();
        Fiber& fiber = *fibers_[cpu];
        if (getcontext(&fiber.context) != 0)
            std::abort();
        fiber.sanitizer.create(stacks[cpu]->low, stack_size);
        fiber.created = true;
        fiber.context.uc_stack.ss_sp = stacks[cpu]->low;
        fiber.context.uc_stack.ss_size = stack_size;
        fiber.context.uc_link = nullptr;
        const auto address = reinterpret_cast<std::uintptr_t>(this);
        // makecontext passes ints only.
        makecontext(&fiber.context, reinterpret_cast<void (*)()>(fiber_main), 2,
                    static_cast<unsigned>(std::uint64_t{address} >> 32),
                    static_cast<unsigned>(address));
        // What was before the run is known to all.
        clocks_[cpu] = clocks_[outside];
    }
    switch_away();
    for (unsigned cpu = 0; cpu < cpus_; ++cpu)
        fibers_[cpu]->sanitizer.destroy();
    active_ = nullptr;
    body_ = {};
    return failure_;
}

void Scheduler::fiber_main(unsigned high, unsigned low) {
    const std::uint64_t address = std::uint64_t{high} << 32 | std::uint64_t{low};
    auto* const self = reinterpret_cast<Scheduler*>(address);
    self->enter(self->self_);
}

void Scheduler::enter(unsigned cpu) {
    fibers_[cpu]->sanitizer.arrive(fibers_[left_for_next]->sanitizer);
    try {
        body_(cpu);
    } catch (const Aborted&) {
    } catch (const std::exception& error) {
        if (failure_.empty())
            failure_ = std::string("exception: ") + error.what();
        aborting_ = true;
    }
    fibers_[cpu]->state = State::ended;
    switch_away();
    std::abort();
}

/// The CPU that goes on; `outside` when all have ended.
unsigned Scheduler::choose() {
    std::array<unsigned, max_cpus> ready;
    unsigned count = 0;
    bool waiting = false;
    for (unsigned cpu = 0; cpu < cpus_; ++cpu) {
        Fiber& fiber = *fibers_[cpu];
        if (fiber.state == State::ended)
            continue;
        if (fiber.state == State::ready || fiber.signalled || aborting_)
            ready[count++] = cpu;
        else
            waiting = true;
    }
    if (count == 0) {
        if (!waiting)
            return outside;
        failure_ = "all CPUs wait: a signal was missed";
        aborting_ = true;
        return choose();
    }
    unsigned best = ready[0];
    if (order_ == Order::virtual_time) {
        for (unsigned n = 1; n < count; ++n)
            if (fibers_[ready[n]]->time < fibers_[best]->time)
                best = ready[n];
    } else if (by_priority_) {
        for (unsigned n = 1; n < count; ++n)
            if (fibers_[ready[n]]->priority > fibers_[best]->priority)
                best = ready[n];
        if (draw(20) == 0)
            fibers_[best]->priority = draw(1U << 30);
    } else {
        best = ready[draw(count)];
    }
    return best;
}

void Scheduler::switch_to(unsigned cpu) {
    const unsigned from = self_;
    note(cpu);
    left_for_next = from;
    self_ = cpu;
    fibers_[from]->sanitizer.leave(fibers_[cpu]->sanitizer);
    swapcontext(&fibers_[from]->context, &fibers_[cpu]->context);
    fibers_[from]->sanitizer.arrive(fibers_[left_for_next]->sanitizer);
}

void Scheduler::switch_away() {
    if (const unsigned next = choose(); next != self_)
        switch_to(next);
}

void Scheduler::yield() {
    Fiber& fiber = *fibers_[self_];
    if (aborting_) {
        if (std::uncaught_exceptions() != 0)
            return;
        throw Aborted{};
    }
    if (++steps_ > most_steps)
        fail("too many steps: the CPUs run in circles");
    if (order_ == Order::virtual_time || by_priority_ || draw(100) < switch_chance_)
        switch_away();
    if (aborting_)
        throw Aborted{};
    if (++fiber.yields == fiber.panics_at)
        throw PanicHere{};
}

void Scheduler::wait() {
    Fiber& fiber = *fibers_[self_];
    yield();
    if (!fiber.signalled) {
        fiber.state = State::waiting;
        switch_away();
        fiber.state = State::ready;
        if (aborting_)
            throw Aborted{};
    }
    fiber.signalled = false;
    fiber.signals_seen = fiber.signals_pending;
}

void Scheduler::signal() {
    yield();
    for (unsigned cpu = 0; cpu < cpus_; ++cpu) {
        Fiber& fiber = *fibers_[cpu];
        if (fiber.state == State::waiting && !fiber.signalled &&
            fiber.time < fibers_[self_]->time) {
            fiber.waited += fibers_[self_]->time - fiber.time;
            fiber.time = fibers_[self_]->time;
        }
        fiber.signalled = true;
        fiber.signals_pending[self_] = serial_;
    }
}

void Scheduler::fail(const std::string& what) {
    if (failure_.empty())
        failure_ = "CPU " + std::to_string(self_) + ": " + what;
    aborting_ = true;
    throw Aborted{};
}

}  // namespace model
