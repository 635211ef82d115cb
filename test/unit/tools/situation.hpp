#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "captures.hpp"
#include "kcdata/records.hpp"
#include "tools/analyze.hpp"
#include "tools/snapshot.hpp"
#include "tools/wait_graph.hpp"

namespace tools_test {

/// Tasks and threads that wait for each other, to be put into a capture.
class Situation {
  public:
    struct Thread {
        std::uint64_t id;
        std::string name{};
        std::uint32_t state = kcdata::SS_TH_WAIT;
        std::int16_t base_priority = 31;
        std::int16_t sched_priority = 31;
        std::uint64_t ss_flags = 0;
        int cpu = -1;
        std::uint64_t wait_event = 0;
        /// Only an element of the task's delta array.
        bool unchanged = false;
    };
    struct Label {
        std::int16_t id;
        std::string name;
        std::uint16_t flags = 0;
    };

    /// What follows goes to this task.
    Situation& task(std::int32_t pid, const std::string& name, std::uint64_t ss_flags = 0);
    Situation& thread(Thread thread);
    /// A thread that runs on CPU `cpu`.
    Situation& running(std::uint64_t id, int cpu = 0);
    /// A thread waits.
    Situation& waits(std::uint64_t id, std::uint8_t type, std::uint64_t owner,
                     std::uint64_t context, std::int16_t label = 0, std::uint32_t flags = 0);
    Situation& wait_info(std::uint64_t id, std::uint8_t type, std::uint64_t owner,
                         std::uint64_t context, std::int16_t label = 0, std::uint32_t flags = 0);
    Situation& turnstile(std::uint64_t id, std::uint64_t flags, std::uint64_t context,
                         std::uint8_t hops = 1, std::int16_t label = 0);
    Situation& label(Label label);
    /// The records that older releases write, without labels and flags.
    Situation& version_1();

    /// As a whole capture.
    Bytes bytes() const;

  private:
    struct Task {
        std::int32_t pid;
        std::string name;
        std::uint64_t ss_flags;
        std::vector<Thread> threads{};
        std::vector<kcdata::stackshot_thread_waitinfo_v2> wait_infos{};
        std::vector<kcdata::stackshot_thread_turnstileinfo_v2> turnstile_infos{};
        std::vector<Label> labels{};
    };
    std::vector<Task> tasks_{};
    bool version_1_ = false;
};

/// A capture from the bytes to the diagnosis.
struct Analyzed {
    explicit Analyzed(std::span<const std::byte> bytes)
        : snapshot(tools::read_snapshot(bytes)),
          graph(tools::make_wait_graph(snapshot)),
          diagnosis(tools::diagnose(graph)) {}
    explicit Analyzed(const Situation& situation) : Analyzed(situation.bytes()) {}
    Analyzed(const Analyzed&) = delete;
    Analyzed& operator=(const Analyzed&) = delete;

    using Ids = std::vector<std::uint64_t>;
    Ids ids(const std::vector<std::size_t>& threads) const;
    /// The ids of the threads of each deadlock, in order.
    std::vector<Ids> deadlocks() const;
    /// The wait of the thread with that id.
    const tools::WaitGraph::Wait& wait(std::uint64_t id) const;

    tools::Snapshot snapshot;
    tools::WaitGraph graph;
    tools::Diagnosis diagnosis;
};

}  // namespace tools_test
