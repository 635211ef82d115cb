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
#include "kernel/boot_arguments.hpp"
#include "kernel/cluster_map.hpp"
#include "kernel/console.hpp"
#include "kernel/cpu.hpp"
#include "kernel/mutex.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/image.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace kernel {
namespace {

using namespace kcdata;
using stackshot::Quiesced;
using stackshot::Registers;
using stackshot::StackFacts;
using stackshot::TaskRef;
using stackshot::ThreadRef;

/// Copies the member of type T at `offset` of the object at `object`, as a stop found it; false if
/// it cannot be read. Its bytes may be anything: nothing in them is followed but by another checked
/// read.
template <typename T>
bool read_member(std::uint64_t object, std::size_t offset, T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    constexpr std::size_t word_size = sizeof(std::uint64_t);
    static_assert(word_size % sizeof(T) == 0 || sizeof(T) % word_size == 0);
    const std::uint64_t address = object + offset;
    if (address % std::min(sizeof(T), word_size) != 0)
        return false;
    // A small member lies within one word, since it is aligned to its size.
    const std::size_t inside = address % word_size;
    std::uint64_t words[(sizeof(T) + word_size - 1) / word_size];
    for (std::size_t i = 0; i < std::size(words); i++)
        if (!platform::mmu::checked_read(address - inside + i * word_size, words[i]))
            return false;
    std::memcpy(static_cast<void*>(&value), reinterpret_cast<const std::byte*>(words) + inside,
                sizeof(T));
    return true;
}

std::uint64_t address_of(const void* object) {
    return reinterpret_cast<std::uint64_t>(object);
}

/// A name as it is copied need not end.
template <std::size_t N>
void end_name(char (&name)[N]) {
    name[N - 1] = '\0';
}

/// The element behind `previous` in a list whose elements have their link at `offset`; `first` is
/// the list's first one. KERN_FAILURE unless the element's own link leads back: no element is then
/// walked twice, so that no cycle goes on for ever.
template <typename T>
Result<std::uint64_t> next_in_list(std::uint64_t first, std::uint64_t previous,
                                   std::size_t offset) {
    std::uint64_t next = first;
    ListLink<T> link;
    if (previous != 0) {
        if (!read_member(previous, offset, link))
            return KERN_FAILURE;
        next = address_of(link.next);
    }
    if (next == 0)
        return next;
    if (!read_member(next, offset, link) || address_of(link.previous) != previous)
        return KERN_FAILURE;
    return next;
}

/// Where the stack that holds `sp` lies: the upper half of its slot
/// (platform/arm64/mmu/layout.hpp).
KernelStack stack_around(std::uint64_t sp) {
    const std::uint64_t slot = sp & ~(platform::mmu::stack_slot_size - 1);
    return {slot + platform::mmu::stack_slot_size - platform::mmu::stack_size,
            slot + platform::mmu::stack_slot_size};
}

/// A trap's body, and what the kernel itself notes while the world stands still.
class Stop final : public stackshot::TrapBody {
  public:
    Stop(stackshot::TrapBody& body, std::uint64_t& time) : body_(body), time_(time) {}

    void cpu_preflight(CpuIndex cpu) override { body_.cpu_preflight(cpu); }
    void initiator(Quiesced& quiesced) override {
        // Other CPUs look at it only for work this CPU hands out in body_.
        time_ = machine::absolute_time();
        for_each_cpu(quiesce().absent(quiesced), [this](CpuIndex cpu) {
            CpuPosition position;
            if (quiesce().position(cpu, position))
                last_seen_[cpu] = position.registers.pc;
        });
        body_.initiator(quiesced);
    }
    void auxiliary(Quiesced& quiesced) override { body_.auxiliary(quiesced); }

    /// Where an absent CPU was last seen: its PC, 0 if it never was.
    std::uint64_t last_seen(CpuIndex cpu) const { return last_seen_[cpu]; }

  private:
    stackshot::TrapBody& body_;
    std::uint64_t& time_;
    std::array<std::uint64_t, max_cpus> last_seen_{};
};

class KernelSystem final : public stackshot::System {
  public:
    void initialize(const platform::Board& board);

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

    std::uint64_t absolute_time() const override { return machine::absolute_time(); }
    std::uint64_t microseconds_since_epoch() const override;
    std::uint32_t cluster_of(CpuIndex cpu) const override { return clusters_.cluster_of_cpu[cpu]; }
    void wait_for_event() override {
        quiesce().park_if_panicking();
        machine::wait_for_event();
    }
    void signal_event() override { machine::send_event(); }

    Result<TaskRef> next_task(Quiesced&, TaskRef previous) override;
    Result<ThreadRef> next_thread(Quiesced&, TaskRef task, ThreadRef previous) override;
    Result<ThreadRef> skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                   std::size_t count) override;
    Result<std::size_t> task_thread_count(Quiesced&, TaskRef task) override;
    kern_return task_facts(Quiesced&, TaskRef task, stackshot::TaskFacts& facts) override;
    kern_return thread_facts(Quiesced&, ThreadRef thread, stackshot::ThreadFacts& facts) override;
    kern_return stack_facts(Quiesced&, ThreadRef thread, StackFacts& facts) override;
    stackshot::MemoryFacts memory_facts(Quiesced&) override;
    CpuMask absent_cpus(Quiesced& quiesced) override { return quiesce().absent(quiesced); }
    [[noreturn]] void workers_overdue(Quiesced&, CpuMask cpus) override {
        panic("stackshot: CPUs %016lx did not finish their part of the capture", cpus);
    }
    [[noreturn]] void spin_for_panic(Quiesced&) override {
        for (;;)
            wait_for_event();
    }
    bool read_words(Quiesced&, std::uint64_t address, std::span<std::uint64_t> words) override;
    bool interrupted_registers(Quiesced&, std::uint64_t return_address, std::uint64_t frame_pointer,
                               Registers& registers) override;
    std::span<const std::byte> unwind_tables(std::uint64_t& address) const override;

  private:
    stackshot::SystemFacts facts_{};
    ClusterMap clusters_{};
    char build_version_[2 * 20 + 1] = {};
    std::uint64_t epoch_ = 0;
    Mutex mutex_{};
    /// When the world had stopped: threads that run have run until then.
    std::uint64_t trap_time_ = 0;
};

constinit KernelSystem the_system;

/// Whether the thread at `thread` is on `cpu`, the CPU it was on last.
bool on_core(std::uint64_t thread, CpuIndex cpu) {
    return cpu < max_cpus && address_of(cpu_at(cpu).current) == thread;
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
    facts_.tunables.worker_timeout = quiesce().timeouts().progress;
    epoch_ = arguments.number("epoch", 0, 0, UINT32_MAX);
}

stackshot::TrapOutcome KernelSystem::trap(stackshot::TrapBody& body) {
    const auto* const record =
        static_cast<const platform::FrameRecord*>(__builtin_frame_address(0));
    // The call itself: a thread on a CPU is shown where it stands, not where it goes on.
    constexpr std::uint64_t instruction_size = 4;
    const Registers entry{
        .pc = record->lr - instruction_size,
        .lr = 0,
        .fp = record->fp,
        .sp = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa()),
    };
    Stop stop(body, trap_time_);
    const stackshot::TrapOutcome outcome = quiesce().stop(stop, entry);
    for_each_cpu(outcome.absent, [&stop](CpuIndex cpu) {
        console::print("stackshot: cpu %u did not answer the stop; last seen at pc %016lx\n", cpu,
                       stop.last_seen(cpu));
    });
    return outcome;
}

std::uint64_t KernelSystem::microseconds_since_epoch() const {
    const std::uint64_t ticks = machine::absolute_time();
    const std::uint64_t frequency = machine::ticks_per_second();
    return (epoch_ + ticks / frequency) * 1'000'000 + ticks % frequency * 1'000'000 / frequency;
}

Result<TaskRef> KernelSystem::next_task(Quiesced&, TaskRef previous) {
    auto next = next_in_list<Task>(address_of(task_list().first()),
                                   static_cast<std::uint64_t>(previous), offsetof(Task, link));
    if (!next.ok())
        return next.error();
    return static_cast<TaskRef>(next.value());
}

Result<ThreadRef> KernelSystem::next_thread(Quiesced&, TaskRef task, ThreadRef previous) {
    ThreadList threads;
    if (!read_member(static_cast<std::uint64_t>(task), offsetof(Task, threads), threads))
        return KERN_FAILURE;
    auto next =
        next_in_list<Thread>(address_of(threads.first()), static_cast<std::uint64_t>(previous),
                             offsetof(Thread, task_link));
    if (!next.ok())
        return next.error();
    return static_cast<ThreadRef>(next.value());
}

Result<ThreadRef> KernelSystem::skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                             std::size_t count) {
    auto thread = static_cast<std::uint64_t>(previous);
    for (; count > 0; count--) {
        const std::uint64_t link = thread == 0
                                       ? static_cast<std::uint64_t>(task) + offsetof(Task, threads)
                                       : thread + offsetof(Thread, task_link);
        // The first member of the list as of a link leads on.
        if (!read_member(link, 0, thread))
            return KERN_FAILURE;
        if (thread == 0)
            break;
    }
    return static_cast<ThreadRef>(thread);
}

Result<std::size_t> KernelSystem::task_thread_count(Quiesced&, TaskRef task) {
    std::uint32_t count = 0;
    static_assert(sizeof(count) == sizeof(Task::thread_count));
    if (!read_member(static_cast<std::uint64_t>(task), offsetof(Task, thread_count), count))
        return KERN_FAILURE;
    return std::size_t{count};
}

kern_return KernelSystem::task_facts(Quiesced&, TaskRef ref, stackshot::TaskFacts& facts) {
    const auto task = static_cast<std::uint64_t>(ref);
    if (!read_member(task, offsetof(Task, unique_pid), facts.unique_pid) ||
        !read_member(task, offsetof(Task, pid), facts.pid) ||
        !read_member(task, offsetof(Task, name), facts.name) ||
        !read_member(task, offsetof(Task, flags), facts.ss_flags) ||
        !read_member(task, offsetof(Task, start_time), facts.start_time) ||
        !read_member(task, offsetof(Task, thread_count), facts.thread_count) ||
        !read_member(task, offsetof(Task, system_time_in_terminated_threads),
                     facts.system_time_in_terminated_threads))
        return KERN_FAILURE;
    end_name(facts.name);
    facts.is_kernel = task == address_of(&kernel_task());
    facts.start_seconds = epoch_ + facts.start_time / machine::ticks_per_second();
    facts.task_size = sizeof(Task) + facts.thread_count * (sizeof(Thread) + KernelStack::size) +
                      (facts.is_kernel ? platform::image::size() : 0);
    return KERN_SUCCESS;
}

kern_return KernelSystem::thread_facts(Quiesced&, ThreadRef ref, stackshot::ThreadFacts& facts) {
    const auto thread = static_cast<std::uint64_t>(ref);
    std::uint64_t unblocked_time = 0;
    if (!read_member(thread, offsetof(Thread, thread_id), facts.thread_id) ||
        !read_member(thread, offsetof(Thread, name), facts.name) ||
        !read_member(thread, offsetof(Thread, wait_event), facts.wait_event) ||
        !read_member(thread, offsetof(Thread, system_time), facts.system_time) ||
        !read_member(thread, offsetof(Thread, runnable_time), facts.runnable_time) ||
        !read_member(thread, offsetof(Thread, unblocked_time), unblocked_time) ||
        !read_member(thread, offsetof(Thread, last_run_time), facts.last_run_time) ||
        !read_member(thread, offsetof(Thread, last_made_runnable_time),
                     facts.last_made_runnable_time) ||
        !read_member(thread, offsetof(Thread, state), facts.state) ||
        !read_member(thread, offsetof(Thread, base_priority), facts.base_priority) ||
        !read_member(thread, offsetof(Thread, priority), facts.sched_priority) ||
        !read_member(thread, offsetof(Thread, last_cpu), facts.last_cpu))
        return KERN_FAILURE;
    end_name(facts.name);
    facts.thread_address = thread;
    if ((facts.state & SS_TH_RUN) != 0 && trap_time_ > unblocked_time)
        facts.runnable_time += trap_time_ - unblocked_time;
    if (on_core(thread, facts.last_cpu)) {
        facts.ss_flags |= kThreadOnCore;
        const std::uint64_t dispatched = cpu_at(facts.last_cpu).dispatch_time;
        if (trap_time_ > dispatched)
            facts.system_time += trap_time_ - dispatched;
        facts.last_run_time = trap_time_;
    }
    return KERN_SUCCESS;
}

kern_return KernelSystem::stack_facts(Quiesced&, ThreadRef ref, StackFacts& facts) {
    const auto thread = static_cast<std::uint64_t>(ref);
    constexpr std::size_t context = offsetof(Thread, context);
    Registers& registers = facts.registers;
    KernelStack stack;
    CpuIndex last_cpu = no_cpu;
    if (!read_member(thread, offsetof(Thread, stack), stack) ||
        !read_member(thread, offsetof(Thread, last_cpu), last_cpu) ||
        !read_member(thread, context + offsetof(platform::SwitchContext, lr), registers.lr) ||
        !read_member(thread, context + offsetof(platform::SwitchContext, fp), registers.fp) ||
        !read_member(thread, context + offsetof(platform::SwitchContext, sp), registers.sp))
        return KERN_FAILURE;
    // A thread that never ran begins with its first instruction; any other goes on behind its call
    // of switch_context().
    registers.pc = registers.lr;
    facts.interrupted = last_cpu == no_cpu;

    CpuPosition position;
    if (on_core(thread, last_cpu) && quiesce().position(last_cpu, position)) {
        if (!stack.valid())  // a CPU's first thread
            stack = stack_around(position.registers.sp);
        // A CPU that did not stop may have been seen last in another thread.
        if (position.exact ||
            (position.registers.sp >= stack.low && position.registers.sp <= stack.high)) {
            registers = position.registers;
            facts.interrupted = position.interrupted;
        }
    } else if (!stack.valid()) {
        stack = stack_around(registers.sp);
    }
    facts.low = stack.low;
    facts.high = stack.high;
    return registers.pc == 0 ? KERN_NOT_IN_SET : KERN_SUCCESS;
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
    for (std::uint64_t& word : words) {
        if (!platform::mmu::checked_read(address, word))
            return false;
        address += sizeof(word);
    }
    return true;
}

bool KernelSystem::interrupted_registers(Quiesced&, std::uint64_t return_address,
                                         std::uint64_t frame_pointer, Registers& registers) {
    if (!platform::exception_entry_range().contains(return_address))
        return false;
    const std::uint64_t frame = platform::exception_frame_address(frame_pointer);
    using Frame = platform::ExceptionFrame;
    std::uint64_t record_fp = 0;
    std::uint64_t record_lr = 0;
    const auto read = [frame](std::size_t offset, std::uint64_t& value) {
        return platform::mmu::checked_read(frame + offset, value);
    };
    return read(offsetof(Frame, elr), registers.pc) &&
           read(offsetof(Frame, x) + 30 * sizeof(std::uint64_t), registers.lr) &&
           read(offsetof(Frame, x) + 29 * sizeof(std::uint64_t), registers.fp) &&
           read(offsetof(Frame, sp), registers.sp) && read(offsetof(Frame, record.fp), record_fp) &&
           read(offsetof(Frame, record.lr), record_lr) && record_fp == registers.fp &&
           record_lr == registers.pc;
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

ThreadRef thread_on_cpu(CpuIndex cpu) {
    return static_cast<ThreadRef>(address_of(cpu_at(cpu).current));
}

}  // namespace kernel
