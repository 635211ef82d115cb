#include <atomic>
#include <cstring>

#include "kernel/event.hpp"
#include "kernel/mutex.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/workload.hpp"

// Threads of every kind a stack walk has to cope with, each kind a task of its own.
namespace kernel::workload {
namespace {

constinit std::uint32_t kind_depth = 0;
/// What the threads compute. Atomic, so that the compiler does not leave it out.
constinit std::atomic<std::uint64_t> result{0};

void store_result(std::uint64_t value) {
    result.store(value, std::memory_order_relaxed);
}

[[gnu::noinline]] std::uint64_t running_inner(std::uint64_t sum) {
    for (int turn = 0; turn < 1000; turn++)
        sum += compute(1, sum);
    return sum;
}
void kind_running(void*) {
    for (std::uint64_t sum = 0;;)
        store_result(sum = running_inner(sum));
}

/// Calls nobody and stays long.
[[gnu::noinline]] std::uint64_t leaf_that_counts(std::uint64_t sum) {
    for (std::uint64_t turn = 0; turn < 2'000'000; turn++)
        sum ^= (sum << 13) + turn;
    return sum;
}
void kind_leaf(void*) {
    for (std::uint64_t sum = 1;;)
        store_result(sum = leaf_that_counts(sum));
}

/// So small that most of it is prologue and epilogue.
[[gnu::noinline]] std::uint64_t tiny_leaf(std::uint64_t value) {
    return value + 1;
}
[[gnu::noinline]] std::uint64_t tiny_middle(std::uint64_t value) {
    return tiny_leaf(value) + 1;
}
[[gnu::noinline]] std::uint64_t tiny_outer(std::uint64_t value) {
    return tiny_middle(value) + tiny_leaf(value);
}
void kind_prologue(void*) {
    for (std::uint64_t value = 0;;)
        store_result(value = tiny_outer(value));
}

/// Stays in the C library's assembly, which has neither frame records nor call frame information.
void kind_copying(void*) {
    std::uint64_t here[240] = {};
    std::uint64_t there[240] = {};
    // The compiler knows what memcpy() does: it is not to see that this comes to nothing.
    void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
    for (;;) {
        copy(there, here, sizeof(there));
        copy(here, there, sizeof(here));
        store_result(++here[0]);
    }
}

[[gnu::noinline]] std::uint64_t deep_descend(std::uint64_t sum, std::uint32_t depth) {
    if (depth <= 1)
        return compute(20'000, sum);
    return 1 + deep_descend(sum, depth - 1);
}
void kind_deep(void*) {
    for (std::uint64_t sum = 0;;)
        store_result(sum = deep_descend(sum, kind_depth));
}

constinit Mutex held_mutex;
constinit Event mutex_is_held;
void kind_mutex_owner(void*) {
    MutexGuard guard(held_mutex);
    mutex_is_held.set();
    for (;;)
        sleep_milliseconds(1000);
}
void kind_blocked_on_mutex(void*) {
    MutexGuard guard(held_mutex);
}
constinit Semaphore empty_semaphore;
void kind_blocked_on_semaphore(void*) {
    empty_semaphore.wait();
}
constinit Event event_to_come;
void kind_blocked_on_event(void*) {
    event_to_come.wait();
}

[[gnu::noinline]] std::uint32_t sleep_below(std::uint32_t depth) {
    if (depth <= 1) {
        sleep_milliseconds(60'000);
        return 1;
    }
    return 1 + sleep_below(depth - 1);
}
void kind_sleeping(void*) {
    for (;;)
        sleep_below(kind_depth);
}

void never_runs(void*) {}

void kind_ends_at_once(void*) {}
/// Ended threads stay visible until they are taken apart; new ones come faster than that.
void kind_spawner(void* argument) {
    Task& task = *static_cast<Task*>(argument);
    for (;;) {
        make_thread(task, kind_ends_at_once, nullptr, {.priority = 60}, "exiting");
        sleep_milliseconds(2);
    }
}

struct Kind {
    const char* name;
    ThreadEntry entry;
    int priority;
};
constexpr Kind kinds[] = {
    {"running", kind_running, BASEPRI_DEFAULT},
    {"leaf", kind_leaf, BASEPRI_DEFAULT},
    {"prologue", kind_prologue, BASEPRI_DEFAULT},
    {"copying", kind_copying, BASEPRI_DEFAULT},
    {"deep", kind_deep, BASEPRI_DEFAULT},
    {"blocked.mutex", kind_blocked_on_mutex, BASEPRI_FOREGROUND},
    {"blocked.semaphore", kind_blocked_on_semaphore, BASEPRI_FOREGROUND},
    {"blocked.event", kind_blocked_on_event, BASEPRI_FOREGROUND},
    {"sleeping", kind_sleeping, BASEPRI_FOREGROUND},
};

}  // namespace

/// threads (4) of each kind; recursions are depth (32) frames deep.
void start_kinds(const Size& size) {
    const std::uint32_t threads = size.threads != 0 ? size.threads : 4;
    kind_depth = size.depth != 0 ? size.depth : 32;

    Task& owner = make_task("mutex-owner");
    make_thread(owner, kind_mutex_owner, nullptr, {.priority = BASEPRI_FOREGROUND}, "owner");
    mutex_is_held.wait();
    task_release(owner);

    for (const Kind& kind : kinds) {
        Task& task = make_task(kind.name);
        for (std::uintptr_t index = 0; index < threads; index++)
            make_thread(task, kind.entry, reinterpret_cast<void*>(index),
                        {.priority = kind.priority}, "%s.%zu", kind.name, index);
        task_release(task);
    }

    Task& created = make_task("created");
    for (std::uint32_t index = 0; index < threads; index++) {
        auto thread = thread_create(created, "created", never_runs, nullptr);
        CHECK(thread.ok());
    }
    task_release(created);

    Task& exiting = make_task("exiting");
    make_thread(exiting, kind_spawner, &exiting, {.priority = 61}, "spawner");
    task_release(exiting);
}

}  // namespace kernel::workload
