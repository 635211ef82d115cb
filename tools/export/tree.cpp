#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/append.hpp"
#include "tools/export/export.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_text.hpp"

// For people, in the spirit of spindump: what each thread was at, how often, and its stacks as a
// tree, outermost frames first, with the number of captures that have each.

namespace tools {

namespace {

/// How often something was seen, the most frequent first.
class Counts {
  public:
    void add(const std::string& what) { ++counts_[what]; }
    std::vector<std::pair<std::string, std::uint64_t>> sorted() const {
        std::vector<std::pair<std::string, std::uint64_t>> all(counts_.begin(), counts_.end());
        std::stable_sort(all.begin(), all.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        return all;
    }

  private:
    std::map<std::string, std::uint64_t> counts_{};
};

struct Node {
    std::string text{};
    std::uint64_t count = 0;
    std::vector<std::unique_ptr<Node>> callees{};

    Node& callee(const std::string& name) {
        for (const auto& each : callees)
            if (each->text == name)
                return *each;
        callees.push_back(std::make_unique<Node>());
        callees.back()->text = name;
        return *callees.back();
    }
};

struct ThreadTree {
    std::string title{};
    std::uint64_t captures = 0;
    Counts activities{};
    Node root{};
    // In the first and in the last capture that has it.
    ThreadSnapshot first{};
    ThreadSnapshot last{};
};

struct TaskTree {
    std::string title{};
    std::vector<ThreadTree> threads{};
    std::map<std::uint64_t, std::size_t> by_id{};
};

class Trees {
  public:
    void take(const ExportedCapture& capture) {
        const Snapshot& snapshot = capture.snapshot;
        const Stacks stacks(snapshot, capture.symbols);
        const WaitGraph graph = make_wait_graph(snapshot);
        for (const TaskSnapshot& task : snapshot.tasks)
            for (const ThreadSnapshot& thread : task.threads) {
                ThreadTree& tree = tree_of(task, thread);
                ++tree.captures;
                tree.last = thread;
                tree.activities.add(activity_text(graph, graph.find_thread(thread.id)));
                Node* node = &tree.root;
                const auto frames = stacks.whole_stack(task, thread);
                for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
                    node = &node->callee(frame_text(*frame, stacks));
                    ++node->count;
                }
            }
        const auto time = snapshot.nanoseconds(snapshot.absolute_time);
        begin_ = begin_ && time ? std::min(*begin_, *time) : begin_ ? begin_ : time;
        end_ = end_ && time ? std::max(*end_, *time) : end_ ? end_ : time;
        ++captures_;
    }

    void write(TextSink& sink) {
        std::string text = plural(captures_, "capture");
        if (begin_ && end_ && captures_ > 1)
            text += " over " + time_text(*end_ - *begin_);
        text += '\n';
        for (TaskTree& task : tasks_) {
            append(text, "\n{}\n", task.title);
            for (ThreadTree& thread : task.threads)
                write(thread, text);
            sink.write(text);
            text.clear();
        }
        sink.write(text);
    }

  private:
    static std::string frame_text(const StackFrame& frame, const Stacks& stacks) {
        std::string text = frame.name();
        if (!frame.file.empty())
            text += "  " + frame.place();
        else if (frame.function.empty() && frame.image) {
            const LoadInfo& image = stacks.images().all()[*frame.image].info;
            append(text, "  {} + {:#x}", uuid_text(image.uuid), frame.address - image.address);
        }
        return frame.inlined ? text + " (inlined)" : text;
    }

    ThreadTree& tree_of(const TaskSnapshot& task, const ThreadSnapshot& thread) {
        const auto [found_task, is_new_task] =
            by_unique_pid_.try_emplace(task.unique_pid, tasks_.size());
        if (is_new_task)
            tasks_.push_back({task_title(task)});
        TaskTree& tree = tasks_[found_task->second];
        const auto [found, is_new] = tree.by_id.try_emplace(thread.id, tree.threads.size());
        if (is_new)
            tree.threads.push_back({.title = thread_title(thread), .first = thread});
        return tree.threads[found->second];
    }

    void write(ThreadTree& thread, std::string& text) const {
        append(text, "  {}  in {} of {}{}\n", thread.title, thread.captures, captures_,
               used(thread));
        for (const auto& [activity, count] : thread.activities.sorted())
            append(text, "    {:>5}  {}\n", count, activity);
        write(thread.root, 0, text);
    }

    /// CPU time from the first to the last capture of a thread.
    static std::string used(const ThreadTree& thread) {
        const auto microseconds = [](const ThreadSnapshot& of) -> std::optional<std::uint64_t> {
            if (!of.user_usec || !of.system_usec)
                return std::nullopt;
            return *of.user_usec + *of.system_usec;
        };
        const auto first = microseconds(thread.first), last = microseconds(thread.last);
        if (thread.captures < 2 || !first || !last || *last < *first)
            return {};
        if (*last == *first)
            return ", used no CPU time";
        return ", used " + time_text(static_cast<double>(*last - *first) * 1e3);
    }

    /// A frame with one caller below it is not indented any further, so that deep stacks stay
    /// readable.
    static void write(const Node& node, std::size_t depth, std::string& text) {
        std::vector<const Node*> callees;
        for (const auto& each : node.callees)
            callees.push_back(each.get());
        std::stable_sort(callees.begin(), callees.end(),
                         [](const Node* a, const Node* b) { return a->count > b->count; });
        const std::size_t below = callees.size() > 1 ? depth + 1 : depth;
        for (const Node* const callee : callees) {
            append(text, "      {:{}}{:>5}  {}\n", "", 2 * below, callee->count, callee->text);
            write(*callee, below, text);
        }
    }

    std::uint64_t captures_ = 0;
    std::optional<double> begin_{};
    std::optional<double> end_{};
    std::vector<TaskTree> tasks_{};
    std::map<std::uint64_t, std::size_t> by_unique_pid_{};
};

}  // namespace

void write_tree(std::span<const ExportedCapture> captures, TextSink& sink) {
    Trees trees;
    for (const ExportedCapture& capture : captures)
        trees.take(capture);
    trees.write(sink);
}

}  // namespace tools
