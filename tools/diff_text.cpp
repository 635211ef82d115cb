#include "tools/diff_text.hpp"

#include <fmt/core.h>

#include <utility>

#include "tools/append.hpp"
#include "tools/snapshot_json.hpp"
#include "tools/snapshot_text.hpp"
#include "tools/stacks.hpp"
#include "tools/wait_graph.hpp"
#include "tools/wait_text.hpp"

namespace tools {

namespace {

/// One of the two captures, with what is needed to tell of its threads.
struct Side {
    explicit Side(const ExportedCapture& of)
        : capture(of), stacks(of.snapshot, of.symbols), graph(make_wait_graph(of.snapshot)) {}

    std::string activity(const ThreadSnapshot& thread) const {
        return activity_text(graph, graph.find_thread(thread.id));
    }
    /// Where a thread stands, and who called that.
    std::string place(const TaskSnapshot& task, const ThreadSnapshot& thread) const {
        constexpr std::size_t shown = 8;
        const auto frames = stacks.whole_stack(task, thread);
        if (frames.empty())
            return "no stack";
        std::string text = frames.front().name();
        if (const std::string source = frames.front().place(); !source.empty())
            text += " (" + source + ')';
        for (std::size_t i = 1; i < frames.size() && i < shown; ++i)
            text += " < " + frames[i].name();
        return frames.size() > shown ? text + " < ..." : text;
    }

    const ExportedCapture& capture;
    Stacks stacks;
    WaitGraph graph;
};

class DiffText {
  public:
    DiffText(const Diff& diff, const ExportedCapture& before, const ExportedCapture& after)
        : diff_(diff), before_(before), after_(after) {}

    std::string run() {
        print("From {} to {}: {}\n", before_.capture.place, after_.capture.place, interval());
        for (const Side* const side : {&before_, &after_})
            if (!side->capture.snapshot.problems.empty())
                print("{} is damaged: what is missing there may seem new or gone.\n",
                      side->capture.place);
        tasks("new tasks", diff_.new_tasks);
        tasks("gone tasks", diff_.gone_tasks);
        section(ThreadChange::added, "new threads", [this](const ThreadDiff& each) {
            print("      {}\n      at {}\n", after_.activity(*each.after),
                  after_.place(*each.task_after, *each.after));
        });
        section(ThreadChange::gone, "gone threads", [this](const ThreadDiff& each) {
            print("      was: {}\n           at {}\n", before_.activity(*each.before),
                  before_.place(*each.task_before, *each.before));
        });
        section(ThreadChange::moved, "moved: another stack", [this](const ThreadDiff& each) {
            print("      was: {}\n           at {}\n", before_.activity(*each.before),
                  before_.place(*each.task_before, *each.before));
            print("      is:  {}\n           at {}\n", after_.activity(*each.after),
                  after_.place(*each.task_after, *each.after));
        });
        section(ThreadChange::stuck, "stuck: the same stack in both",
                [this](const ThreadDiff& each) {
                    print("      {}\n      at {}\n", activity_of_stuck(each),
                          after_.place(*each.task_after, *each.after));
                });
        section(
            ThreadChange::unknown, "in both, but without two stacks to compare",
            [this](const ThreadDiff& each) { print("      {}\n", after_.activity(*each.after)); });
        return std::move(out_);
    }

  private:
    template <typename... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        append(out_, format, std::forward<Arguments>(arguments)...);
    }

    std::string interval() const {
        if (!diff_.interval)
            return "how long is not known";
        if (*diff_.interval < 0)
            return time_text(-*diff_.interval) + " BACK: the second is from before the first";
        return time_text(diff_.interval);
    }

    void tasks(const char* title, const std::vector<const TaskSnapshot*>& tasks) {
        if (tasks.empty())
            return;
        print("\n{} ({})\n", title, tasks.size());
        for (const TaskSnapshot* const task : tasks)
            print("  {}, {}\n", task_title(*task), plural(task->threads.size(), "thread"));
    }

    template <typename Details>
    void section(ThreadChange change, const char* title, const Details& details) {
        std::size_t count = 0;
        for (const ThreadDiff& each : diff_.threads)
            count += each.change == change;
        if (count == 0)
            return;
        print("\n{} ({})\n", title, count);
        const TaskSnapshot* task = nullptr;
        for (const ThreadDiff& each : diff_.threads) {
            if (each.change != change)
                continue;
            if (std::exchange(task, &each.task()) != &each.task())
                print("  {}\n", task_title(*task));
            print("    {}{}\n", thread_title(each.thread()), used(each));
            details(each);
        }
    }

    static std::string used(const ThreadDiff& each) {
        if (each.change == ThreadChange::gone)
            return {};
        if (each.ran == false)
            return "  has not run";
        if (!each.user_usec || !each.system_usec)
            return each.ran == true ? "  ran" : "";
        const auto text = [](std::uint64_t usec) {
            return usec == 0 ? "0 s" : time_text(static_cast<double>(usec) * 1e3);
        };
        return fmt::format("  used user {}, system {}", text(*each.user_usec),
                           text(*each.system_usec));
    }

    /// Its waits have to be told only once, unless they changed.
    std::string activity_of_stuck(const ThreadDiff& each) const {
        const std::string was = before_.activity(*each.before), is = after_.activity(*each.after);
        return was == is ? is : fmt::format("{} (was: {})", is, was);
    }

    const Diff& diff_;
    const Side before_;
    const Side after_;
    std::string out_{};
};

class DiffJson {
  public:
    DiffJson(const Diff& diff, const ExportedCapture& before, const ExportedCapture& after,
             JsonEmitter& json)
        : diff_(diff), before_(before), after_(after), json_(json) {}

    void run() {
        json_.begin_object();
        json_.text("before", before_.capture.place);
        json_.text("after", after_.capture.place);
        if (diff_.interval) {
            json_.key("interval_ns");
            json_.value(*diff_.interval);
        }
        json_.key("complete");
        json_.boolean(before_.capture.snapshot.problems.empty() &&
                      after_.capture.snapshot.problems.empty());
        tasks("new_tasks", diff_.new_tasks);
        tasks("gone_tasks", diff_.gone_tasks);
        json_.key("threads");
        json_.begin_array();
        for (const ThreadDiff& each : diff_.threads)
            write(each);
        json_.end_array();
        json_.end_object();
    }

  private:
    void write(const TaskSnapshot& task) {
        json_.begin_object();
        write_task_keys(json_, task);
        json_.end_object();
    }

    void tasks(std::string_view key, const std::vector<const TaskSnapshot*>& tasks) {
        json_.key(key);
        json_.begin_array();
        for (const TaskSnapshot* const task : tasks)
            write(*task);
        json_.end_array();
    }

    void write(const ThreadDiff& each) {
        json_.begin_object();
        json_.key("task");
        write(each.task());
        json_.text("change", thread_change_name(each.change));
        if (each.user_usec) {
            json_.key("used_user_usec");
            write_id(json_, *each.user_usec);
        }
        if (each.system_usec) {
            json_.key("used_system_usec");
            write_id(json_, *each.system_usec);
        }
        if (each.ran) {
            json_.key("ran");
            json_.boolean(*each.ran);
        }
        if (each.before != nullptr)
            write("before", before_, *each.task_before, *each.before);
        if (each.after != nullptr)
            write("after", after_, *each.task_after, *each.after);
        json_.end_object();
    }

    void write(std::string_view key, const Side& side, const TaskSnapshot& task,
               const ThreadSnapshot& thread) {
        json_.key(key);
        json_.begin_object();
        write_thread_keys(json_, thread, side.graph);
        json_.key("stack");
        write_stack(json_, side.stacks.whole_stack(task, thread), side.stacks.images());
        json_.end_object();
    }

    const Diff& diff_;
    const Side before_;
    const Side after_;
    JsonEmitter& json_;
};

}  // namespace

std::string diff_text(const Diff& diff, const ExportedCapture& before,
                      const ExportedCapture& after) {
    return DiffText(diff, before, after).run();
}

void write_diff(const Diff& diff, const ExportedCapture& before, const ExportedCapture& after,
                JsonEmitter& json) {
    DiffJson(diff, before, after, json).run();
}

}  // namespace tools
