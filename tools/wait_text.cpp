#include "tools/wait_text.hpp"

#include <fmt/core.h>

#include <string_view>
#include <unordered_set>

#include "kcdata/records.hpp"
#include "tools/printable.hpp"

namespace tools {

namespace {

using namespace kcdata;
using Blocker = WaitGraph::Blocker;
using Unknown = WaitGraph::Unknown;

constexpr std::size_t shown_links = 3;

/// " {label}" of a port that has one.
std::string label_text(const PortLabel* label, std::int16_t id) {
    if (id == STACKSHOT_PORTLABELID_NONE)
        return {};
    if (label == nullptr)
        return " {label not recorded}";
    return fmt::format(
        " {{{}{}}}",
        label->name.empty() ? std::string("label could not be read") : printable(label->name),
        (label->flags & STACKSHOT_PORTLABEL_THROTTLED) != 0 ? ", throttled" : "");
}

/// What is waited for, as far as it is known.
std::string waits_for(const WaitGraph& graph, const WaitGraph::Wait& wait) {
    if (wait.type == nullptr)
        return fmt::format("waits for something of unknown type {:#x}, owner {:#x}, context {:#x}",
                           wait.info.wait_type, wait.info.owner, wait.info.context);
    std::string text = wait.type->waits;
    if (wait.type->type == kThreadWaitPortReceive &&
        (wait.info.wait_flags & STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY) != 0)
        text = "waits for a reply on";
    if (wait.object != WaitGraph::none) {
        const WaitGraph::Object& object = graph.objects[wait.object];
        text += fmt::format(" {} {:#x}", object.kind, object.address);
    } else if (*wait.type->object != '\0') {
        text += fmt::format(" a {}", wait.type->object);
    }
    return text + label_text(wait.label, wait.info.portlabel_id);
}

/// Why nobody is named.
std::string_view unknown_text(const WaitGraph::Wait& wait) {
    switch (wait.unknown) {
        case Unknown::no:
        case Unknown::unknown_type:
            return "";
        case Unknown::not_recorded:
            return *wait.type->object != '\0' ? ", whose owner is not recorded"
                                              : " until woken by a thread that is not recorded";
        case Unknown::kernel:
            return " of the kernel";
        case Unknown::port_locked:
            return ", which was locked: its receiver is not known";
        case Unknown::port_set_locked:
            return ", which was locked";
        case Unknown::in_transit:
            return ", which is in transit";
        case Unknown::mutex_spin:
            return " held as a spin lock: by whom is not recorded";
        case Unknown::thread_requested:
            return ", for which a thread was requested";
        case Unknown::suspended:
            return ", which is suspended";
        case Unknown::other_special:
            return ", whose owner makes no sense";
        case Unknown::any_child:
            return " any child";
        case Unknown::process_group:
            return " a child of a process group";
        case Unknown::not_waiting:
            return ", says its wait info; but its state is not waiting";
    }
    return "";
}

/// ", which was changing hands" and what else the turnstile adds to what is said already.
std::string turnstile_text(const WaitGraph& graph, const WaitGraph::Wait& wait) {
    if (!wait.turnstile)
        return {};
    const TurnstileInfo& info = *wait.turnstile;
    if (wait.changing && wait.unknown == Unknown::no)
        return " (its owner was changing)";
    if (wait.by_turnstile || (info.turnstile_flags & STACKSHOT_TURNSTILE_STATUS_THREAD) == 0)
        return {};
    const std::size_t pushed = graph.find_thread(info.turnstile_context);
    if (pushed == WaitGraph::none || (wait.blocker == Blocker::thread && wait.blocked_by == pushed))
        return {};
    return fmt::format(" (its turnstile pushes {}, {} hops)", thread_text(graph, pushed),
                       info.number_of_hops);
}

std::string name_of(const TaskSnapshot& task) {
    return task.name.empty() ? std::string("(no name)")
                             : fmt::format("\"{}\"", printable(task.name));
}

}  // namespace

std::string task_text(const WaitGraph& graph, std::size_t task) {
    const WaitGraph::Task& of = graph.tasks[task];
    const std::string pid = of.pid ? fmt::format("{}", *of.pid) : std::string("unknown");
    if (of.snapshot == nullptr)
        return fmt::format("a task not in the capture [pid {}]", pid);
    return fmt::format("task {} [pid {}]", name_of(*of.snapshot), pid);
}

std::string thread_text(const WaitGraph& graph, std::size_t thread) {
    const WaitGraph::Thread& of = graph.threads[thread];
    std::string text = fmt::format("thread {}", of.id);
    if (of.snapshot == nullptr)
        return text + " (not in the capture)";
    if (!of.snapshot->name.empty())
        text += fmt::format(" \"{}\"", printable(of.snapshot->name));
    return text + fmt::format(" ({})", task_text(graph, of.task));
}

std::string object_text(const WaitGraph& graph, std::size_t object) {
    const WaitGraph::Object& of = graph.objects[object];
    return fmt::format("{} {:#x}{}", of.kind, of.address,
                       of.label != nullptr ? label_text(of.label, of.label->id) : std::string());
}

std::string wait_text(const WaitGraph& graph, const WaitGraph::Wait& wait) {
    std::string text = waits_for(graph, wait);
    const char* const joint = wait.type != nullptr ? wait.type->joint : "pushing";
    switch (wait.blocker) {
        case Blocker::none:
            text += unknown_text(wait);
            break;
        case Blocker::thread:
            text +=
                fmt::format(" {} {}", joint,
                            wait.blocked_by == wait.thread ? std::string("itself")
                                                           : thread_text(graph, wait.blocked_by));
            break;
        case Blocker::task:
        case Blocker::creator:
            text += fmt::format("{}{} {}", *joint != '\0' ? " " : "", joint,
                                task_text(graph, wait.blocked_by));
            break;
        case Blocker::work_queue:
            text += fmt::format(" that a thread of work queue {:#x} will serve",
                                graph.work_queues[wait.blocked_by].address);
            break;
        case Blocker::port:
            text += fmt::format(" {} port {:#x}", joint, graph.objects[wait.blocked_by].address);
            break;
    }
    if (wait.far_label != nullptr)
        text += fmt::format(" through port{}", label_text(wait.far_label, wait.far_label->id));
    return text + turnstile_text(graph, wait);
}

std::string activity_text(const WaitGraph& graph, std::size_t thread) {
    if (const WaitGraph::Wait* const wait = graph.wait_of(thread);
        wait != nullptr && wait->unknown != Unknown::not_waiting)
        return wait_text(graph, *wait);
    const ThreadSnapshot* const snapshot = graph.threads[thread].snapshot;
    if (snapshot == nullptr)
        return "is not in the capture";
    if (!snapshot->state)
        return "is in an unknown state";
    const std::uint32_t state = *snapshot->state;
    if (snapshot->has(kThreadOnCore))
        return snapshot->last_processor
                   ? fmt::format("is running on CPU {}", *snapshot->last_processor)
                   : std::string("is running");
    if ((state & (SS_TH_TERMINATE | SS_TH_TERMINATE2)) != 0)
        return "is terminating";
    if ((state & SS_TH_SUSP) != 0)
        return "is suspended";
    if ((state & SS_TH_IDLE) != 0)
        return "is an idle thread";
    if ((state & SS_TH_WAIT) != 0)
        return snapshot->wait_event.value_or(0) != 0
                   ? fmt::format("waits for event {:#x}", *snapshot->wait_event)
                   : std::string("waits, for what is not recorded");
    if ((state & SS_TH_RUN) != 0)
        return "is runnable, but not running";
    return fmt::format("is in state {:#x}", state);
}

std::string chain_text(const WaitGraph& graph, const WaitGraph::Wait& wait) {
    std::string text = wait_text(graph, wait);
    std::unordered_set<std::size_t> passed{wait.thread};
    const WaitGraph::Wait* link = &wait;
    while (link->blocker == Blocker::thread) {
        const std::size_t thread = link->blocked_by;
        if (!passed.insert(thread).second) {
            // A thread that waits for itself says so already.
            if (thread == link->thread)
                return text;
            return text + (thread == wait.thread ? ": a deadlock" : ", which is in a deadlock");
        }
        if (graph.threads[thread].snapshot == nullptr)
            return text;
        if (passed.size() <= shown_links)
            text += ", which " + activity_text(graph, thread);
        const WaitGraph::Wait* const next = graph.wait_of(thread);
        if (next != nullptr && next->blocker == Blocker::thread) {
            link = next;
            continue;
        }
        if (passed.size() > shown_links)
            text += fmt::format(", and so on; the last of {} is {}, which {}", passed.size(),
                                thread_text(graph, thread), activity_text(graph, thread));
        return text;
    }
    return text;
}

}  // namespace tools
