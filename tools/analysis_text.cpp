#include "tools/analysis_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>

#include "tools/append.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

using Blocker = WaitGraph::Blocker;
using Unknown = WaitGraph::Unknown;

/// Of what there may be any number, so many are shown.
constexpr std::size_t shown = 20;
constexpr std::size_t shown_ids = 12;

std::string plural(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class Text {
  public:
    Text(const WaitGraph& graph, const Diagnosis& diagnosis)
        : graph_(graph), diagnosis_(diagnosis) {}

    std::string run() {
        deadlocks();
        open_cycles();
        heads();
        inversions();
        unknowns();
        return std::move(out_);
    }

  private:
    template <typename... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        append(out_, format, std::forward<Arguments>(arguments)...);
    }

    /// Calls show(element) for as many as are shown, and counts the rest.
    template <typename Elements, typename Show>
    void each(const Elements& elements, Show show) {
        const std::size_t count = std::min(elements.size(), shown);
        for (const auto& element : std::span(elements).first(count))
            show(element);
        if (count < elements.size())
            print("  ... and {} more\n", elements.size() - count);
    }

    void deadlocks() {
        for (const Diagnosis::Deadlock& deadlock : diagnosis_.deadlocks) {
            print("{}\n", deadlock_heading(deadlock));
            for (const std::string& line : deadlock_lines(graph_, deadlock))
                print("  {}\n", line);
            print("\n");
        }
        if (diagnosis_.deadlocks.empty())
            print("{}\n\n", graph_.no_wait_infos
                                ? "Nothing is known of deadlocks: the capture has no wait infos."
                                : "No deadlock.");
    }

    void open_cycles() {
        if (diagnosis_.open_cycles.empty())
            return;
        print("Cycles that may yet be broken\n");
        each(diagnosis_.open_cycles, [this](const Diagnosis::OpenCycle& cycle) {
            for (const std::size_t thread : cycle.threads)
                print("  {} {}\n", thread_text(graph_, thread),
                      wait_text(graph_, *graph_.wait_of(thread)));
            print("      {}\n", cycle.may_act.empty()
                                    ? "parts of the capture are lost: other threads may act"
                                    : "others may act: " + ids(cycle.may_act));
        });
        print("\n");
    }

    void heads() {
        if (diagnosis_.heads.empty())
            return;
        print("Heads of chains\n");
        each(diagnosis_.heads, [this](const Diagnosis::Head& head) {
            print("  {} behind {}\n", plural(head.behind, "thread"), head_text(head));
            std::map<std::string, std::vector<std::size_t>> by_object;
            for (const std::size_t thread : head.direct) {
                const std::size_t object = graph_.wait_of(thread)->object;
                by_object[object == WaitGraph::none ? std::string("it")
                                                    : object_text(graph_, object)]
                    .push_back(thread);
            }
            for (const auto& [object, threads] : by_object)
                print("      for {}: {}\n", object, ids(threads));
            if (head.behind > head.direct.size())
                print("      behind those: {} more\n", head.behind - head.direct.size());
        });
        print("\n");
    }

    std::string head_text(const Diagnosis::Head& head) const {
        switch (head.kind) {
            case Diagnosis::Head::Kind::thread: {
                std::string text = thread_text(graph_, head.index);
                if (graph_.threads[head.index].snapshot != nullptr)
                    text += ", which " + activity_text(graph_, head.index);
                return text;
            }
            case Diagnosis::Head::Kind::task: {
                const WaitGraph::Task& task = graph_.tasks[head.index];
                return task_text(graph_, head.index) +
                       (task.snapshot != nullptr
                            ? ", any of whose " + plural(task.threads.size(), "thread") + " may act"
                            : "");
            }
            case Diagnosis::Head::Kind::work_queue:
                break;
        }
        return fmt::format("work queue {:#x}", graph_.work_queues[head.index].address);
    }

    /// "threads 3, 4 and 10 more"
    std::string ids(const std::vector<std::size_t>& threads) const {
        std::string text = threads.size() == 1 ? "thread" : "threads";
        for (std::size_t i = 0; i < std::min(threads.size(), shown_ids); ++i)
            text += fmt::format("{} {}", i == 0 ? "" : ",", graph_.threads[threads[i]].id);
        if (threads.size() > shown_ids)
            text += fmt::format(" and {} more", threads.size() - shown_ids);
        return text;
    }

    void inversions() {
        if (diagnosis_.inversions.empty())
            return;
        print("Priority inversions\n");
        each(diagnosis_.inversions, [this](const Diagnosis::Inversion& inversion) {
            const ThreadSnapshot& owner = *graph_.threads[inversion.owner].snapshot;
            const ThreadSnapshot& waiter = *graph_.threads[inversion.waiter].snapshot;
            print("  {}, base priority {}, waits {}behind {}, base priority {}, {}: it {}\n",
                  thread_text(graph_, inversion.waiter), *waiter.base_priority,
                  inversion.direct ? "directly " : "", thread_text(graph_, inversion.owner),
                  *owner.base_priority, boost_text(inversion, owner),
                  inversion.runnable ? "is RUNNABLE, BUT NOT RUNNING"
                                     : activity_text(graph_, inversion.owner));
        });
        print("\n");
    }

    static std::string boost_text(const Diagnosis::Inversion& inversion,
                                  const ThreadSnapshot& owner) {
        switch (inversion.boost) {
            case Diagnosis::Inversion::Boost::none:
                return "not boosted";
            case Diagnosis::Inversion::Boost::partial:
                return fmt::format("boosted to {} only", *owner.sched_priority);
            case Diagnosis::Inversion::Boost::full:
                return fmt::format("boosted to {}", *owner.sched_priority);
            case Diagnosis::Inversion::Boost::unknown:
                break;
        }
        return "boost unknown";
    }

    void unknowns() {
        const std::vector<std::string> lines = unknown_lines(graph_);
        if (lines.empty())
            return;
        print("What could not be known\n");
        each(lines, [this](const std::string& line) { print("  {}\n", line); });
        print("\n");
    }

    const WaitGraph& graph_;
    const Diagnosis& diagnosis_;
    std::string out_{};
};

}  // namespace

std::string analysis_text(const WaitGraph& graph, const Diagnosis& diagnosis) {
    return Text(graph, diagnosis).run();
}

std::string deadlock_heading(const Diagnosis::Deadlock& deadlock) {
    std::string text =
        deadlock.threads.size() == 1
            ? std::string("DEADLOCK: a thread waits for itself")
            : fmt::format("DEADLOCK: {} threads wait for each other", deadlock.threads.size());
    if (deadlock.behind != 0)
        text += fmt::format("; {} more behind {}", deadlock.behind,
                            deadlock.threads.size() == 1 ? "it" : "them");
    return text;
}

std::vector<std::string> deadlock_lines(const WaitGraph& graph,
                                        const Diagnosis::Deadlock& deadlock) {
    std::vector<std::string> lines;
    for (const std::size_t thread : deadlock.threads)
        lines.push_back(
            fmt::format("{} {}", thread_text(graph, thread), activity_text(graph, thread)));
    return lines;
}

std::vector<std::string> unknown_lines(const WaitGraph& graph) {
    std::vector<std::string> lines;
    if (!graph.complete)
        lines.push_back("the capture is damaged: threads and waits may be missing");
    if (graph.no_wait_infos)
        lines.push_back(
            "no wait infos: they were not asked for (STACKSHOT_THREAD_WAITINFO), or no waiting "
            "thread told what it waits for");
    lines.insert(lines.end(), graph.contradictions.begin(), graph.contradictions.end());
    for (const WaitGraph::Wait& wait : graph.waits) {
        const bool lost_blocker =
            (wait.blocker == Blocker::thread &&
             graph.threads[wait.blocked_by].snapshot == nullptr) ||
            (wait.blocker == Blocker::task && graph.tasks[wait.blocked_by].snapshot == nullptr);
        const bool told =
            wait.unknown == Unknown::no || wait.unknown == Unknown::kernel ||
            wait.unknown == Unknown::any_child || wait.unknown == Unknown::process_group ||
            wait.unknown == Unknown::thread_requested || wait.unknown == Unknown::not_waiting;
        if (!told || wait.changing || lost_blocker)
            lines.push_back(
                fmt::format("{} {}", thread_text(graph, wait.thread), wait_text(graph, wait)));
    }
    return lines;
}

}  // namespace tools
