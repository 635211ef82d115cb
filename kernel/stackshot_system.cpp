#include "kernel/stackshot_system.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string_view>
#include <type_traits>

#include "kcdata/records.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/callers_registers.hpp"
#include "kernel/cluster_map.hpp"
#include "kernel/coalition.hpp"
#include "kernel/console.hpp"
#include "kernel/cpu.hpp"
#include "kernel/kernel_stack.hpp"
#include "kernel/mutex.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/port_label.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/spinlock.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "kernel/thread_policy.hpp"
#include "kernel/thread_wait_info.hpp"
#include "kernel/trace.hpp"
#include "kernel/workqueue.hpp"
#include "platform/arm64/cpu/pmu.hpp"
#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/image.hpp"
#include "platform/arm64/mmu/checked_read.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/timer/generic_timer.hpp"

namespace kernel {
namespace {

using namespace kcdata;
using stackshot::Quiesced;
using stackshot::Registers;
using stackshot::StackFacts;
using stackshot::TaskRef;
using stackshot::ThreadRef;

/// The front of an object as a stop found it: its first `size` bytes, and no more, may be looked at
/// by front(). They may be anything: nothing in them is followed but by another checked read.
template <typename T, std::size_t size = sizeof(T)>
class Copied {
  public:
    /// False if they cannot be read.
    [[nodiscard]] bool read(std::uint64_t address) {
        return platform::mmu::checked_copy(address, bytes_, size / word_size);
    }
    const T& front() const { return *reinterpret_cast<const T*>(bytes_); }

  private:
    static constexpr std::size_t word_size = sizeof(std::uint64_t);
    static_assert(std::is_trivially_copyable_v<T> && size <= sizeof(T) && size % word_size == 0);
    alignas(T) std::byte bytes_[sizeof(T)];
};

using CopiedTask = Copied<Task>;
/// As far as the stack pointer in the saved context.
using CopiedThread =
    Copied<Thread, offsetof(Thread, context) + offsetof(platform::SwitchContext, sp) +
                       sizeof(platform::SwitchContext::sp)>;

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

/// Copies a name, which need not end there.
template <std::size_t N>
void copy_name(char (&to)[N], const char (&from)[N]) {
    std::memcpy(to, from, N);
    to[N - 1] = '\0';
}

/// Where the stack that `sp` points into lies: the upper half of its slot
/// (platform/arm64/mmu/layout.hpp). An empty stack's is its end, which lies in the next slot.
KernelStack stack_around(std::uint64_t sp) {
    const std::uint64_t slot = (sp - 1) & ~(platform::mmu::stack_slot_size - 1);
    return {slot + platform::mmu::stack_slot_size - platform::mmu::stack_size,
            slot + platform::mmu::stack_slot_size};
}

/// A trap's body, and what the kernel itself notes while the world stands still.
class Stop final : public stackshot::ForwardingBody {
  public:
    using Counters = std::array<stackshot::CpuCounters, max_cpus>;
    Stop(stackshot::TrapBody& body, std::uint64_t& time, Counters& counters)
        : ForwardingBody(body), time_(time), counters_(counters) {}

    void cpu_preflight(CpuIndex cpu) override {
        if (cpu_at(cpu).counts)
            counters_[cpu] = machine::counters();
        ForwardingBody::cpu_preflight(cpu);
    }

    void initiator(Quiesced& quiesced) override {
        // Other CPUs look at it only for work this CPU hands out in the body.
        time_ = machine::absolute_time();
        for_each_cpu(quiesce().absent(quiesced), [this](CpuIndex cpu) {
            CpuPosition position;
            if (quiesce().position(cpu, position))
                last_seen_[cpu] = position.registers.pc;
        });
        ForwardingBody::initiator(quiesced);
    }

    /// Where an absent CPU was last seen: its PC, 0 if it never was.
    std::uint64_t last_seen(CpuIndex cpu) const { return last_seen_[cpu]; }

  private:
    std::uint64_t& time_;
    Counters& counters_;
    std::array<std::uint64_t, max_cpus> last_seen_{};
};

class KernelSystem final : public stackshot::System {
  public:
    void initialize(const platform::Board& board);
    void stopped_for_good() { trap_time_ = machine::absolute_time(); }

    const stackshot::SystemFacts& facts() const override { return facts_; }
    std::size_t task_count() override { return kernel::task_count(); }
    std::size_t thread_count() override { return kernel::thread_count(); }
    std::span<std::byte> allocate(std::size_t size) override {
        return page_allocator().allocate((size + page_size - 1) / page_size);
    }
    void free(std::span<std::byte> memory) override { page_allocator().free(memory); }
    void lock() override { mutex_.lock(); }
    bool try_lock() override { return mutex_.try_lock(); }
    void unlock() override { mutex_.unlock(); }

    [[gnu::noinline]] stackshot::TrapOutcome trap(stackshot::TrapBody& body) override;

    std::uint64_t absolute_time() const override { return platform::timer::ticks(); }
    std::uint64_t microseconds_since_epoch() const override;
    std::uint32_t cluster_of(CpuIndex cpu) const override { return clusters_.cluster_of_cpu[cpu]; }
    // Not parked by a panic here: a collection has to be left first.
    void wait_for_event() override { machine::wait_for_event(); }
    void signal_event() override { machine::send_event(); }
    void trace(stackshot::TraceEvent event, std::uint64_t word, const char* file,
               std::uint32_t line) override;

    stackshot::CpuCounters counters(Quiesced&) override;

    Result<TaskRef> next_task(Quiesced&, TaskRef previous) override;
    Result<ThreadRef> skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                   std::size_t count) override;
    Result<std::size_t> task_thread_count(Quiesced&, TaskRef task) override;
    kern_return task_facts(Quiesced&, TaskRef task, stackshot::TaskFacts& facts) override;
    kern_return thread_facts(Quiesced&, ThreadRef thread, stackshot::ThreadFacts& facts) override;
    bool wait_facts(Quiesced&, ThreadRef thread, const stackshot::BlockedThread& blocked,
                    stackshot::WaitFacts& facts) override;
    void port_label_facts(Quiesced&, stackshot::PortLabelRef label,
                          stackshot::PortLabelFacts& facts) override;
    bool dispatch_queue_facts(Quiesced&, stackshot::DispatchQueueRef queue,
                              stackshot::DispatchQueueFacts& facts) override;
    bool io_statistics(Quiesced&, stackshot::IoStatisticsRef statistics,
                       io_stats_snapshot& snapshot) override;
    Result<stackshot::ThreadGroupRef> next_thread_group(
        Quiesced&, stackshot::ThreadGroupRef previous, stackshot::ThreadGroupFacts& facts) override;
    Result<stackshot::CoalitionRef> next_coalition(Quiesced&, stackshot::CoalitionRef previous,
                                                   stackshot::CoalitionFacts& facts) override;
    std::size_t donating_pids(Quiesced&, TaskRef task, std::span<std::int32_t> pids) override;
    std::uint32_t stack_high_water(Quiesced&, const StackFacts& stack) override;
    stackshot::MemoryFacts memory_facts(Quiesced&) override;
    CpuMask absent_cpus(Quiesced& quiesced) override { return quiesce().absent(quiesced); }
    [[noreturn]] void workers_overdue(Quiesced&, CpuMask cpus) override {
        panic("stackshot: CPUs %016lx did not finish their part of the capture", cpus);
    }
    [[noreturn]] void spin_for_panic(Quiesced&) override {
        for (;;) {
            quiesce().park_if_panicking();
            machine::wait_for_event();
        }
    }
    bool read_words(Quiesced&, std::uint64_t address, std::span<std::uint64_t> words) override;
    stackshot::Followed follow_frame_records(Quiesced&, stackshot::FrameChain& chain,
                                             std::span<std::uint64_t> return_addresses) override;
    bool interrupted_registers(Quiesced&, std::uint64_t return_address, std::uint64_t frame_pointer,
                               Registers& registers) override;
    std::span<const std::byte> unwind_tables(std::uint64_t& address) const override;

  private:
    void add_running(CpuIndex cpu, const KernelStack& bounds, stackshot::ThreadFacts& facts);
    /// What `cpu` has done since its thread was last told of it.
    stackshot::CpuCounters untold(CpuIndex cpu) const;

    stackshot::SystemFacts facts_{};
    ClusterMap clusters_{};
    char build_version_[2 * 20 + 1] = {};
    std::uint64_t epoch_ = 0;
    Mutex mutex_{};
    /// When the world had stopped: threads that run have run until then.
    std::uint64_t trap_time_ = 0;
    /// What the CPUs have done until they stopped.
    Stop::Counters counters_{};
};

constinit KernelSystem the_system;

/// What the policy words of a thread tell besides.
void add_policy(stackshot::ThreadFacts& facts) {
    const PolicyWord requested(facts.requested_policy);
    const PolicyWord effective(facts.effective_policy);
    facts.ss_flags |= (effective.get(thep_darwinbg) != 0 ? kThreadDarwinBG : 0) |
                      (effective.get(thep_io_passive) != 0 ? kThreadIOPassive : 0);
    facts.effective_qos = effective.get(thep_qos);
    facts.requested_qos = requested.get(thrp_qos);
    facts.requested_qos_override = requested.get(thrp_qos_override);
    facts.io_tier = effective.get(thep_io_tier);
}

void add(stackshot::CpuCounters& to, const stackshot::CpuCounters& more) {
    to.cycles += more.cycles;
    to.instructions += more.instructions;
}

/// Whether the thread at `thread` is on `cpu`, the CPU it was on last.
bool on_core(std::uint64_t thread, CpuIndex cpu) {
    return cpu < max_cpus && address_of(cpus[cpu].current) == thread;
}

void KernelSystem::initialize(const platform::Board& board) {
    BootArguments& arguments = boot_arguments();
    facts_.os_version = "stackshot-unikernel " STACKSHOT_UNIKERNEL_VERSION;
    facts_.boot_args = board.bootargs;
    facts_.page_size = page_size;
    for (const auto& range : board.memory)
        facts_.memory_size += range.size;
    const auto nanoseconds = std::uint64_t{1'000'000'000};
    const std::uint64_t divisor = std::gcd(nanoseconds, machine::ticks_per_second());
    facts_.timebase = {static_cast<std::uint32_t>(nanoseconds / divisor),
                       static_cast<std::uint32_t>(machine::ticks_per_second() / divisor)};
    facts_.kernel_load_address = platform::image::link_address();
    const auto build_id = platform::image::build_id();
    std::memcpy(facts_.kernel_uuid, build_id.data(),
                std::min(build_id.size(), sizeof(facts_.kernel_uuid)));
    for (std::size_t i = 0; i < std::min(build_id.size(), std::size_t{20}); i++) {
        const char* digits = "0123456789abcdef";
        const auto byte = std::to_integer<unsigned>(build_id[i]);
        build_version_[2 * i] = digits[byte >> 4];
        build_version_[2 * i + 1] = digits[byte & 0xf];
    }
    facts_.os_build_version = build_version_;
    facts_.cpu_count = static_cast<CpuIndex>(board.cpus.size());
    clusters_ = map_clusters(board);
    facts_.cluster_count = clusters_.count;
    facts_.cluster_types = clusters_.types;
    const platform::CodeRange entry = platform::exception_entry_range();
    facts_.exception_entry_low = entry.begin;
    facts_.exception_entry_high = entry.end;
    facts_.tunables.max_tracebuf_size = arguments.number("max_tracebuf_size", 0);
    facts_.tunables.estimate_adj =
        static_cast<std::uint32_t>(arguments.number("stackshot_estimate_adj", 25, 0, 100));
    constexpr std::array<std::string_view, 2> modes = {"parallel", "single"};
    facts_.tunables.single_threaded = arguments.choice("stackshot.mode", modes, 0) == 1;
    facts_.tunables.stack_high_water = arguments.flag("stackshot.stack_high_water", false);
    facts_.counts_cycles = machine::start_counters();
    for (CpuIndex cpu = 0; cpu < facts_.cpu_count; cpu++)
        cpu_at(cpu).is_p_core =
            clusters_.types[clusters_.cluster_of_cpu[cpu]] == stackshot::ClusterType::P;
    facts_.tunables.worker_timeout = quiesce().timeouts().progress;
    // XNU's limit for a stackshot; and a CPU may take its time to answer.
    constexpr std::uint64_t limit_nanoseconds = 42'600'000;
    facts_.tunables.interrupts_off_limit =
        std::max(nanoseconds_to_absolute_time(limit_nanoseconds), quiesce().timeouts().acknowledge);
    epoch_ = arguments.number("epoch", 0, 0, UINT32_MAX);
}

stackshot::TrapOutcome KernelSystem::trap(stackshot::TrapBody& body) {
    Stop stop(body, trap_time_, counters_);
    stackshot::TrapOutcome outcome;
    {
        // First of all: the thread stays on this CPU, and is not interrupted where it is shown.
        const InterruptsOff interrupts_off;
        outcome = quiesce().stop(stop, callers_registers_at_call());
    }
    // Only now: another thread may have the console.
    for_each_cpu(outcome.absent, [&stop](CpuIndex cpu) {
        console::print("stackshot: cpu %u did not answer the stop; last seen at pc %016lx\n", cpu,
                       stop.last_seen(cpu));
    });
    if (outcome.interrupts_off > facts_.tunables.interrupts_off_limit)
        console::print("stackshot: interrupts were off for %lu us, allowed are %lu us\n",
                       absolute_time_to_microseconds(outcome.interrupts_off),
                       absolute_time_to_microseconds(facts_.tunables.interrupts_off_limit));
    return outcome;
}

void KernelSystem::trace(stackshot::TraceEvent event, std::uint64_t word, const char* file,
                         std::uint32_t line) {
    const InterruptsOff interrupts_off;
    trace_ring(machine::current_cpu()).add({machine::absolute_time(), event, line, file, word});
}

stackshot::CpuCounters KernelSystem::counters(Quiesced&) {
    namespace pmu = platform::pmu;
    if (!pmu::started() && !pmu::start())
        return {};
    return {pmu::cycles(), pmu::instructions_retired()};
}

std::uint64_t KernelSystem::microseconds_since_epoch() const {
    const std::uint64_t ticks = machine::absolute_time();
    const std::uint64_t frequency = machine::ticks_per_second();
    return (epoch_ + ticks / frequency) * 1'000'000 + ticks % frequency * 1'000'000 / frequency;
}

Result<TaskRef> KernelSystem::next_task(Quiesced&, TaskRef previous) {
    constexpr std::size_t offset = offsetof(Task, link);
    auto from = static_cast<std::uint64_t>(previous);
    std::uint64_t next = address_of(task_list().first());
    Copied<ListLink<Task>> link;
    if (from != 0) {
        if (!link.read(from + offset))
            return KERN_FAILURE;
        next = address_of(link.front().next);
    }
    // The terminated tasks follow the others.
    if (next == 0) {
        CopiedTask last;
        if (from != 0 && !last.read(from))
            return KERN_FAILURE;
        if (from == 0 || last.front().terminated == 0) {
            from = 0;
            next = address_of(terminated_task_list().first());
        }
    }
    // The element's own link leads back: no element is walked twice.
    if (next != 0 && (!link.read(next + offset) || address_of(link.front().previous) != from))
        return KERN_FAILURE;
    return static_cast<TaskRef>(next);
}

Result<ThreadRef> KernelSystem::skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                             std::size_t count) {
    auto thread = static_cast<std::uint64_t>(previous);
    for (; count > 0; count--) {
        // The list's two ends lie in a task as an element's two links do in a thread.
        const std::uint64_t links = thread == 0
                                        ? static_cast<std::uint64_t>(task) + offsetof(Task, threads)
                                        : thread + offsetof(Thread, task_link);
        std::uint64_t other = 0;
        if (links % sizeof(thread) != 0 ||
            !platform::mmu::holds_no_device(links, sizeof(Thread::task_link)) ||
            !platform::mmu::checked_load_pair(links, thread, other))
            return KERN_FAILURE;
        if (thread == 0)
            break;
    }
    return static_cast<ThreadRef>(thread);
}

Result<std::size_t> KernelSystem::task_thread_count(Quiesced&, TaskRef task) {
    CopiedTask copy;
    if (!copy.read(static_cast<std::uint64_t>(task)))
        return KERN_FAILURE;
    return std::size_t{copy.front().thread_count};
}

kern_return KernelSystem::task_facts(Quiesced&, TaskRef ref, stackshot::TaskFacts& facts) {
    const auto address = static_cast<std::uint64_t>(ref);
    CopiedTask copy;
    if (!copy.read(address))
        return KERN_FAILURE;
    const Task& task = copy.front();
    facts = {};
    facts.unique_pid = task.unique_pid;
    facts.pid = task.pid;
    copy_name(facts.name, task.name);
    facts.ss_flags = task.flags;
    facts.active = task.terminated == 0;
    facts.is_kernel = address == address_of(&kernel_task());
    facts.system_time_in_terminated_threads = task.system_time_in_terminated_threads;
    facts.start_time = task.start_time;
    facts.start_seconds = epoch_ + facts.start_time / machine::ticks_per_second();
    facts.thread_count = task.thread_count;
    const auto size_with = [&](std::uint64_t threads) {
        return sizeof(Task) + threads * (sizeof(Thread) + KernelStack::size) +
               (facts.is_kernel ? platform::image::size() : 0);
    };
    facts.task_size = size_with(facts.thread_count);
    facts.max_resident_size = size_with(task.peak_thread_count);
    facts.coalition_id = task.coalition_id;
    facts.io_statistics = static_cast<stackshot::IoStatisticsRef>(address_of(task.io_statistics));
    facts.donates_importance = !task.donations.empty();
    facts.counters = task.counters;
    facts.counters_on_p_cores = task.counters_on_p_cores;
    for (CpuIndex cpu = 0; cpu < facts_.cpu_count && facts_.counts_cycles; cpu++) {
        if (address_of(cpus[cpu].task) != address)
            continue;
        add(facts.counters, untold(cpu));
        if (cpus[cpu].is_p_core)
            add(facts.counters_on_p_cores, untold(cpu));
    }
    facts.first_thread = static_cast<ThreadRef>(address_of(task.threads.first()));
    return KERN_SUCCESS;
}

kern_return KernelSystem::thread_facts(Quiesced&, ThreadRef ref, stackshot::ThreadFacts& facts) {
    const auto address = static_cast<std::uint64_t>(ref);
    CopiedThread copy;
    if (!copy.read(address))
        return KERN_FAILURE;
    const Thread& thread = copy.front();
    facts.thread_id = thread.thread_id;
    facts.thread_address = address;
    copy_name(facts.name, thread.name);
    facts.blocked = blocked_thread(thread);
    facts.continuation = 0;
    facts.total_syscalls = 0;
    facts.user_time = 0;
    facts.system_time = thread.system_time;
    facts.runnable_time = thread.runnable_time;
    if ((thread.state & SS_TH_RUN) != 0 && trap_time_ > thread.unblocked_time)
        facts.runnable_time += trap_time_ - thread.unblocked_time;
    facts.last_run_time = thread.last_run_time;
    facts.last_made_runnable_time = thread.last_made_runnable_time;
    facts.ss_flags =
        (thread.state & SS_TH_WAIT) != 0 && thread.block_hint == kThreadWaitParkedWorkQueue
            ? kThreadIdleWorker
            : 0;
    facts.state = thread.state;
    facts.sched_flags = 0;
    facts.base_priority = thread.base_pri;
    facts.sched_priority = thread.sched_pri;
    facts.requested_policy = thread.requested_policy;
    facts.effective_policy = thread.effective_policy;
    facts.effective_qos = facts.requested_qos = facts.requested_qos_override = facts.io_tier = 0;
    if ((thread.requested_policy | thread.effective_policy) != 0) [[unlikely]]
        add_policy(facts);
    facts.thread_group_id = thread.thread_group_id;
    facts.counters = thread.counters;
    facts.dispatch_queue =
        static_cast<stackshot::DispatchQueueRef>(address_of(thread.dispatch_queue));
    facts.io_statistics = static_cast<stackshot::IoStatisticsRef>(address_of(thread.io_statistics));
    facts.last_cpu = thread.last_cpu;
    facts.previous = static_cast<ThreadRef>(address_of(thread.task_link.previous));
    facts.next = static_cast<ThreadRef>(address_of(thread.task_link.next));

    // A thread that never ran begins with its first instruction; any other goes on behind its call
    // of switch_context().
    StackFacts& stack = facts.stack;
    stack.registers = {
        .pc = thread.context.lr,
        .lr = thread.context.lr,
        .fp = thread.context.fp,
        .sp = thread.context.sp,
    };
    stack.interrupted = thread.last_cpu == no_cpu;
    KernelStack bounds = thread.stack;
    if (on_core(address, thread.last_cpu))
        add_running(thread.last_cpu, bounds, facts);
    if (!bounds.valid())  // a CPU's first thread
        bounds = stack_around(stack.registers.sp);
    stack.low = bounds.low;
    stack.high = bounds.high;
    facts.has_stack = stack.registers.pc != 0;
    return KERN_SUCCESS;
}

/// What the facts of a thread are while it is on `cpu`. `bounds`: of its stack, if it has its own.
void KernelSystem::add_running(CpuIndex cpu, const KernelStack& bounds,
                               stackshot::ThreadFacts& facts) {
    facts.ss_flags |= kThreadOnCore;
    const std::uint64_t dispatched = cpu_at(cpu).dispatch_time;
    if (trap_time_ > dispatched)
        facts.system_time += trap_time_ - dispatched;
    facts.last_run_time = trap_time_;
    add(facts.counters, untold(cpu));

    CpuPosition position;
    if (!quiesce().position(cpu, position))
        return;
    // A CPU that did not stop may have been seen last in another thread.
    const KernelStack own = bounds.valid() ? bounds : stack_around(position.registers.sp);
    if (position.exact || (position.registers.sp >= own.low && position.registers.sp <= own.high)) {
        facts.stack.registers = position.registers;
        facts.stack.interrupted = position.interrupted;
    }
}

stackshot::CpuCounters KernelSystem::untold(CpuIndex index) const {
    const Cpu& cpu = cpu_at(index);
    const stackshot::CpuCounters& stopped = counters_[index];
    // A CPU that did not stop goes on telling.
    if (!cpu.counts || stopped.cycles < cpu.counters.cycles)
        return {};
    return {stopped.cycles - cpu.counters.cycles,
            static_cast<std::uint32_t>(stopped.instructions - cpu.counters.instructions)};
}

bool KernelSystem::wait_facts(Quiesced& quiesced, ThreadRef thread,
                              const stackshot::BlockedThread& blocked,
                              stackshot::WaitFacts& facts) {
    const auto read = [](std::uint64_t address, void* to) {
        std::uint64_t words[2];
        if (address % sizeof(words[0]) != 0 ||
            !platform::mmu::holds_no_device(address, sizeof(words)) ||
            !platform::mmu::checked_load_pair(address, words[0], words[1]))
            return false;
        std::memcpy(to, words, sizeof(words));
        return true;
    };
    const World world = absent_cpus(quiesced) == 0 ? World::stands : World::moves;
    switch (
        read_thread_wait_info(read, world, static_cast<std::uint64_t>(thread), blocked, facts)) {
        case WaitInfoRead::waits:
            return true;
        case WaitInfoRead::waits_for_nothing:
            return false;
        case WaitInfoRead::unreadable:
            break;
    }
    // What it waits for is not there.
    facts.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_UNKNOWN;
    return true;
}

void KernelSystem::port_label_facts(Quiesced&, stackshot::PortLabelRef label,
                                    stackshot::PortLabelFacts& facts) {
    facts = {};
    Copied<PortLabel> copy;
    facts.readable = copy.read(static_cast<std::uint64_t>(label));
    if (!facts.readable)
        return;
    facts.domain = static_cast<std::uint8_t>(copy.front().domain_type);
    copy_name(facts.name, copy.front().name);
}

bool KernelSystem::dispatch_queue_facts(Quiesced&, stackshot::DispatchQueueRef queue,
                                        stackshot::DispatchQueueFacts& facts) {
    Copied<DispatchQueue> copy;
    if (!copy.read(static_cast<std::uint64_t>(queue)))
        return false;
    facts.serial = copy.front().serial_number;
    copy_name(facts.label, copy.front().label);
    return true;
}

bool KernelSystem::io_statistics(Quiesced&, stackshot::IoStatisticsRef statistics,
                                 io_stats_snapshot& snapshot) {
    return platform::mmu::checked_copy(static_cast<std::uint64_t>(statistics), &snapshot,
                                       sizeof(snapshot) / sizeof(std::uint64_t));
}

/// Reads the element behind the one at `previous`, 0: the first one, of a list through `link`.
/// Address 0: there is none. KERN_FAILURE: the list is corrupt.
template <typename T, ListLink<T> T::*link>
Result<std::uint64_t> read_next(const T* first, std::uint64_t previous, Copied<T>& element) {
    std::uint64_t next = address_of(first);
    if (previous != 0) {
        if (!element.read(previous))
            return KERN_FAILURE;
        next = address_of((element.front().*link).next);
    }
    // The element's own link leads back, as in next_task().
    if (next != 0 &&
        (!element.read(next) || address_of((element.front().*link).previous) != previous))
        return KERN_FAILURE;
    return next;
}

Result<stackshot::ThreadGroupRef> KernelSystem::next_thread_group(
    Quiesced&, stackshot::ThreadGroupRef previous, stackshot::ThreadGroupFacts& facts) {
    Copied<ThreadGroup> copy;
    const auto next = read_next<ThreadGroup, &ThreadGroup::link>(
        thread_group_list().first(), static_cast<std::uint64_t>(previous), copy);
    if (!next.ok())
        return next.error();
    if (next.value() != 0) {
        facts.id = copy.front().id;
        facts.flags = copy.front().flags;
        static_assert(sizeof(facts.name) == sizeof(copy.front().name));
        std::memcpy(facts.name, copy.front().name, sizeof(facts.name));
    }
    return static_cast<stackshot::ThreadGroupRef>(next.value());
}

Result<stackshot::CoalitionRef> KernelSystem::next_coalition(Quiesced&,
                                                             stackshot::CoalitionRef previous,
                                                             stackshot::CoalitionFacts& facts) {
    Copied<Coalition> copy;
    const auto next = read_next<Coalition, &Coalition::link>(
        coalition_list().first(), static_cast<std::uint64_t>(previous), copy);
    if (!next.ok())
        return next.error();
    const Coalition& coalition = copy.front();
    if (next.value() != 0)
        facts = {coalition.id, coalition.flags, coalition.thread_group.id,
                 coalition.leader_unique_pid};
    return static_cast<stackshot::CoalitionRef>(next.value());
}

std::size_t KernelSystem::donating_pids(Quiesced&, TaskRef ref, std::span<std::int32_t> pids) {
    CopiedTask task;
    if (!task.read(static_cast<std::uint64_t>(ref)))
        return 0;
    std::size_t count = 0;
    std::uint64_t at = 0;
    // Each donation belongs to a thread: a list that is longer runs in a circle.
    for (std::uint32_t left = task.front().thread_count; left > 0 && count < pids.size(); left--) {
        Copied<ImportanceDonation> donation;
        const auto next = read_next<ImportanceDonation, &ImportanceDonation::link>(
            task.front().donations.first(), at, donation);
        if (!next.ok() || next.value() == 0)
            break;
        at = next.value();
        const auto found = pids.first(count);
        if (std::find(found.begin(), found.end(), donation.front().pid) == found.end())
            pids[count++] = donation.front().pid;
    }
    return count;
}

std::uint32_t KernelSystem::stack_high_water(Quiesced&, const StackFacts& stack) {
    std::uint64_t address = stack.low;
    std::uint64_t first = 0, second = 0;
    if (address % sizeof(first) != 0 || stack.high <= address ||
        !platform::mmu::holds_no_device(address, stack.high - address))
        return 0;
    for (; address < stack.high; address += 2 * sizeof(first)) {
        if (!platform::mmu::checked_load_pair(address, first, second))
            return 0;
        if (first != KernelStack::paint || second != KernelStack::paint)
            break;
    }
    // A CPU's first stack is not painted.
    return address == stack.low && first == 0 ? 0
                                              : static_cast<std::uint32_t>(stack.high - address);
}

stackshot::MemoryFacts KernelSystem::memory_facts(Quiesced&) {
    const std::size_t free_pages = page_allocator().free_pages();
    stackshot::MemoryFacts facts;
    facts.free_pages = static_cast<std::uint32_t>(free_pages);
    // Nothing can be paged out: whatever is not free is wired.
    facts.wired_pages = static_cast<std::uint32_t>(facts_.memory_size / page_size - free_pages);
    return facts;
}

bool KernelSystem::read_words(Quiesced&, std::uint64_t address, std::span<std::uint64_t> words) {
    return platform::mmu::checked_copy(address, words.data(), words.size());
}

stackshot::Followed KernelSystem::follow_frame_records(Quiesced&, stackshot::FrameChain& chain,
                                                       std::span<std::uint64_t> return_addresses) {
    const stackshot::StackRange& stack = chain.stack;
    if (stack.low < stack.high &&
        !platform::mmu::holds_no_device(stack.low, stack.high - stack.low))
        return {.end = stackshot::WalkEnd::unreadable};
    return stackshot::follow_frame_records(
        chain, return_addresses,
        [](std::uint64_t address, std::uint64_t& first, std::uint64_t& second) {
            return platform::mmu::checked_load_pair(address, first, second);
        });
}

bool KernelSystem::interrupted_registers(Quiesced&, std::uint64_t return_address,
                                         std::uint64_t frame_pointer, Registers& registers) {
    if (!platform::exception_entry_range().contains(return_address))
        return false;
    const std::uint64_t frame = platform::exception_frame_address(frame_pointer);
    using Frame = platform::ExceptionFrame;
    Copied<Frame, offsetof(Frame, record) + sizeof(Frame::record)> copy;
    if (!copy.read(frame))
        return false;
    const Frame& saved = copy.front();
    registers = {.pc = saved.elr, .lr = saved.lr(), .fp = saved.fp(), .sp = saved.sp};
    return saved.record.fp == registers.fp && saved.record.lr == registers.pc;
}

std::span<const std::byte> KernelSystem::unwind_tables(std::uint64_t& address) const {
    const auto tables = platform::image::unwind_tables();
    address = address_of(tables.data());
    return tables;
}

}  // namespace

stackshot::System& stackshot_system() {
    return the_system;
}

void initialize_stackshot_system(const platform::Board& board) {
    the_system.initialize(board);
}

void stackshot_system_stopped(StoppedForGood&) {
    the_system.stopped_for_good();
}

ThreadRef thread_on_cpu(CpuIndex cpu) {
    return static_cast<ThreadRef>(address_of(cpu_at(cpu).current));
}

}  // namespace kernel
