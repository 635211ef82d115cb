#include "tools/wait_graph_dot.hpp"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "tools/append.hpp"
#include "tools/printable.hpp"
#include "tools/utf8.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

using Blocker = WaitGraph::Blocker;

/// `text` as a quoted string that shows as it is: Graphviz takes backslashes for escapes and wants
/// UTF-8.
std::string quoted(std::string_view text) {
    const std::string shown = printable(text);
    std::string result = "\"";
    for (std::size_t i = 0; i < shown.size();) {
        const std::size_t length = utf8_sequence_length(std::string_view(shown).substr(i));
        if (length == 0) {
            append(result, "\\\\x{:02x}", static_cast<unsigned char>(shown[i++]));
            continue;
        }
        if (shown[i] == '"' || shown[i] == '\\')
            result += '\\';
        result += shown.substr(i, length);
        i += length;
    }
    return result + '"';
}

class Dot {
  public:
    Dot(const WaitGraph& graph, const Diagnosis& diagnosis)
        : graph_(graph),
          diagnosis_(diagnosis),
          thread_shown_(graph.threads.size(), false),
          task_shown_(graph.tasks.size(), false) {}

    std::string run(std::string_view name) {
        for (const WaitGraph::Wait& wait : graph_.waits) {
            thread_shown_[wait.thread] = true;
            if (wait.blocker == Blocker::thread)
                thread_shown_[wait.blocked_by] = true;
            if (wait.blocker == Blocker::task || wait.blocker == Blocker::creator)
                task_shown_[wait.blocked_by] = true;
        }
        print("digraph {} {{\n", quoted(name));
        print("  rankdir=LR;\n  node [shape=box];\n");
        clusters();
        for (std::size_t object = 0; object < graph_.objects.size(); ++object)
            print("  object{} [shape=ellipse, label={}];\n", object,
                  quoted(object_text(graph_, object)));
        for (std::size_t queue = 0; queue < graph_.work_queues.size(); ++queue)
            print("  queue{} [shape=cds, label={}];\n", queue,
                  quoted(fmt::format("work queue {:#x}", graph_.work_queues[queue].address)));
        // Waiters for one thing share the edge from there on: red, if one of them is.
        for (const bool deadlocked : {true, false})
            for (const WaitGraph::Wait& wait : graph_.waits)
                if ((diagnosis_.deadlock_of[wait.thread] != WaitGraph::none) == deadlocked)
                    edges(wait);
        print("}}\n");
        return std::move(out_);
    }

  private:
    template <typename... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        append(out_, format, std::forward<Arguments>(arguments)...);
    }

    void clusters() {
        std::vector<std::vector<std::size_t>> of_task(graph_.tasks.size());
        for (std::size_t thread = 0; thread < graph_.threads.size(); ++thread) {
            if (!thread_shown_[thread])
                continue;
            if (graph_.threads[thread].task == WaitGraph::none)
                node(thread);
            else
                of_task[graph_.threads[thread].task].push_back(thread);
        }
        for (std::size_t task = 0; task < graph_.tasks.size(); ++task) {
            if (of_task[task].empty() && !task_shown_[task])
                continue;
            print("  subgraph cluster{} {{\n  label={};\n", task, quoted(task_text(graph_, task)));
            if (task_shown_[task])
                print("  task{} [shape=folder, label=\"any thread\"];\n", task);
            for (const std::size_t thread : of_task[task])
                node(thread);
            print("  }}\n");
        }
    }

    void node(std::size_t index) {
        const WaitGraph::Thread& thread = graph_.threads[index];
        std::string label = fmt::format("thread {}", thread.id);
        if (thread.snapshot == nullptr)
            label += " (not in the capture)";
        else if (!thread.snapshot->name.empty())
            label += fmt::format(" {}", thread.snapshot->name);
        if (graph_.wait_of(index) == nullptr && thread.snapshot != nullptr)
            label += ": " + activity_text(graph_, index);
        print("  thread{} [label={}{}];\n", index, quoted(label),
              diagnosis_.deadlock_of[index] != WaitGraph::none ? ", color=red" : "");
    }

    void edges(const WaitGraph::Wait& wait) {
        const char* const waits = wait.type != nullptr ? wait.type->waits : "waits";
        std::string from = fmt::format("thread{}", wait.thread);
        if (wait.object != WaitGraph::none) {
            const std::string object = fmt::format("object{}", wait.object);
            edge(wait, from, object, waits);
            from = object;
        }
        const std::string joint = wait.object == WaitGraph::none ? waits
                                  : wait.type != nullptr         ? wait.type->joint
                                                                 : "";
        switch (wait.blocker) {
            case Blocker::none:
                break;
            case Blocker::thread:
                edge(wait, from, fmt::format("thread{}", wait.blocked_by), joint);
                break;
            case Blocker::task:
            case Blocker::creator:
                edge(wait, from, fmt::format("task{}", wait.blocked_by), joint);
                break;
            case Blocker::work_queue:
                edge(wait, from, fmt::format("queue{}", wait.blocked_by), joint);
                break;
            case Blocker::port:
                edge(wait, from, fmt::format("object{}", wait.blocked_by), joint);
                break;
        }
    }

    void edge(const WaitGraph::Wait& wait, const std::string& from, const std::string& to,
              std::string_view label) {
        if (!drawn_.emplace(from, to).second)
            return;
        print("  {} -> {} [label={}{}{}];\n", from, to, quoted(label),
              diagnosis_.deadlock_of[wait.thread] != WaitGraph::none ? ", color=red" : "",
              wait.blocker == Blocker::creator ? ", style=dashed" : "");
    }

    const WaitGraph& graph_;
    const Diagnosis& diagnosis_;
    std::vector<bool> thread_shown_;
    std::vector<bool> task_shown_;
    std::set<std::pair<std::string, std::string>> drawn_{};
    std::string out_{};
};

}  // namespace

std::string wait_graph_dot(const WaitGraph& graph, const Diagnosis& diagnosis,
                           std::string_view name) {
    return Dot(graph, diagnosis).run(name);
}

}  // namespace tools
