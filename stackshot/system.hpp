#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/records.hpp"
#include "kcdata/result.hpp"
#include "stackshot/frame_chain.hpp"
#include "stackshot/trace_ring.hpp"

namespace stackshot {

/// Number of a CPU, 0 to cpu_count - 1. Not an MPIDR.
using CpuIndex = std::uint32_t;
inline constexpr CpuIndex no_cpu = UINT32_MAX;
/// Largest number of CPUs the collector has per-CPU state for.
inline constexpr CpuIndex max_cpus = 64;
/// Largest number of clusters: groups of CPUs with one pool of capture memory each.
inline constexpr std::uint32_t max_clusters = 8;
/// A set of CPUs, bit n for CPU n.
using CpuMask = std::uint64_t;

/// What kind of CPUs a cluster has (XNU's cluster_type_t): all the same on a symmetric machine,
/// performance and efficiency cores on one that has both.
enum class ClusterType : std::uint8_t { SMP = 0, E = 1, P = 2 };

/// Proof that this CPU runs inside a trap: interrupts off, every other CPU stopped or marked
/// absent. Only the stop path can make one, by deriving from it. A function that takes a Quiesced&
/// takes no lock a stopped CPU may hold, allocates nothing, prints nothing, and follows no pointer
/// unchecked.
class Quiesced {
  public:
    Quiesced(const Quiesced&) = delete;
    Quiesced& operator=(const Quiesced&) = delete;
    /// The CPU this token was made for and is used on.
    CpuIndex cpu() const { return cpu_; }

  protected:
    explicit Quiesced(CpuIndex cpu) : cpu_(cpu) {}
    ~Quiesced() = default;

  private:
    CpuIndex cpu_;
};

/// Names an object of the system; its address there, never followed by the collector.
enum class TaskRef : std::uint64_t { none = 0 };
enum class ThreadRef : std::uint64_t { none = 0 };
enum class ThreadGroupRef : std::uint64_t { none = 0 };
enum class CoalitionRef : std::uint64_t { none = 0 };
enum class PortLabelRef : std::uint64_t { none = 0 };
enum class DispatchQueueRef : std::uint64_t { none = 0 };
enum class IoStatisticsRef : std::uint64_t { none = 0 };

/// What a CPU, a task or a thread has done since some time before, as far as it is counted; 0
/// otherwise.
struct CpuCounters {
    std::uint64_t cycles = 0;
    std::uint64_t instructions = 0;
};

/// What the collector records of a task. Times are in absolute time units.
struct TaskFacts {
    std::uint64_t unique_pid = 0;
    std::int32_t pid = 0;
    char name[32] = {};
    std::uint64_t ss_flags = 0;  ///< task_snapshot_flags
    bool is_kernel = false;      ///< kernel_task: carries the kernel's load information
    bool active = true;          ///< not in teardown
    std::uint64_t user_time_in_terminated_threads = 0;
    std::uint64_t system_time_in_terminated_threads = 0;
    std::uint64_t start_seconds = 0;  ///< since the epoch
    std::uint64_t start_time = 0;     ///< absolute time
    std::uint64_t task_size = 0;      ///< bytes
    std::uint64_t max_resident_size = 0;
    std::uint32_t suspend_count = 0;
    std::uint32_t faults = 0;
    std::uint32_t thread_count = 0;
    ThreadRef first_thread = ThreadRef::none;
    std::uint64_t coalition_id = 0;
    IoStatisticsRef io_statistics = IoStatisticsRef::none;  ///< none: it never did any I/O
    CpuCounters counters{};                                 ///< by its threads, on all CPUs
    CpuCounters counters_on_p_cores{};                      ///< thereof on P cores
    bool donates_importance = false;  ///< System::donating_pids() has something to say
};

/// The registers a stack walk begins with or continues from.
struct Registers {
    std::uint64_t pc = 0;
    std::uint64_t lr = 0;  ///< x30
    std::uint64_t fp = 0;  ///< x29
    std::uint64_t sp = 0;
};

/// Where a thread's stack walk starts.
struct StackFacts {
    Registers registers{};
    /// True: the PC is where an exception interrupted the thread (any instruction; the frame record
    /// may not be set up, the return address may still be in LR). False: the PC is that of a call,
    /// or the return address behind one, where the frame record of the function is complete.
    bool interrupted = false;
    /// The thread's stack, [low, high). Frame records outside of it are not followed.
    std::uint64_t low = 0, high = 0;
};

/// What a thread that waits says of it itself.
struct BlockedThread {
    std::uint64_t wait_event = 0;
    std::uint64_t turnstile = 0;  ///< address of what System::wait_facts() goes on from; 0: none
    std::uint8_t wait_type = 0;   ///< kThreadWait...

    bool operator==(const BlockedThread&) const = default;
};

/// What the collector records of a thread. Times are in absolute time units.
struct ThreadFacts {
    std::uint64_t thread_id = 0;
    std::uint64_t thread_address = 0;
    char name[64] = {};
    BlockedThread blocked{};
    std::uint64_t continuation = 0;
    std::uint64_t total_syscalls = 0;
    std::uint64_t user_time = 0;
    std::uint64_t system_time = 0;
    std::uint64_t runnable_time = 0;
    std::uint64_t last_run_time = 0;
    std::uint64_t last_made_runnable_time = 0;
    std::uint64_t ss_flags = 0;  ///< thread_snapshot_flags the kernel knows, kThreadOnCore included
    std::uint32_t state = 0;     ///< SS_TH_*
    std::uint32_t sched_flags = 0;
    std::int16_t base_priority = 0;
    std::int16_t sched_priority = 0;
    /// CPU the thread is on, or ran on last; no_cpu when it never ran.
    CpuIndex last_cpu = no_cpu;
    /// False: the thread has no kernel stack, and `stack` says nothing.
    bool has_stack = false;
    StackFacts stack{};
    std::uint64_t requested_policy = 0;  ///< thread_requested_policy of kcdata's version
    std::uint64_t effective_policy = 0;  ///< thread_effective_policy
    std::uint8_t effective_qos = 0;
    std::uint8_t requested_qos = 0;
    std::uint8_t requested_qos_override = 0;
    std::uint8_t io_tier = 0;
    std::uint64_t thread_group_id = 0;
    CpuCounters counters{};
    /// Whose work the thread does; none: of no dispatch queue.
    DispatchQueueRef dispatch_queue = DispatchQueueRef::none;
    IoStatisticsRef io_statistics = IoStatisticsRef::none;  ///< none: it never did any I/O
    /// Its neighbours in the thread list of its task, as the thread itself names them.
    ThreadRef previous = ThreadRef::none, next = ThreadRef::none;
};

/// What a blocked thread waits for, and who makes it go on: in the terms of
/// stackshot_thread_waitinfo_v2 and stackshot_thread_turnstileinfo_v2.
struct WaitFacts {
    /// The thread's id, or for a semaphore or a port the task's pid; STACKSHOT_WAITOWNER_...; 0:
    /// not known.
    std::uint64_t owner = 0;
    std::uint64_t context = 0;   ///< the object's address
    std::uint8_t wait_type = 0;  ///< kThreadWait...
    std::uint32_t wait_flags = 0;
    /// The inheritor's thread id or pid, as turnstile_flags say; 0 if they say neither.
    std::uint64_t turnstile_context = 0;
    std::uint8_t turnstile_priority = 0;
    std::uint8_t number_of_hops = 0;
    std::uint64_t turnstile_flags = 0;  ///< STACKSHOT_TURNSTILE_STATUS_...
    /// The label of the port it waits for, and of the furthest port on the way to who makes it go
    /// on.
    PortLabelRef port_label = PortLabelRef::none;
    PortLabelRef turnstile_port_label = PortLabelRef::none;
};

/// Which service a port is the way to.
struct PortLabelFacts {
    bool readable = false;    ///< false: nothing else is known
    std::uint8_t domain = 0;  ///< launchd's, where the name is known
    char name[64] = {};
};

struct DispatchQueueFacts {
    std::uint64_t serial = 0;
    char label[64] = {};
};

struct ThreadGroupFacts {
    std::uint64_t id = 0;
    std::uint64_t flags = 0;  ///< kThreadGroup...
    char name[32] = {};       ///< ends with a NUL only if it is shorter
};

struct CoalitionFacts {
    std::uint64_t id = 0;
    std::uint64_t flags = 0;            ///< kCoalition...
    std::uint64_t thread_group_id = 0;  ///< 0: none
    std::uint64_t leader_unique_pid = 0;
};

/// Conversion of absolute time to nanoseconds: t * numer / denom.
struct Timebase {
    std::uint32_t numer = 1;
    std::uint32_t denom = 1;
};

/// What boot arguments change in the collector's behaviour.
struct Tunables {
    std::size_t max_tracebuf_size = 0;  ///< bytes; 0: from the size of memory, as XNU
    std::uint32_t estimate_adj = 25;    ///< percent added to a size estimate, 0 to 100
    bool single_threaded = false;       ///< never collect in parallel
    /// Absolute time the initiator, done itself, waits for the other CPUs to finish their part.
    std::uint64_t worker_timeout = UINT64_MAX;
    /// Absolute time that interrupts may be off for a trap without being reported.
    std::uint64_t interrupts_off_limit = UINT64_MAX;
    /// Record how far each stack was ever used, which takes reading the rest of it.
    bool stack_high_water = false;
};

class PostTrapProducer;

/// Constant facts of the running system for the global records. Strings are NUL-terminated and live
/// as long as the system.
struct SystemFacts {
    const char* os_version = "";
    const char* os_build_version = "";
    const char* boot_args = "";
    std::uint32_t page_size = 0;
    std::uint64_t memory_size = 0;  ///< bytes of RAM
    Timebase timebase{};
    bool counts_cycles = false;  ///< of tasks and threads; instructions too where the CPUs do
    std::uint64_t kernel_load_address = 0;  ///< of the image as linked (unslid), goes with build_id
    std::uint8_t kernel_uuid[16] = {};      ///< first 16 bytes of the GNU build-id
    CpuIndex cpu_count = 1;                 ///< 1 to max_cpus
    std::uint32_t cluster_count = 1;        ///< 1 to max_clusters
    std::array<ClusterType, max_clusters> cluster_types{};
    /// Where the exception vectors and entry code lie, [low, high): a return address behind a call
    /// made from there continues with System::interrupted_registers.
    std::uint64_t exception_entry_low = 0, exception_entry_high = 0;
    /// What adds to a capture when the trap is over, in this order.
    std::span<PostTrapProducer* const> post_trap_producers{};
    Tunables tunables{};
};

/// The free, used and wired memory of the machine, in pages.
struct MemoryFacts {
    std::uint32_t free_pages = 0;
    std::uint32_t active_pages = 0;
    std::uint32_t wired_pages = 0;
};

/// What a capture does on each CPU while the world is stopped. Implemented by the collector.
class TrapBody {
  public:
    /// On every CPU that stops, the caller included, interrupts off, before it acknowledges the
    /// stop; other CPUs may still run. Must only touch per-CPU state and atomics. It does not bind:
    /// a CPU whose acknowledgement comes too late is absent all the same.
    virtual void cpu_preflight(CpuIndex cpu) = 0;
    /// On the CPU that called trap(), once every other CPU has acknowledged or is absent.
    virtual void initiator(Quiesced& quiesced) = 0;
    /// Exactly once on every other CPU that acknowledged in time, that is, on every CPU that
    /// preflighted and is not in System::absent_cpus; may start before initiator() does, which
    /// waits for all of them.
    virtual void auxiliary(Quiesced& quiesced) = 0;

    // A body in which CPUs wait for each other has these two: no CPU that waits in it is stopped by
    // a panic but by leaving it.
    /// On every CPU that panics while the body is in a trap, wherever the CPU is: ends the body for
    /// good, and this CPU's part in it now. The others leave it soon, for System::spin_for_panic.
    virtual void panic(CpuIndex) {}
    /// CPUs that have not left it after a panic, and may yet do so.
    virtual CpuMask working() const { return 0; }

  protected:
    ~TrapBody() = default;
};

/// Another body, for one that does something besides. `body` outlives it.
class ForwardingBody : public TrapBody {
  public:
    explicit ForwardingBody(TrapBody& body) : body_(body) {}
    void cpu_preflight(CpuIndex cpu) override { body_.cpu_preflight(cpu); }
    void initiator(Quiesced& quiesced) override { body_.initiator(quiesced); }
    void auxiliary(Quiesced& quiesced) override { body_.auxiliary(quiesced); }
    void panic(CpuIndex cpu) override { body_.panic(cpu); }
    CpuMask working() const override { return body_.working(); }

  protected:
    ~ForwardingBody() = default;

  private:
    TrapBody& body_;
};

/// What a trap did.
struct TrapOutcome {
    CpuMask stopped = 0;               ///< CPUs that took part, the caller included
    CpuMask absent = 0;                ///< CPUs that did not answer within the ack timeout
    std::uint64_t interrupts_off = 0;  ///< absolute time from interrupts off to on again
};

/// What the collector needs of a kernel: the narrow waist. The kernel implements it once, on real
/// memory; tests implement it with host threads as CPUs and hostile data.
///
/// Functions that take a Quiesced& are called inside a trap, on several CPUs at once. They read
/// kernel memory only through checked reads and answer KERN_FAILURE where a list or object is
/// corrupt.
class System {
  public:
    // Any thread context, interrupts on.
    virtual const SystemFacts& facts() const = 0;
    /// Numbers to size a capture by; they may change before the trap.
    virtual std::size_t task_count() = 0;
    virtual std::size_t thread_count() = 0;
    /// Zeroed memory, page aligned; empty when there is none. May block.
    virtual std::span<std::byte> allocate(std::size_t size) = 0;
    /// Frees what allocate() returned, or a page-aligned tail of it.
    virtual void free(std::span<std::byte> memory) = 0;
    /// Makes ready what reads inside the next trap need memory for, as XNU's look into compressed
    /// pages does. May block. KERN_RESOURCE_SHORTAGE: there is none. Every success is followed by
    /// one release_scratch(), after the trap if there was one.
    virtual kcdata::kern_return prepare_scratch() { return kcdata::KERN_SUCCESS; }
    virtual void release_scratch() {}
    /// The lock that serializes ordinary captures. try_lock: false when it is held.
    virtual void lock() = 0;
    virtual bool try_lock() = 0;
    virtual void unlock() = 0;

    /// Stops the world, runs `body` on all CPUs, resumes. Thread context, interrupts on; the
    /// calling thread's stack is walked from its call of this function.
    virtual TrapOutcome trap(TrapBody& body) = 0;

    // Any context.
    virtual std::uint64_t absolute_time() const = 0;
    virtual std::uint64_t microseconds_since_epoch() const = 0;
    /// Less than SystemFacts::cluster_count.
    virtual std::uint32_t cluster_of(CpuIndex cpu) const = 0;
    /// One turn of a spin loop: waits for signal_event() on any CPU, or just relaxes. A
    /// signal_event() since the last turn ends the wait at once; without one it ends after a while.
    virtual void wait_for_event() = 0;
    /// Ends the wait_for_event() of all CPUs; what this CPU wrote before is visible to them then.
    virtual void signal_event() = 0;

    /// Adds an entry to this CPU's trace, from the caller's line unless another one is given.
    virtual void trace(TraceEvent event, std::uint64_t word, const char* file = __builtin_FILE(),
                       std::uint32_t line = __builtin_LINE()) = 0;

    // Inside a trap.
    /// This CPU's.
    virtual CpuCounters counters(Quiesced&) = 0;
    /// The task behind `previous` in the kernel's task list (TaskRef::none: the first one), which
    /// the list of terminated tasks follows; TaskRef::none at the end. KERN_FAILURE: the list is
    /// corrupt.
    virtual kcdata::Result<TaskRef> next_task(Quiesced&, TaskRef previous) = 0;
    /// The thread `count` places behind `previous` in the list of `task` (behind ThreadRef::none:
    /// the `count`-th), to divide the list there; ThreadRef::none if it ends before. Takes the list
    /// for right, for speed: whoever records the threads in between checks that they lead there.
    virtual kcdata::Result<ThreadRef> skip_threads(Quiesced&, TaskRef task, ThreadRef previous,
                                                   std::size_t count) = 0;
    /// How many threads the task has by its own account, which the list need not bear out.
    virtual kcdata::Result<std::size_t> task_thread_count(Quiesced&, TaskRef task) = 0;
    /// Writes every member of `facts`. KERN_FAILURE: the task cannot be read.
    virtual kcdata::kern_return task_facts(Quiesced&, TaskRef task, TaskFacts& facts) = 0;
    /// Writes every member of `facts`. KERN_FAILURE: the thread cannot be read. That its neighbours
    /// agree on being such is for the caller to check.
    virtual kcdata::kern_return thread_facts(Quiesced&, ThreadRef thread, ThreadFacts& facts) = 0;
    /// Writes every member of `facts`, if the thread, of which `blocked` was read, waits for
    /// something that the format has a type for; false if it does not. What is in the middle of a
    /// change, or cannot be read, is told as such.
    virtual bool wait_facts(Quiesced&, ThreadRef thread, const BlockedThread& blocked,
                            WaitFacts& facts) = 0;
    /// Writes every member of `facts`. A label that cannot be read is told as such.
    virtual void port_label_facts(Quiesced&, PortLabelRef label, PortLabelFacts& facts) = 0;
    /// False: it cannot be read.
    virtual bool dispatch_queue_facts(Quiesced&, DispatchQueueRef queue,
                                      DispatchQueueFacts& facts) = 0;
    virtual bool io_statistics(Quiesced&, IoStatisticsRef statistics,
                               kcdata::io_stats_snapshot& snapshot) = 0;
    /// The thread group behind `previous` (ThreadGroupRef::none: the first one) and its facts;
    /// ThreadGroupRef::none at the end. KERN_FAILURE: the list is corrupt.
    virtual kcdata::Result<ThreadGroupRef> next_thread_group(Quiesced&, ThreadGroupRef previous,
                                                             ThreadGroupFacts& facts) = 0;
    /// The same for coalitions.
    virtual kcdata::Result<CoalitionRef> next_coalition(Quiesced&, CoalitionRef previous,
                                                        CoalitionFacts& facts) = 0;
    /// The pids of tasks that `task` donates importance to, each once, as many as there is room
    /// for. How many it wrote.
    virtual std::size_t donating_pids(Quiesced&, TaskRef task, std::span<std::int32_t> pids) = 0;
    /// Bytes of the stack that were ever used; 0: not known.
    virtual std::uint32_t stack_high_water(Quiesced&, const StackFacts& stack) = 0;
    virtual MemoryFacts memory_facts(Quiesced&) = 0;
    /// CPUs that did not answer the stop of this trap.
    virtual CpuMask absent_cpus(Quiesced&) = 0;
    /// `cpus` have not finished their part of a collection within Tunables::worker_timeout: a bug
    /// of the collector or a CPU that died in it. On the initiator. They write into the
    /// collection's memory, and can neither be waited for nor left behind: nothing is left but to
    /// panic.
    [[noreturn]] virtual void workers_overdue(Quiesced&, CpuMask cpus) = 0;
    /// Another CPU panicked during the collection, and this one has left it: stays here for good,
    /// to be stopped by the panic.
    [[noreturn]] virtual void spin_for_panic(Quiesced&) = 0;
    /// Reads `words.size()` words of kernel memory from the 8-byte aligned `address` without
    /// faulting; false if any of them is unreadable.
    virtual bool read_words(Quiesced&, std::uint64_t address, std::span<std::uint64_t> words) = 0;
    /// stackshot::follow_frame_records() with reads that do not fault.
    virtual Followed follow_frame_records(Quiesced&, FrameChain& chain,
                                          std::span<std::uint64_t> return_addresses) = 0;
    /// `return_address` lies in the exception entry code (SystemFacts::exception_entry_low), and
    /// x29 was `frame_pointer` there when it made that call: the registers the exception
    /// interrupted. False if they cannot be read, or if that code entered no exception.
    virtual bool interrupted_registers(Quiesced&, std::uint64_t return_address,
                                       std::uint64_t frame_pointer, Registers& registers) = 0;
    /// The image's .eh_frame_hdr and .eh_frame as one contiguous span starting at .eh_frame_hdr,
    /// and the address it is linked at; empty when the image has none.
    virtual std::span<const std::byte> unwind_tables(std::uint64_t& address) const = 0;

  protected:
    ~System() = default;
};

/// Notes `error` in the trace, as the caller's line, and hands it on.
inline kcdata::kern_return traced(System& system, kcdata::kern_return error,
                                  const char* file = __builtin_FILE(),
                                  std::uint32_t line = __builtin_LINE()) {
    system.trace(TraceEvent::error, static_cast<std::uint64_t>(error), file, line);
    return error;
}

}  // namespace stackshot
