#include "fake_system.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "kcdata/records.hpp"

using namespace stackshot;
using kcdata::kern_return;
using kcdata::Result;

namespace {

thread_local CpuIndex current_cpu = 0;

constexpr std::uint64_t stack_bytes = 64 * 1024;

void copy_name(std::span<char> to, const std::string& name) {
    std::memcpy(to.data(), name.data(), std::min(name.size(), to.size() - 1));
}

}  // namespace

FakeSystem::FakeSystem(CpuIndex cpus, std::uint32_t clusters) {
    constant.os_version = "stackshot-unikernel 0.1";
    constant.os_build_version = "fake";
    constant.boot_args = "workload=fake";
    constant.page_size = 4096;
    constant.memory_size = std::uint64_t{1} << 30;
    constant.timebase = {125, 3};
    constant.kernel_load_address = 0xffff'0000'0000'0000;
    for (std::size_t n = 0; n < sizeof(constant.kernel_uuid); ++n)
        constant.kernel_uuid[n] = static_cast<std::uint8_t>(n + 1);
    constant.cpu_count = cpus;
    constant.cluster_count = clusters;
}

FakeSystem::~FakeSystem() {
    for (const auto& [memory, size] : allocations_)
        std::free(memory);
}

void FakeSystem::become_cpu(CpuIndex cpu) {
    current_cpu = cpu;
}

CpuIndex FakeSystem::this_cpu() {
    return current_cpu;
}

FakeSystem::Task& FakeSystem::add_task(const std::string& name, std::size_t threads,
                                       std::size_t depth) {
    Task& task = tasks.emplace_back();
    task.facts.unique_pid = 100 + tasks.size();
    task.facts.pid = static_cast<std::int32_t>(tasks.size() - 1);
    task.facts.is_kernel = tasks.size() == 1;
    task.facts.thread_count = static_cast<std::uint32_t>(threads);
    const auto fact = [this] { return next_fact_++; };
    task.facts.ss_flags = std::uint64_t{fact()} << 32;
    task.facts.user_time_in_terminated_threads = fact();
    task.facts.system_time_in_terminated_threads = fact();
    task.facts.start_seconds = fact();
    task.facts.task_size = fact();
    task.facts.max_resident_size = fact();
    task.facts.suspend_count = fact();
    task.facts.faults = fact();
    task.facts.coalition_id = fact();
    task.facts.counters = {fact(), fact()};
    task.facts.counters_on_p_cores = {fact(), fact()};
    copy_name(task.facts.name, name);
    for (std::size_t n = 0; n < threads; ++n) {
        Thread& thread = task.threads.emplace_back();
        thread.facts.thread_id = 0x1000 + next_id_++;
        thread.facts.thread_address = 0xffff'0000'2000'0000 + thread.facts.thread_id * 512;
        thread.facts.blocked.wait_event = fact();
        thread.facts.continuation = fact();
        thread.facts.total_syscalls = fact();
        if (n % 3 != 0)
            copy_name(thread.facts.name, name + "." + std::to_string(n));
        // Microseconds that differ too, and one time whose product with the numerator does not fit.
        thread.facts.user_time = std::uint64_t{fact()} * 10'000;
        thread.facts.system_time = std::uint64_t{fact()} * 10'000;
        thread.facts.runnable_time = std::uint64_t{fact()} << 38;
        thread.facts.last_run_time = fact();
        thread.facts.last_made_runnable_time = fact();
        thread.facts.ss_flags = std::uint64_t{fact()} << 32;
        thread.facts.sched_flags = fact();
        thread.facts.state = n % 2 == 0 ? kcdata::SS_TH_WAIT : kcdata::SS_TH_RUN;
        thread.facts.base_priority = static_cast<std::int16_t>(31 + n % 4);
        thread.facts.sched_priority = static_cast<std::int16_t>(64 + n % 4);
        thread.facts.requested_policy = std::uint64_t{fact()} << 32;
        thread.facts.effective_policy = std::uint64_t{fact()} << 32;
        thread.facts.requested_qos = static_cast<std::uint8_t>(n % 7);
        thread.facts.effective_qos = static_cast<std::uint8_t>(n % 5);
        thread.facts.requested_qos_override = static_cast<std::uint8_t>(n % 3);
        thread.facts.io_tier = static_cast<std::uint8_t>(n % 4);
        thread.facts.thread_group_id = fact();
        thread.facts.counters = {fact(), fact()};
        if (n % 5 != 4)
            thread.facts.last_cpu = static_cast<CpuIndex>(n % constant.cpu_count);
        if (n % 4 == 0)
            thread.wait = {.owner = fact(),
                           .context = fact(),
                           .wait_type = static_cast<std::uint8_t>(1 + n % 18),
                           .wait_flags = fact(),
                           .turnstile_context = fact(),
                           .turnstile_priority = static_cast<std::uint8_t>(n % 128),
                           .number_of_hops = static_cast<std::uint8_t>(1 + n % 200),
                           .turnstile_flags = fact()};
        make_stack(thread, depth + n % 7);
    }
    return task;
}

void FakeSystem::add_tasks(std::size_t count) {
    add_task("kernel_task", 9, 5);
    for (std::size_t n = 1; n < count; ++n)
        add_task("task" + std::to_string(n), n * 7 % 11, 1 + n % 13);
}

void FakeSystem::make_stack(Thread& thread, std::size_t depth) {
    const std::uint64_t low = next_stack_;
    next_stack_ += 2 * stack_bytes;
    StackFacts& stack = thread.stack;
    stack.low = low;
    stack.high = low + stack_bytes;
    thread.expected_frames.clear();
    // Frame records every 32 bytes, the outermost at the top.
    const std::uint64_t first = stack.high - 32 * depth;
    for (std::size_t n = 0; n < depth; ++n) {
        const std::uint64_t record = first + 32 * n;
        const bool outermost = n + 1 == depth;
        map(record, 2);
        word(record) = outermost ? 0 : record + 32;
        word(record + 8) = outermost ? 0 : 0xffff'0000'0000'1000 + thread.facts.thread_id * 64 + n;
        thread.expected_frames.push_back(n == 0 ? 0xffff'0000'0008'0000 : word(record + 8 - 32));
    }
    stack.registers.pc = 0xffff'0000'0008'0000;
    stack.registers.fp = depth == 0 ? 0 : first;
    stack.registers.sp = first - 16;
    if (depth == 0)
        thread.expected_frames = {stack.registers.pc};
}

void FakeSystem::map(std::uint64_t address, std::size_t count) {
    for (std::size_t n = 0; n < count; ++n)
        memory_.try_emplace(address + 8 * n, 0);
}

std::uint64_t& FakeSystem::word(std::uint64_t address) {
    return memory_.at(address);
}
void FakeSystem::unmap(std::uint64_t address) {
    memory_.erase(address);
}

std::size_t FakeSystem::thread_count() {
    std::size_t count = 0;
    for (const Task& task : tasks)
        count += task.threads.size();
    return count;
}

std::span<std::byte> FakeSystem::allocate(std::size_t size) {
    if (failing_allocation != 0 && --failing_allocation == 0)
        return {};
    if (size == 0)
        return {};
    const std::size_t rounded = (size + 4095) / 4096 * 4096;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, rounded));
    std::memset(memory, static_cast<int>(fill), rounded);
    allocations_[memory] = size;
    live_bytes_ += size;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    return {memory, size};
}

void FakeSystem::free(std::span<std::byte> memory) {
    auto found = allocations_.upper_bound(memory.data());
    if (found == allocations_.begin())
        throw std::logic_error("freed what was not allocated");
    --found;
    const auto [start, size] = *found;
    const auto skipped = static_cast<std::size_t>(memory.data() - start);
    if (skipped >= size || memory.size() != size - skipped || skipped % 4096 != 0)
        throw std::logic_error("freed what was not allocated");
    live_bytes_ -= memory.size();
    found->second = skipped;
    if (skipped != 0)
        return;
    std::free(start);
    allocations_.erase(found);
}

kern_return FakeSystem::prepare_scratch() {
    live_scratch_ += scratch_result == kcdata::KERN_SUCCESS;
    return scratch_result;
}
void FakeSystem::release_scratch() {
    if (in_trap_ || --live_scratch_ < 0)
        throw std::logic_error("released scratch memory that is in use, or that nobody prepared");
}

void FakeSystem::lock() {
    if (!try_lock())
        throw std::logic_error("locked twice");
}
bool FakeSystem::try_lock() {
    return locked_ ? false : (locked_ = true);
}
void FakeSystem::unlock() {
    locked_ = false;
}

TrapOutcome FakeSystem::trap(TrapBody& body) {
    ++traps_;
    in_trap_ = true;
    if (trap_hook)
        trap_hook();
    for (auto& event : events_)
        event.store(false);
    std::atomic<CpuIndex> acknowledged{0};
    CpuIndex expected = 0;
    std::vector<std::thread> cpus;
    for (CpuIndex cpu = 1; cpu < constant.cpu_count; ++cpu) {
        const bool is_absent = (absent >> cpu & 1) != 0;
        if (is_absent && !absent_preflight)
            continue;
        expected += is_absent ? 0 : 1;
        cpus.emplace_back([&, cpu, is_absent] {
            current_cpu = cpu;
            body.cpu_preflight(cpu);
            if (is_absent)
                return;
            acknowledged.fetch_add(1, std::memory_order_release);
            FakeQuiesced quiesced(cpu);
            try {
                body.auxiliary(quiesced);
            } catch (const PanicSpin&) {
            }
        });
    }
    current_cpu = 0;
    body.cpu_preflight(0);
    while (acknowledged.load(std::memory_order_acquire) != expected)
        std::this_thread::yield();
    FakeQuiesced quiesced(0);
    const auto join = [&] {
        for (std::thread& cpu : cpus)
            cpu.join();
        in_trap_ = false;
    };
    try {
        body.initiator(quiesced);
    } catch (...) {
        join();
        throw;
    }
    join();
    TrapOutcome outcome;
    outcome.absent = absent;
    outcome.stopped = (constant.cpu_count == 64 ? 0 : CpuMask{1} << constant.cpu_count) - 1;
    outcome.stopped &= ~absent;
    outcome.interrupts_off = 1;
    return outcome;
}

std::uint64_t FakeSystem::absolute_time() const {
    return time_.fetch_add(1, std::memory_order_relaxed);
}
std::uint64_t FakeSystem::microseconds_since_epoch() const {
    return 1'700'000'000'000'000 + time_.fetch_add(1, std::memory_order_relaxed);
}
std::uint32_t FakeSystem::cluster_of(CpuIndex cpu) const {
    return cluster_of_cpu.empty() ? cpu % constant.cluster_count : cluster_of_cpu.at(cpu);
}

void FakeSystem::wait_for_event() {
    waiting_auxiliaries_.fetch_add(current_cpu != 0);
    // Like WFE: an event register for each CPU, which a signal sets and a wait clears.
    const auto deadline = std::chrono::steady_clock::now() + event_stream_period;
    while (!events_[current_cpu].exchange(false, std::memory_order_relaxed)) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() > deadline) {
            missed_signals_.fetch_add(1, std::memory_order_relaxed);
            break;
        }
    }
    waiting_auxiliaries_.fetch_sub(current_cpu != 0);
}

void FakeSystem::signal_event() {
    for (auto& event : events_)
        event.store(true, std::memory_order_relaxed);
}

bool FakeSystem::read_fails() {
    std::size_t left = failing_read.load(std::memory_order_relaxed);
    while (left != 0 && !failing_read.compare_exchange_weak(left, left - 1)) {
    }
    return left == 1;
}

void FakeSystem::trace(TraceEvent event, std::uint64_t word, const char* file, std::uint32_t line) {
    traces_[current_cpu].add({time_.load(std::memory_order_relaxed), event, line, file, word});
}

std::vector<TraceEntry> FakeSystem::traced(CpuIndex cpu) const {
    std::array<TraceEntry, TraceRing::capacity> entries;
    const std::size_t count = traces_[cpu].read(entries);
    return {entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count)};
}

CpuCounters FakeSystem::counters(Quiesced& quiesced) {
    const std::uint64_t calls = ++counters_[quiesced.cpu()];
    return {1000 * calls, 100 * calls};
}

Result<TaskRef> FakeSystem::next_task(Quiesced&, TaskRef previous) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    if (next_task_hook)
        return next_task_hook(previous);
    const auto index = static_cast<std::size_t>(previous);
    return index < tasks.size() ? TaskRef{index + 1} : TaskRef::none;
}

Result<ThreadRef> FakeSystem::next_thread(TaskRef task, ThreadRef previous) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    if (next_thread_hook)
        return next_thread_hook(task, previous);
    const auto task_index = static_cast<std::size_t>(task) - 1;
    const auto index = static_cast<std::uint32_t>(previous);
    return index < tasks.at(task_index).threads.size() ? thread_ref(task_index, index)
                                                       : ThreadRef::none;
}

Result<ThreadRef> FakeSystem::skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                           std::size_t count) {
    if (!next_thread_hook) {
        // A list of thousands is not walked thousands of times.
        const auto index = std::size_t{static_cast<std::uint32_t>(previous)} + count;
        const auto task_index = static_cast<std::size_t>(task) - 1;
        return index <= tasks.at(task_index).threads.size() ? thread_ref(task_index, index - 1)
                                                            : ThreadRef::none;
    }
    for (; count > 0; --count) {
        const auto next = next_thread(task, previous);
        if (!next.ok() || next.value() == ThreadRef::none)
            return next;
        previous = next.value();
    }
    return previous;
}

Result<std::size_t> FakeSystem::task_thread_count(Quiesced&, TaskRef task) {
    return std::size_t{tasks.at(static_cast<std::size_t>(task) - 1).facts.thread_count};
}

kern_return FakeSystem::task_facts(Quiesced&, TaskRef task, TaskFacts& out) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    if (task_facts_hook)
        task_facts_hook(task);
    const Task& found = tasks.at(static_cast<std::size_t>(task) - 1);
    out = found.facts;
    const auto first = next_thread(task, ThreadRef::none);
    if (!first.ok())
        return first.error();
    out.first_thread = first.value();
    return found.facts_result;
}

const FakeSystem::Thread& FakeSystem::thread_of(ThreadRef thread) const {
    const auto number = static_cast<std::uint64_t>(thread);
    return tasks.at((number >> 32) - 1).threads.at((number & UINT32_MAX) - 1);
}

kern_return FakeSystem::thread_facts(Quiesced&, ThreadRef thread, ThreadFacts& out) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    const Thread& found = thread_of(thread);
    out = found.facts;
    out.has_stack = found.stack_result == kcdata::KERN_SUCCESS;
    out.stack = found.stack;
    const auto number = static_cast<std::uint64_t>(thread);
    out.previous = (number & UINT32_MAX) == 1 ? ThreadRef::none : ThreadRef{number - 1};
    const auto next = next_thread(TaskRef{number >> 32}, thread);
    if (!next.ok())
        return next.error();
    out.next = next.value();
    if (found.stack_result != kcdata::KERN_SUCCESS && found.stack_result != kcdata::KERN_NOT_IN_SET)
        return found.stack_result;
    return found.facts_result;
}

bool FakeSystem::wait_facts(Quiesced&, ThreadRef thread, const BlockedThread& blocked,
                            WaitFacts& out) {
    const Thread& found = thread_of(thread);
    if (blocked != found.facts.blocked)
        throw std::logic_error("asked with what another thread says");
    if (found.wait)
        out = *found.wait;
    return found.wait.has_value();
}

void FakeSystem::port_label_facts(Quiesced&, PortLabelRef label, PortLabelFacts& out) {
    ++port_labels_read;
    const auto found = port_labels.find(label);
    out = found != port_labels.end() ? found->second : PortLabelFacts{};
}

bool FakeSystem::dispatch_queue_facts(Quiesced&, DispatchQueueRef queue, DispatchQueueFacts& out) {
    const auto found = dispatch_queues.find(queue);
    if (found == dispatch_queues.end())
        return false;
    out = found->second;
    return true;
}

bool FakeSystem::io_statistics(Quiesced&, IoStatisticsRef statistics,
                               kcdata::io_stats_snapshot& out) {
    const auto found = io.find(statistics);
    if (found == io.end())
        return false;
    out = found->second;
    return true;
}

Result<ThreadGroupRef> FakeSystem::next_thread_group(Quiesced&, ThreadGroupRef previous,
                                                     ThreadGroupFacts& out) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    const auto index = static_cast<std::size_t>(previous);
    if (index == thread_groups.size())
        return ThreadGroupRef::none;
    out = thread_groups[index];
    return ThreadGroupRef{index + 1};
}

Result<CoalitionRef> FakeSystem::next_coalition(Quiesced&, CoalitionRef previous,
                                                CoalitionFacts& out) {
    if (read_fails())
        return kcdata::KERN_FAILURE;
    const auto index = static_cast<std::size_t>(previous);
    if (index == coalitions.size())
        return CoalitionRef::none;
    out = coalitions[index];
    return CoalitionRef{index + 1};
}

std::size_t FakeSystem::donating_pids(Quiesced&, TaskRef task, std::span<std::int32_t> pids) {
    const auto& donated_to = tasks.at(static_cast<std::size_t>(task) - 1).donating_pids;
    const std::size_t count = std::min(donated_to.size(), pids.size());
    std::copy_n(donated_to.begin(), count, pids.begin());
    return count;
}

std::uint32_t FakeSystem::stack_high_water(Quiesced&, const StackFacts& stack) {
    const auto found = high_waters.find(stack.low);
    return found != high_waters.end() ? found->second : 0;
}

MemoryFacts FakeSystem::memory_facts(Quiesced&) {
    return {1000, 200, 30};
}

void FakeSystem::workers_overdue(Quiesced&, CpuMask cpus) {
    overdue_ = cpus;
    throw WorkersOverdue{};
}

void FakeSystem::spin_for_panic(Quiesced&) {
    throw PanicSpin{};
}

bool FakeSystem::read_words(Quiesced&, std::uint64_t address, std::span<std::uint64_t> words) {
    if (address % 8 != 0)
        throw std::logic_error("misaligned read");
    if (read_fails())
        return false;
    for (std::uint64_t& value : words) {
        const auto found = memory_.find(address);
        if (found == memory_.end())
            return false;
        value = found->second;
        address += 8;
    }
    return true;
}

Followed FakeSystem::follow_frame_records(Quiesced& quiesced, FrameChain& chain,
                                          std::span<std::uint64_t> return_addresses) {
    const auto load_pair = [&](std::uint64_t address, std::uint64_t& first, std::uint64_t& second) {
        std::uint64_t words[2];
        if (!read_words(quiesced, address, words))
            return false;
        first = words[0];
        second = words[1];
        return true;
    };
    return stackshot::follow_frame_records(chain, return_addresses, load_pair);
}

bool FakeSystem::interrupted_registers(Quiesced&, std::uint64_t return_address,
                                       std::uint64_t frame_pointer, Registers& registers) {
    return exception_hook && exception_hook(return_address, frame_pointer, registers);
}

std::span<const std::byte> FakeSystem::unwind_tables(std::uint64_t& address) const {
    address = unwind_table_address;
    return unwind_table;
}
