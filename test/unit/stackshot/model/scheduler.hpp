#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

/// Runs the concurrent parts of the collector under control: CPUs are fibers, one of which runs at
/// a time, and each access to what they share is a point where another may go on instead. What is
/// drawn by lot follows from a seed, so that a schedule can be run again.
namespace model {

inline constexpr unsigned max_cpus = 16;
/// CPUs, and whatever runs before and after them.
inline constexpr unsigned max_agents = max_cpus + 1;
inline constexpr unsigned outside = max_cpus;

/// What an agent knows of the others: for each, how many of its accesses happened before.
using VectorClock = std::array<std::uint32_t, max_agents>;

/// Thrown out of the point where a CPU is to panic; see Scheduler::panic_at.
struct PanicHere {};

class Scheduler {
  public:
    enum class Order : std::uint8_t {
        random,        ///< by lot, in different manners
        virtual_time,  ///< the CPU that is behind goes on: see spend()
    };

    Scheduler(std::uint64_t seed, unsigned cpus, Order order = Order::random);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Runs `body` on every CPU until all have returned. What went wrong, if anything did. Once.
    const std::string& run(std::function<void(unsigned cpu)> body);

    /// The scheduler that runs CPUs right now; nullptr outside of run().
    static Scheduler* active() { return active_; }

    // On a CPU, inside run().
    unsigned self() const { return self_; }
    /// Any CPU may go on here.
    void yield();
    /// Until another CPU signals, or did so since the last wait. That all CPUs wait is a hang.
    void wait();
    void signal();
    /// Ends the run: this went wrong. The first one counts.
    [[noreturn]] void fail(const std::string& what);
    /// Order::virtual_time: the CPU works for so long.
    void spend(std::uint64_t time);
    std::uint64_t time(unsigned cpu) const;
    /// Time a CPU has worked, not waited.
    std::uint64_t worked(unsigned cpu) const;

    /// The `count`-th yield of `cpu` throws PanicHere. Before run().
    void panic_at(unsigned cpu, std::uint64_t count);
    /// Less than `limit`, which is not 0.
    std::uint32_t draw(std::uint32_t limit);
    bool order_is_random() const { return order_ == Order::random; }
    /// What was drawn and which CPUs went on, in order, as one number.
    std::uint64_t digest() const { return digest_; }

    // What memory.hpp needs.
    VectorClock& clock() { return clocks_[self_]; }
    /// Counts one more access of this CPU.
    std::uint32_t tick() { return ++clocks_[self_][self_]; }
    std::uint64_t next_serial() { return ++serial_; }
    /// Stores of `writer` up to this serial number are visible to this CPU, as that CPU signalled.
    std::uint64_t seen_by_signal(unsigned writer) const;
    std::uint64_t run_number() const { return run_number_; }

  private:
    struct Stack;
    struct Fiber;
    enum class State : std::uint8_t { ready, waiting, ended };
    struct Aborted {};

    void note(std::uint64_t step);
    void enter(unsigned cpu);
    static void fiber_main(unsigned high, unsigned low);
    void switch_away();
    void switch_to(unsigned cpu);
    unsigned choose();

    static thread_local Scheduler* active_;

    Order order_;
    unsigned cpus_;
    unsigned self_ = outside;
    std::uint64_t run_number_;
    std::mt19937_64 random_;
    std::uint64_t digest_ = 0;
    std::uint32_t switch_chance_ = 100;  ///< percent
    bool by_priority_ = false;
    std::uint64_t steps_ = 0;
    std::uint64_t serial_ = 0;
    std::function<void(unsigned)> body_{};
    std::array<VectorClock, max_agents> clocks_{};
    std::array<std::unique_ptr<Fiber>, max_agents> fibers_;
    std::string failure_{};
    bool aborting_ = false;
};

}  // namespace model
