#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kcdata/result.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"

/// Something to take a stackshot of: tasks whose threads compute, wait and come and go.
namespace kernel {

/// Starts the workload the boot arguments name:
///
///     workload=daemons|fleet|kinds|churn|storm|services|idle
///     workload=deadlock2|deadlock-ring|priority-inversion|port-cycle|lock-convoy|reader-starvation
///             |lost-wakeup|runaway|deep-recursion        scenes (scene.hpp)
///     tasks=N threads=N depth=N      how much of it, where it has a say (see each)
///     seed=N                         what is drawn is drawn from; the time if it is not given
///
/// A name that is not one of them is complained of with the list.
///
/// Thread context. Once.
void start_workload(BootArguments& arguments);

/// Starts a further workload while the system runs. `request`: its name, then tasks=, threads=,
/// depth= and seed= as the boot arguments have them. Thread context, one thread at a time.
///
/// KERN_INVALID_NAME: no such workload. KERN_INVALID_ARGUMENT: an argument is not known or out of
/// range; the console tells which. KERN_ALREADY_IN_SET: it, or one that it shares objects with,
/// has been started, and cannot be a second time. KERN_RESOURCE_SHORTAGE: it would take more than
/// half of the memory that is free.
kcdata::kern_return run_workload(std::string_view request);
/// Stops a workload, all of its instances, and waits until its threads have ended. As
/// run_workload().
///
/// KERN_INVALID_NAME: no such workload. KERN_NOT_IN_SET: it does not run. KERN_NOT_SUPPORTED: it
/// stays for good, as its threads wait for each other. KERN_OPERATION_TIMED_OUT: its threads have
/// been told to end, but some have not yet.
kcdata::kern_return stop_workload(std::string_view name);

namespace workload {

/// How much, 0 where the boot arguments do not say, and the seed.
struct Size {
    std::uint32_t tasks = 0;
    std::uint32_t threads = 0;
    std::uint32_t depth = 0;
    std::uint64_t seed = 0;  ///< never 0
};

// Each in a file of its own name. They panic when memory runs out while they start.
void start_daemons(const Size& size);
void start_fleet(const Size& size);
void start_kinds(const Size& size);
void start_churn(const Size& size);
void start_storm(const Size& size);
void start_services(const Size& size);

/// Ends what start_fleet() has started. KERN_NOT_IN_SET: nothing. KERN_OPERATION_TIMED_OUT: it
/// takes longer than it should.
kcdata::kern_return stop_fleet();

/// Frames a recursion may be deep on a kernel stack (16 KiB). With frames of up to 112 bytes some
/// 5 KiB stay free: for the outermost frames, and for an interrupt, whose frame and collector take
/// about 3.3 KB of the stack they find.
inline constexpr std::uint32_t max_depth = 100;

/// A new task; panics if there is no memory.
Task& make_task(const char* name, std::uint64_t flags = 0, Coalition* coalition = nullptr);
/// A new thread that runs; panics if there is no memory. The name is formatted as printf does.
[[gnu::format(printf, 5, 6)]] Thread& make_thread(Task& task, ThreadEntry entry, void* argument,
                                                  ThreadOptions options, const char* name, ...);

/// A sequence of numbers that looks random (xorshift64*). One thread at a time.
class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
    std::uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1d;
    }
    /// 0 to count - 1.
    std::uint64_t below(std::uint64_t count) { return next() % count; }

  private:
    std::uint64_t state_;
};

/// Computes for about `microseconds`. Returns something that depends on all of it.
std::uint64_t compute(std::uint64_t microseconds, std::uint64_t seed);

}  // namespace workload
}  // namespace kernel
