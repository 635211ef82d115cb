#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "test/unit/stackshot/model/scheduler.hpp"

/// Memory that is as weak as the C++ memory model lets it be. Stands in for std::atomic, and for
/// plain data that is handed from CPU to CPU.
///
/// An atomic keeps what was stored in it. A load draws by lot which value it reads, of those that
/// coherence and what happened before leave it to read; what a release store knew is known to who
/// reads it by an acquire load. Read-modify-writes read the last value, and continue a release
/// sequence. Plain data has one value; an access that is not ordered behind the last write, or a
/// write that is not ordered behind the last reads, is a data race and ends the schedule.
///
/// Outside of a run all is as usual, and before it begins all is known to all.
namespace model {

/// The history of an atomic.
class Location {
  public:
    explicit Location(std::uint64_t value) : latest_(value) {}

    std::uint64_t load(std::memory_order order) const {
        Scheduler* scheduler = enter();
        if (scheduler == nullptr)
            return latest_;
        return read(*scheduler, choose(*scheduler, order), order);
    }

    void store(std::uint64_t value, std::memory_order order) {
        Scheduler* scheduler = enter();
        latest_ = value;
        if (scheduler != nullptr)
            append(*scheduler, value, order, false);
    }

    /// Reads the last value and stores what `change` makes of it; the value read.
    template <typename Change>
    std::uint64_t update(std::memory_order order, Change change) {
        Scheduler* scheduler = enter();
        const std::uint64_t before = latest_;
        if (scheduler != nullptr)
            read(*scheduler, history_.size() - 1, order);
        latest_ = change(before);
        if (scheduler != nullptr)
            append(*scheduler, latest_, order, true);
        return before;
    }

    bool compare_exchange(std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                          std::memory_order failure, bool weak) {
        Scheduler* scheduler = enter();
        if (scheduler == nullptr) {
            if (latest_ == expected) {
                latest_ = desired;
                return true;
            }
            expected = latest_;
            return false;
        }
        const std::size_t index = choose(*scheduler, failure);
        const bool spurious = weak && scheduler->order_is_random() && scheduler->draw(16) == 0;
        if (spurious || history_[index].value != expected) {
            expected = read(*scheduler, index, failure);
            return false;
        }
        const std::size_t last = history_.size() - 1;
        if (latest_ != expected) {
            expected = read(*scheduler, last, failure);
            return false;
        }
        read(*scheduler, last, success);
        latest_ = desired;
        append(*scheduler, desired, success, true);
        return true;
    }

  private:
    struct Message {
        std::uint64_t value = 0;
        unsigned writer = outside;
        std::uint32_t time = 0;    ///< in the writer's clock
        std::uint64_t serial = 0;  ///< among all stores of the run
        bool released = false;
        bool sequential = false;
        VectorClock known{};  ///< if released: what who reads it by an acquire knows then
    };

    static bool acquires(std::memory_order order) {
        return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
               order == std::memory_order_seq_cst;
    }
    static bool releases(std::memory_order order) {
        return order == std::memory_order_release || order == std::memory_order_acq_rel ||
               order == std::memory_order_seq_cst;
    }

    Scheduler* enter() const {
        Scheduler* scheduler = Scheduler::active();
        if (scheduler == nullptr)
            return nullptr;
        if (run_ != scheduler->run_number()) {
            run_ = scheduler->run_number();
            history_.assign(1, Message{.value = latest_});
            seen_ = {};
            dropped_ = 0;
        }
        scheduler->yield();
        return scheduler;
    }

    /// The message a load reads.
    std::size_t choose(Scheduler& scheduler, std::memory_order order) const {
        const std::size_t last = history_.size() - 1;
        if (!scheduler.order_is_random())
            return last;
        const VectorClock& clock = scheduler.clock();
        const std::uint64_t seen = seen_[scheduler.self()];
        std::size_t first = seen > dropped_ ? static_cast<std::size_t>(seen - dropped_) : 0;
        for (std::size_t index = last; index > first; --index) {
            const Message& message = history_[index];
            if (message.time <= clock[message.writer] ||
                message.serial <= scheduler.seen_by_signal(message.writer) ||
                (order == std::memory_order_seq_cst && message.sequential))
                first = index;
        }
        // A value does not stay out of sight for ever.
        if (first == last || scheduler.draw(100) < 60)
            return last;
        return first + scheduler.draw(static_cast<std::uint32_t>(last - first + 1));
    }

    std::uint64_t read(Scheduler& scheduler, std::size_t index, std::memory_order order) const {
        const Message& message = history_[index];
        scheduler.tick();
        seen_[scheduler.self()] = dropped_ + index;
        if (message.released && acquires(order)) {
            VectorClock& clock = scheduler.clock();
            for (unsigned agent = 0; agent < max_agents; ++agent)
                clock[agent] = std::max(clock[agent], message.known[agent]);
        }
        return message.value;
    }

    void append(Scheduler& scheduler, std::uint64_t value, std::memory_order order, bool update) {
        Message message{.value = value, .writer = scheduler.self(), .time = scheduler.tick()};
        message.serial = scheduler.next_serial();
        message.sequential = order == std::memory_order_seq_cst;
        if (update && history_.back().released) {
            message.released = true;
            message.known = history_.back().known;
        }
        if (releases(order)) {
            message.released = true;
            for (unsigned agent = 0; agent < max_agents; ++agent)
                message.known[agent] = std::max(message.known[agent], scheduler.clock()[agent]);
        }
        if (history_.size() == longest_history) {
            history_.erase(history_.begin());
            ++dropped_;
        }
        history_.push_back(message);
        seen_[scheduler.self()] = dropped_ + history_.size() - 1;
    }

    static constexpr std::size_t longest_history = 8;

    std::uint64_t latest_;
    mutable std::uint64_t run_ = 0;
    mutable std::vector<Message> history_{};
    /// The newest message each agent has read or written, counted from the run's first one.
    mutable std::array<std::uint64_t, max_agents> seen_{};
    mutable std::uint64_t dropped_ = 0;
};

template <typename T>
class Atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

  public:
    Atomic() : Atomic(T{}) {}
    Atomic(T value) : location_(word(value)) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order order = std::memory_order_seq_cst) const {
        return value(location_.load(order));
    }
    void store(T to, std::memory_order order = std::memory_order_seq_cst) {
        location_.store(word(to), order);
    }
    T exchange(T to, std::memory_order order = std::memory_order_seq_cst) {
        return value(location_.update(order, [to](std::uint64_t) { return word(to); }));
    }
    T fetch_add(T number, std::memory_order order = std::memory_order_seq_cst) {
        return value(location_.update(order, [number](std::uint64_t old) {
            return word(static_cast<T>(value(old) + number));
        }));
    }
    T fetch_or(T bits, std::memory_order order = std::memory_order_seq_cst) {
        return value(location_.update(
            order, [bits](std::uint64_t old) { return word(static_cast<T>(value(old) | bits)); }));
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                                 std::memory_order failure) {
        return exchange_if(expected, desired, success, failure, false);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                               std::memory_order failure) {
        return exchange_if(expected, desired, success, failure, true);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order order) {
        return exchange_if(expected, desired, order,
                           order == std::memory_order_acq_rel   ? std::memory_order_acquire
                           : order == std::memory_order_release ? std::memory_order_relaxed
                                                                : order,
                           true);
    }

  private:
    static std::uint64_t word(T value) {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof(value));
        return word;
    }
    static T value(std::uint64_t word) {
        T value;
        std::memcpy(&value, &word, sizeof(value));
        return value;
    }
    bool exchange_if(T& expected, T desired, std::memory_order success, std::memory_order failure,
                     bool weak) {
        std::uint64_t found = word(expected);
        const bool done = location_.compare_exchange(found, word(desired), success, failure, weak);
        expected = value(found);
        return done;
    }

    Location location_;
};

/// A plain T whose accesses are watched. As it may lie in memory that nobody destroys objects in,
/// it owns nothing.
template <typename T>
class Published {
  public:
    Published() : Published(T{}) {}
    Published(const T& value) : value_(value) { note_write(true); }
    Published(const Published& other) : Published(static_cast<T>(other)) {}
    Published& operator=(const Published& other) { return *this = static_cast<T>(other); }
    Published& operator=(const T& value) {
        note_write(false);
        value_ = value;
        return *this;
    }
    operator T() const {
        note_read();
        return value_;
    }

  private:
    void note_read() const {
        Scheduler* scheduler = enter();
        if (scheduler == nullptr)
            return;
        if (written_ > scheduler->clock()[writer_])
            scheduler->fail("data race: what is read was written without order");
        read_[scheduler->self()] = scheduler->tick();
    }
    void note_write(bool created) {
        Scheduler* scheduler = enter();
        if (scheduler == nullptr)
            return;
        if (!created) {
            if (written_ > scheduler->clock()[writer_])
                scheduler->fail("data race: what is written was written without order");
            for (unsigned agent = 0; agent < max_agents; ++agent)
                if (read_[agent] > scheduler->clock()[agent])
                    scheduler->fail("data race: what is written was read without order");
        }
        writer_ = scheduler->self();
        written_ = scheduler->tick();
        read_ = {};
    }
    Scheduler* enter() const {
        Scheduler* scheduler = Scheduler::active();
        if (scheduler != nullptr && run_ != scheduler->run_number()) {
            run_ = scheduler->run_number();
            writer_ = outside;
            written_ = 0;
            read_ = {};
        }
        return scheduler;
    }

    T value_;
    mutable std::uint64_t run_ = 0;
    mutable unsigned writer_ = outside;
    mutable std::uint32_t written_ = 0;
    mutable std::array<std::uint32_t, max_agents> read_{};
};

}  // namespace model
