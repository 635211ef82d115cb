#include "tools/analyze.hpp"

#include <algorithm>

#include "kcdata/records.hpp"
#include "tools/components.hpp"

namespace tools {

namespace {

using Blocker = WaitGraph::Blocker;
constexpr std::size_t none = WaitGraph::none;

/// Nodes of the graphs that are searched here: first the threads, then the tasks, then the work
/// queues.
class Diagnoser {
  public:
    explicit Diagnoser(const WaitGraph& graph)
        : graph_(graph),
          first_task_(graph.threads.size()),
          first_work_queue_(first_task_ + graph.tasks.size()),
          node_count_(first_work_queue_ + graph.work_queues.size()) {}

    Diagnosis run() {
        diagnosis_.deadlock_of.assign(graph_.threads.size(), none);
        find_able_threads();
        find_stuck();
        find_deadlocks();
        find_open_cycles();
        find_heads();
        find_inversions();
        return std::move(diagnosis_);
    }

  private:
    using Nodes = std::vector<std::size_t>;

    bool is_thread(std::size_t node) const { return node < first_task_; }
    bool is_task(std::size_t node) const { return node >= first_task_ && node < first_work_queue_; }

    /// The wait of a thread that only a thread or task can end.
    const WaitGraph::Wait* binding_wait(std::size_t thread) const {
        const WaitGraph::Wait* const wait = graph_.wait_of(thread);
        if (wait == nullptr || (wait->blocker != Blocker::thread && wait->blocker != Blocker::task))
            return nullptr;
        // An object that is being handed over may have its next owner while that is still asleep.
        if (wait->changing && wait->blocker == Blocker::thread && wait->blocked_by == thread)
            return nullptr;
        return wait;
    }

    void find_able_threads() {
        able_.resize(graph_.tasks.size());
        for (std::size_t task = 0; task < graph_.tasks.size(); ++task)
            for (const std::size_t thread : graph_.tasks[task].threads)
                if (graph_.threads[thread].can_act())
                    able_[task].push_back(thread);
    }

    /// Takes all that wait for stuck, then those out that are not, and whoever waits for them.
    void find_stuck() {
        stuck_.assign(node_count_, false);
        std::vector<Nodes> waiters(node_count_);
        Nodes free;
        for (std::size_t thread = 0; thread < graph_.threads.size(); ++thread) {
            const WaitGraph::Wait* const wait = binding_wait(thread);
            if (wait == nullptr || graph_.threads[thread].snapshot == nullptr) {
                free.push_back(thread);
                continue;
            }
            stuck_[thread] = true;
            waiters[must_act(*wait)].push_back(thread);
        }
        for (std::size_t task = 0; task < graph_.tasks.size(); ++task) {
            if (able_[task].empty() || !graph_.complete) {
                free.push_back(first_task_ + task);
                continue;
            }
            stuck_[first_task_ + task] = true;
            for (const std::size_t thread : able_[task])
                waiters[thread].push_back(first_task_ + task);
        }
        while (!free.empty()) {
            const std::size_t node = free.back();
            free.pop_back();
            for (const std::size_t waiter : waiters[node])
                if (stuck_[waiter]) {
                    stuck_[waiter] = false;
                    free.push_back(waiter);
                }
        }
    }

    std::size_t node_of(const WaitGraph::Wait& wait) const {
        return wait.blocker == Blocker::thread ? wait.blocked_by : first_task_ + wait.blocked_by;
    }

    /// What has to act before the wait ends: a thread, or any of a task.
    std::size_t must_act(const WaitGraph::Wait& wait) const {
        const bool known =
            wait.blocker == Blocker::thread && graph_.threads[wait.blocked_by].task != none;
        return wait.any_of_task && known ? first_task_ + graph_.threads[wait.blocked_by].task
                                         : node_of(wait);
    }

    /// Thread -> its blocker, task -> its threads that can act.
    Nodes successors(std::size_t node) const {
        if (is_task(node))
            return able_[node - first_task_];
        if (!is_thread(node))
            return {};
        const WaitGraph::Wait* const wait = binding_wait(node);
        return wait == nullptr ? Nodes() : Nodes{must_act(*wait)};
    }

    void find_deadlocks() {
        const auto stuck_successors = [this](std::size_t node) {
            return stuck_[node] ? successors(node) : Nodes();
        };
        for (const Nodes& component : strongly_connected(node_count_, stuck_successors)) {
            if (!stuck_[component.front()])
                continue;
            Nodes threads = in_order(component);
            if (threads.empty())
                continue;
            for (const std::size_t thread : threads)
                diagnosis_.deadlock_of[thread] = diagnosis_.deadlocks.size();
            diagnosis_.deadlocks.push_back({.threads = std::move(threads)});
        }
        count_behind();
        order_by_first_thread(diagnosis_.deadlocks);
        for (std::size_t index = 0; index < diagnosis_.deadlocks.size(); ++index)
            for (const std::size_t thread : diagnosis_.deadlocks[index].threads)
                diagnosis_.deadlock_of[thread] = index;
    }

    void count_behind() {
        std::vector<Nodes> waiters(node_count_);
        for (std::size_t node = 0; node < first_work_queue_; ++node)
            if (stuck_[node])
                for (const std::size_t next : successors(node))
                    waiters[next].push_back(node);
        for (Diagnosis::Deadlock& deadlock : diagnosis_.deadlocks)
            deadlock.behind = reach(deadlock.threads, waiters) - deadlock.threads.size();
    }

    /// How many threads can be come to from `from`, these included.
    std::size_t reach(const Nodes& from, const std::vector<Nodes>& edges) const {
        std::vector<bool> seen(node_count_, false);
        Nodes open = from;
        for (const std::size_t node : open)
            seen[node] = true;
        std::size_t count = 0;
        while (!open.empty()) {
            const std::size_t node = open.back();
            open.pop_back();
            count += is_thread(node);
            for (const std::size_t next : edges[node])
                if (!seen[next]) {
                    seen[next] = true;
                    open.push_back(next);
                }
        }
        return count;
    }

    /// The threads of a component: from the one of lowest id on, each behind the one that waits for
    /// it, as far as the tasks between leave that open.
    Nodes in_order(const Nodes& component) const {
        Nodes rest;
        for (const std::size_t node : component)
            if (is_thread(node))
                rest.push_back(node);
        std::sort(rest.begin(), rest.end(), [this](std::size_t a, std::size_t b) {
            return graph_.threads[a].id < graph_.threads[b].id;
        });
        Nodes ordered;
        std::size_t next = none;
        while (!rest.empty()) {
            auto found = std::find(rest.begin(), rest.end(), next);
            if (found == rest.end())
                found = rest.begin();
            const std::size_t thread = *found;
            rest.erase(found);
            ordered.push_back(thread);
            next = none;
            if (const WaitGraph::Wait* const wait = binding_wait(thread)) {
                if (wait->blocker == Blocker::thread) {
                    next = wait->blocked_by;
                } else {
                    const Nodes& able = able_[wait->blocked_by];
                    const auto there =
                        std::find_first_of(able.begin(), able.end(), rest.begin(), rest.end());
                    if (there != able.end())
                        next = *there;
                }
            }
        }
        return ordered;
    }

    template <typename Cycle>
    void order_by_first_thread(std::vector<Cycle>& cycles) const {
        std::sort(cycles.begin(), cycles.end(), [this](const Cycle& a, const Cycle& b) {
            return graph_.threads[a.threads.front()].id < graph_.threads[b.threads.front()].id;
        });
    }

    /// Cycles that leave out no thread but those that may yet act for their task.
    void find_open_cycles() {
        const auto open_successors = [this](std::size_t node) -> Nodes {
            if (is_thread(node)) {
                // That a thread waits for its own task says nothing while others of that can act.
                const WaitGraph::Wait* const wait = binding_wait(node);
                if (stuck_[node] || (wait != nullptr && wait->blocker == Blocker::task &&
                                     wait->blocked_by == graph_.threads[node].task))
                    return {};
            }
            return successors(node);
        };
        for (const Nodes& component : strongly_connected(node_count_, open_successors)) {
            Diagnosis::OpenCycle cycle{.threads = in_order(component)};
            if (cycle.threads.empty() || stuck_[cycle.threads.front()])
                continue;
            if (graph_.complete)
                for (const std::size_t node : component)
                    if (is_task(node))
                        for (const std::size_t thread : able_[node - first_task_])
                            if (!stuck_[thread] && std::find(component.begin(), component.end(),
                                                             thread) == component.end())
                                cycle.may_act.push_back(thread);
            diagnosis_.open_cycles.push_back(std::move(cycle));
        }
        order_by_first_thread(diagnosis_.open_cycles);
    }

    /// The one node that a thread's chain goes on with; none: it ends with the thread. A task with
    /// one thread that can act is that thread.
    std::size_t next_in_chain(std::size_t thread) const {
        const WaitGraph::Wait* const wait = graph_.wait_of(thread);
        if (wait == nullptr)
            return none;
        if (wait->blocker == Blocker::work_queue)
            return first_work_queue_ + wait->blocked_by;
        if (binding_wait(thread) == nullptr)
            return none;
        if (wait->blocker == Blocker::task) {
            const Nodes& able = able_[wait->blocked_by];
            return able.size() == 1 && able.front() != thread ? able.front() : node_of(*wait);
        }
        return node_of(*wait);
    }

    void find_heads() {
        next_.assign(node_count_, none);
        std::vector<Nodes> waiters(node_count_);
        for (std::size_t thread = 0; thread < graph_.threads.size(); ++thread) {
            next_[thread] = next_in_chain(thread);
            if (next_[thread] != none)
                waiters[next_[thread]].push_back(thread);
        }
        for (std::size_t node = 0; node < node_count_; ++node) {
            if (waiters[node].empty() || next_[node] != none)
                continue;
            Diagnosis::Head head;
            head.kind = is_thread(node) ? Diagnosis::Head::Kind::thread
                        : is_task(node) ? Diagnosis::Head::Kind::task
                                        : Diagnosis::Head::Kind::work_queue;
            head.index = is_thread(node) ? node
                         : is_task(node) ? node - first_task_
                                         : node - first_work_queue_;
            head.direct = waiters[node];
            head.behind = reach({node}, waiters) - (is_thread(node) ? 1 : 0);
            diagnosis_.heads.push_back(std::move(head));
        }
        std::stable_sort(diagnosis_.heads.begin(), diagnosis_.heads.end(),
                         [](const auto& a, const auto& b) { return a.behind > b.behind; });
    }

    /// Carries the highest waiter down every chain, from its end where nobody waits.
    void find_inversions() {
        std::vector<std::size_t> waiting(node_count_, 0);
        for (const std::size_t next : next_)
            if (next != none)
                ++waiting[next];
        Nodes open;
        for (std::size_t node = 0; node < node_count_; ++node)
            if (waiting[node] == 0)
                open.push_back(node);
        Nodes highest(node_count_, none);
        while (!open.empty()) {
            const std::size_t node = open.back();
            open.pop_back();
            if (is_thread(node) && highest[node] != none)
                compare(highest[node], node);
            const std::size_t next = next_[node];
            if (next == none)
                continue;
            for (const std::size_t waiter : {node, highest[node]})
                if (waiter != none && base_priority(waiter) &&
                    (highest[next] == none ||
                     *base_priority(waiter) > *base_priority(highest[next])))
                    highest[next] = waiter;
            if (--waiting[next] == 0)
                open.push_back(next);
        }
        std::sort(diagnosis_.inversions.begin(), diagnosis_.inversions.end(),
                  [this](const auto& a, const auto& b) {
                      return graph_.threads[a.owner].id < graph_.threads[b.owner].id;
                  });
    }

    std::optional<std::int16_t> base_priority(std::size_t node) const {
        if (!is_thread(node) || graph_.threads[node].snapshot == nullptr)
            return std::nullopt;
        return graph_.threads[node].snapshot->base_priority;
    }

    void compare(std::size_t waiter, std::size_t owner) {
        const auto lower = base_priority(owner);
        const auto higher = base_priority(waiter);
        // In a deadlock it is not priority that keeps the waiter.
        if (!lower || *lower >= *higher || stuck_[owner])
            return;
        const ThreadSnapshot& thread = *graph_.threads[owner].snapshot;
        Diagnosis::Inversion inversion{
            .owner = owner, .waiter = waiter, .direct = next_[waiter] == owner};
        if (thread.sched_priority) {
            using enum Diagnosis::Inversion::Boost;
            inversion.boost = *thread.sched_priority >= *higher ? full
                              : *thread.sched_priority > *lower ? partial
                                                                : Diagnosis::Inversion::Boost::none;
        }
        const std::uint32_t state = thread.state.value_or(0);
        inversion.runnable =
            (state & (kcdata::SS_TH_RUN | kcdata::SS_TH_WAIT | kcdata::SS_TH_SUSP)) ==
                kcdata::SS_TH_RUN &&
            !thread.has(kcdata::kThreadOnCore);
        diagnosis_.inversions.push_back(inversion);
    }

    const WaitGraph& graph_;
    const std::size_t first_task_;
    const std::size_t first_work_queue_;
    const std::size_t node_count_;
    std::vector<Nodes> able_{};  ///< of each task, the threads that can act
    std::vector<bool> stuck_{};
    Nodes next_{};  ///< of each node, in its chain
    Diagnosis diagnosis_{};
};

}  // namespace

Diagnosis diagnose(const WaitGraph& graph) {
    return Diagnoser(graph).run();
}

}  // namespace tools
