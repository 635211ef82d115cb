#include "test/unit/kernel/fake_machine.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "kernel/heap.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "test/unit/kernel/sanitizer_fiber.hpp"

namespace fake_machine {
namespace {

constexpr std::size_t stack_size = 256 * 1024;

std::atomic<int> until_failure{0};
bool allocation_fails() {
    return until_failure.load() > 0 && until_failure.fetch_sub(1) == 1;
}

/// What a kernel thread is on the host.
struct Fiber {
    ucontext_t context{};
    void (*entry)(void*) = nullptr;
    void* argument = nullptr;
    /// The fiber that was left for this one.
    Fiber* left = nullptr;
    SanitizerFiber sanitizer{};
};

struct alignas(64) HostCpu {
    std::atomic<bool> reschedule{false};
    std::atomic<bool> stop{false};
    std::atomic<bool> external{false};
    std::mutex mutex{};
    std::deque<std::function<void()>> handlers{};
    // Only its own host thread looks at these.
    bool interrupts = false;
    std::uint64_t timer_deadline = UINT64_MAX;
};

std::array<HostCpu, kernel::max_cpus> host_cpus;
std::vector<std::thread> host_threads;
kernel::CpuIndex number_of_cpus = 0;
std::atomic<kernel::CpuMask> cpus_online{0};
std::atomic<bool> off{false};

/// Which fiber runs on which stack, to be freed with it.
std::mutex fibers_mutex;
std::map<std::uint64_t, Fiber*> fibers;

thread_local kernel::CpuIndex cpu_of_host_thread = kernel::no_cpu;

/// Leaves the idle thread of a CPU at power_off().
struct PoweredOff {};

/// Not inlined: a fiber may be on another host thread after a switch, and a compiler that does not
/// know keeps the address of a thread_local.
[[gnu::noinline]] kernel::CpuIndex this_host_cpu() {
    asm volatile("");
    return cpu_of_host_thread;
}

HostCpu& self() {
    const kernel::CpuIndex cpu = this_host_cpu();
    if (cpu >= number_of_cpus)
        std::abort();
    return host_cpus[cpu];
}

Fiber*& fiber_of(platform::SwitchContext& context) {
    static_assert(sizeof(Fiber*) == sizeof(context.x19_to_x28[0]));
    return reinterpret_cast<Fiber*&>(context.x19_to_x28[0]);
}

bool timer_pending(const HostCpu& cpu) {
    return kernel::machine::absolute_time() >= cpu.timer_deadline;
}

bool pending(const HostCpu& cpu) {
    return cpu.reschedule.load(std::memory_order_relaxed) ||
           cpu.stop.load(std::memory_order_relaxed) ||
           cpu.external.load(std::memory_order_relaxed) || timer_pending(cpu);
}

/// One interrupt, from masking to unmasking, as the exception entry and handle_irq() do it.
void take_interrupt() {
    HostCpu& cpu = self();
    cpu.interrupts = false;
    // The interrupt controller orders nothing.
    cpu.reschedule.exchange(false, std::memory_order_relaxed);
    if (cpu.stop.exchange(false, std::memory_order_relaxed))
        kernel::quiesce().answer({});
    if (timer_pending(cpu))
        kernel::scheduler::timer_interrupt();
    if (cpu.external.exchange(false, std::memory_order_relaxed)) {
        std::deque<std::function<void()>> handlers;
        {
            std::scoped_lock lock(cpu.mutex);
            handlers.swap(cpu.handlers);
        }
        for (auto& handler : handlers)
            handler();
    }
    kernel::scheduler::preempt();
    self().interrupts = true;
}

void run_cpu(kernel::CpuIndex index, std::promise<void>& online) {
    cpu_of_host_thread = index;
    Fiber fiber;
    fiber.sanitizer.adopt_host_thread();
    kernel::quiesce().admit();
    kernel::Thread& idle = *kernel::idle_thread_create(index, {}).value();
    fiber_of(idle.context) = &fiber;
    {
        kernel::SchedulerGuard guard;
        kernel::scheduler::adopt_idle_thread(guard, idle);
    }
    online.set_value();
    try {
        kernel::scheduler::idle();
    } catch (const PoweredOff&) {
    }
}

void fiber_main(unsigned high, unsigned low) {
    auto* const fiber = std::bit_cast<Fiber*>(std::uint64_t{high} << 32 | std::uint64_t{low});
    fiber->sanitizer.arrive(fiber->left->sanitizer);
    fiber->entry(fiber->argument);
    std::abort();
}

}  // namespace

void boot(kernel::CpuIndex count) {
    number_of_cpus = count;
    // kernel_task is made by a CPU, before there are others.
    std::thread([] {
        cpu_of_host_thread = 0;
        kernel::initialize_kernel_task();
    }).join();
    for (kernel::CpuIndex cpu = 0; cpu < count; cpu++) {
        std::promise<void> online;
        host_threads.emplace_back(run_cpu, cpu, std::ref(online));
        online.get_future().wait();
    }
    run([] {
        auto daemon = kernel::thread_create(kernel::kernel_task(), "daemon.thread-terminate",
                                            kernel::thread_terminate_daemon, nullptr,
                                            {.priority = kernel::BASEPRI_KERNEL});
        kernel::thread_start(*daemon.value());
    });
}

void power_off() {
    off = true;
    for (auto& thread : host_threads)
        thread.join();
    host_threads.clear();
}

kernel::CpuIndex cpu_count() {
    return number_of_cpus;
}

void run(std::function<void()> body) {
    struct Run {
        std::function<void()> body;
        std::exception_ptr thrown{};
        /// The last thing the kernel thread touches.
        std::atomic<bool> done{false};
    } run{std::move(body)};
    raise(0, [&run] {
        const auto entry = [](void* argument) {
            auto& self = *static_cast<Run*>(argument);
            try {
                self.body();
            } catch (...) {
                self.thrown = std::current_exception();
            }
            self.done.store(true, std::memory_order_release);
        };
        auto thread = kernel::thread_create(kernel::kernel_task(), "test", entry, &run);
        kernel::thread_start(*thread.value());
    });
    while (!run.done.load(std::memory_order_acquire))
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (run.thrown)
        std::rethrow_exception(run.thrown);
}

void poll() {
    while (self().interrupts && pending(self()))
        take_interrupt();
}

void raise(kernel::CpuIndex cpu, std::function<void()> handler) {
    std::scoped_lock lock(host_cpus[cpu].mutex);
    host_cpus[cpu].handlers.push_back(std::move(handler));
    host_cpus[cpu].external.store(true, std::memory_order_relaxed);
}

void fail_allocation(int number) {
    until_failure = number;
}

}  // namespace fake_machine

namespace kernel {

namespace machine {

using namespace fake_machine;

CpuIndex current_cpu() {
    return this_host_cpu();
}

CpuMask online_cpus() {
    return cpus_online;
}

void announce_online() {
    cpus_online |= bit_of(this_host_cpu());
}

bool interrupts_enabled() {
    return self().interrupts;
}

bool interrupts_disable() {
    return std::exchange(self().interrupts, false);
}

void interrupts_restore(bool enabled) {
    self().interrupts = enabled;
    poll();
}

void wait_for_event() {
    poll();
    std::this_thread::yield();
}

void send_event() {}

void wait_for_interrupt() {
    for (int turn = 0; !pending(self()); turn++) {
        if (off)
            throw PoweredOff{};
        if (turn < 20)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void halt() {
    std::abort();
}

std::uint64_t absolute_time() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

bool start_counters() {
    return true;
}

stackshot::CpuCounters counters() {
    // Two per nanosecond, and instructions modulo 2^32.
    const std::uint64_t now = absolute_time();
    return {now, static_cast<std::uint32_t>(2 * now)};
}

std::uint64_t ticks_per_second() {
    return 1'000'000'000;
}

void set_timer(std::uint64_t deadline) {
    self().timer_deadline = deadline;
}

void send_reschedule(CpuIndex cpu) {
    host_cpus[cpu].reschedule.store(true, std::memory_order_relaxed);
}

void send_stop(CpuMask cpus) {
    for_each_cpu(cpus,
                 [](CpuIndex cpu) { host_cpus[cpu].stop.store(true, std::memory_order_relaxed); });
}

}  // namespace machine

namespace heap {

void* allocate(std::size_t size) {
    if (fake_machine::allocation_fails())
        return nullptr;
    return std::calloc(1, size);
}

void free(void* memory) {
    std::free(memory);
}

}  // namespace heap

KernelStack allocate_kernel_stack() {
    if (fake_machine::allocation_fails())
        return {};
    void* const memory = mmap(nullptr, fake_machine::stack_size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return {};
    const auto low = std::bit_cast<std::uint64_t>(memory);
    return {low, low + fake_machine::stack_size};
}

void free_kernel_stack(KernelStack stack) {
    {
        SchedulerGuard guard;
        const TaskList& tasks = task_list();
        for (const Task* task = tasks.first(); task != nullptr; task = TaskList::next(*task))
            for (const Thread* thread = task->threads.first(); thread != nullptr;
                 thread = ThreadList::next(*thread))
                CHECK(thread->stack.low != stack.low);  // a stop would walk it
    }
    fake_machine::Fiber* fiber = nullptr;
    {
        std::scoped_lock lock(fake_machine::fibers_mutex);
        fiber = fake_machine::fibers.extract(stack.high).mapped();
    }
    fiber->sanitizer.destroy();
    delete fiber;
    munmap(std::bit_cast<void*>(stack.low), fake_machine::stack_size);
}

}  // namespace kernel

namespace platform {

using namespace fake_machine;

void prepare_context(SwitchContext& context, std::uint64_t stack_top, void (*entry)(void*),
                     void* argument) {
    auto* const fiber = new Fiber;
    fiber->entry = entry;
    fiber->argument = argument;
    void* const low = std::bit_cast<void*>(stack_top - stack_size);
    fiber->sanitizer.create(low, stack_size);
    if (getcontext(&fiber->context) != 0)
        std::abort();
    fiber->context.uc_stack.ss_sp = low;
    fiber->context.uc_stack.ss_size = stack_size;
    fiber->context.uc_link = nullptr;
    const auto address = std::bit_cast<std::uint64_t>(fiber);
    // makecontext passes ints only.
    makecontext(&fiber->context, reinterpret_cast<void (*)()>(fiber_main), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    fiber_of(context) = fiber;
    std::scoped_lock lock(fibers_mutex);
    fibers.emplace(stack_top, fiber);
}

void switch_context(SwitchContext& from, const SwitchContext& to) {
    Fiber* const leaving = fiber_of(from);
    Fiber* const next = fiber_of(const_cast<SwitchContext&>(to));
    next->left = leaving;
    leaving->sanitizer.leave(next->sanitizer);
    swapcontext(&leaving->context, &next->context);
    leaving->sanitizer.arrive(leaving->left->sanitizer);
}

}  // namespace platform
