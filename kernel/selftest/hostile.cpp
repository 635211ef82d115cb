#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "kcdata/reader.hpp"
#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kcdata/types.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"
#include "kernel/turnstile.hpp"
#include "platform/arm64/exception/frame.hpp"
#include "platform/arm64/mmu/layout.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/request.hpp"

// Captures of a kernel whose data is corrupt: while the world stands still, words of sacrificial
// tasks and threads and of their stacks are overwritten, and put back behind the capture.
namespace kernel::selftest {
namespace {

using namespace kcdata;
using platform::FrameRecord;

/// A word and what it is overwritten with.
struct Patch {
    std::uint64_t* word = nullptr;
    std::uint64_t value = 0;
};
using Patches = std::array<Patch, 8>;

template <typename T>
std::uint64_t address_of(const T* object) {
    return reinterpret_cast<std::uint64_t>(object);
}
/// The `n`-th word of `object`.
template <typename T>
std::uint64_t* word_of(T& object, std::size_t n = 0) {
    return reinterpret_cast<std::uint64_t*>(&object) + n;
}

class CorruptingTrap final : public stackshot::ForwardingBody {
  public:
    CorruptingTrap(stackshot::TrapBody& body, const Patches& patches)
        : ForwardingBody(body), patches_(patches) {}
    void initiator(stackshot::Quiesced& quiesced) override {
        // Other CPUs wait for the body, and it for them.
        exchange();
        ForwardingBody::initiator(quiesced);
        exchange();
    }

  private:
    void exchange() {
        for (Patch& patch : patches_)
            if (patch.word != nullptr)
                std::swap(*patch.word, patch.value);
    }

    Patches patches_;
};

/// What a capture shows of one thread and its task. Of others it may not be the same twice.
struct Seen {
    static constexpr std::size_t most_frames = 64;

    kern_return error = KERN_SUCCESS;
    std::size_t threads = 0;  ///< of the task
    std::uint64_t flags = 0;
    std::array<std::uint64_t, most_frames> frames{};
    std::size_t frame_count = 0;
    bool name_ends = false;
    std::size_t waits = 0;  ///< of the thread; 1 if it is told what it waits for
    std::uint64_t wait_context = 0;
    std::uint64_t turnstile_flags = 0;
};

/// Looks for `thread` in an array of what a task's threads wait for.
void look_at_waits(const Item& item, const Thread& thread, Seen& seen) {
    for (std::size_t n = 0; n < item.element_count; n++) {
        const std::byte* const element = item.payload.data() + n * item.element_size;
        stackshot_thread_waitinfo_v2 wait{};
        stackshot_thread_turnstileinfo_v2 turnstile{};
        if (item.element_type == STACKSHOT_KCTYPE_THREAD_WAITINFO)
            std::memcpy(&wait, element, sizeof(wait));
        else
            std::memcpy(&turnstile, element, sizeof(turnstile));
        if (wait.waiter == thread.thread_id) {
            seen.waits++;
            seen.wait_context = wait.context;
        }
        if (turnstile.waiter == thread.thread_id)
            seen.turnstile_flags = turnstile.turnstile_flags;
    }
}

void look_at(Verdict& verdict, std::span<const std::byte> capture, const Thread& thread,
             Seen& seen) {
    Reader reader(capture);
    bool in_task = false;
    bool in_thread = false;
    for (Item item; reader.next(item);) {
        if (item.kind == ItemKind::container_begin) {
            if (item.container_type == STACKSHOT_KCCONTAINER_TASK)
                in_task = item.container_id == thread.task->unique_pid;
            in_thread = item.container_type == STACKSHOT_KCCONTAINER_THREAD &&
                        item.container_id == thread.thread_id;
            continue;
        }
        if (item.kind == ItemKind::array &&
            (item.element_type == STACKSHOT_KCTYPE_THREAD_WAITINFO ||
             item.element_type == STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO))
            look_at_waits(item, thread, seen);
        seen.threads += in_task && item.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT;
        if (!in_thread)
            continue;
        if (item.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT)
            std::memcpy(&seen.flags,
                        item.payload.data() + offsetof(thread_snapshot_v4, ths_ss_flags),
                        sizeof(seen.flags));
        if (item.type == STACKSHOT_KCTYPE_THREAD_NAME)
            seen.name_ends = item.payload.back() == std::byte{0};
        if (item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_KERN_STACKLR64) {
            seen.frame_count = std::min<std::size_t>(item.element_count, seen.frames.size());
            std::memcpy(seen.frames.data(), item.payload.data(),
                        seen.frame_count * sizeof(seen.frames[0]));
        }
    }
    if (reader.error() != ReadError::none)
        verdict.fail("not valid kcdata: %s at %zu", read_error_text(reader.error()),
                     reader.offset());
}

struct Session {
    Verdict& verdict;
    Thread& victim;
    std::size_t captures = 0;
    std::size_t corruptions = 0;

    Seen capture(stackshot::Mode mode, const Patches& patches) {
        stackshot::System& system = stackshot_system();
        stackshot::Request request;
        request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_THREAD_WAITINFO;
        const auto estimate = stackshot::estimate_stackshot(system.facts(), system.task_count(),
                                                            system.thread_count(), request);
        Seen seen;
        stackshot::Attempt attempt(system);
        if (attempt.prepare(request, estimate, 2 * estimate.size, mode) != KERN_SUCCESS) {
            verdict.fail("no memory for a capture");
            return seen;
        }
        stackshot::Collection* const collection = &attempt.collection();
        stackshot::CaptureTrap body(std::span(&collection, 1));
        CorruptingTrap corrupting(body, patches);
        system.trap(corrupting);
        captures++;
        auto assembled = attempt.assemble({});
        seen.error = assembled.ok() ? KERN_SUCCESS : assembled.error();
        if (assembled.ok()) {
            look_at(verdict, assembled->buffer.first(assembled->size), victim, seen);
            system.free(assembled->buffer);
        }
        return seen;
    }

    /// What a capture is to show: an error, or the victim with so many of its frames (unless it is
    /// to have all of them) and with these of the flags below.
    struct Expected {
        kern_return error = KERN_SUCCESS;
        std::size_t frames = SIZE_MAX;
        std::uint64_t flags = 0;
        /// Frames at the end that are not the victim's.
        std::size_t strange = 0;
        /// Whether it is known where it waits; and what of the turnstile is.
        bool wait_known = true;
        std::uint64_t turnstile_flags = STACKSHOT_TURNSTILE_STATUS_UNKNOWN;
    };
    static constexpr std::uint64_t flags_looked_at = kThreadTruncatedBT | kThreadTruncKernBT |
                                                     kThreadTruncUserBT | kThreadFaultedBT |
                                                     kThreadTriedFaultBT;

    /// A capture with the patches, then one without, in each mode.
    void check(const char* what, const Patches& patches, const Expected& expected) {
        if (verdict.failed())
            return;
        corruptions++;
        for (const auto mode : {stackshot::Mode::single_threaded, stackshot::Mode::parallel}) {
            const char* const name =
                mode == stackshot::Mode::parallel ? "parallel" : "single-threaded";
            const Seen good = capture(mode, {});
            const Seen bad = capture(mode, patches);
            const Seen again = capture(mode, {});
            if (verdict.failed())
                return;
            if (good.error != KERN_SUCCESS || again.error != KERN_SUCCESS ||
                again.threads != good.threads || again.frame_count != good.frame_count ||
                (again.flags & flags_looked_at) != 0)
                return verdict.fail(
                    "%s, %s: before it %s with %zu threads and %zu frames, behind it %s with %zu "
                    "and %zu and flags %lx",
                    what, name, kern_return_name(good.error), good.threads, good.frame_count,
                    kern_return_name(again.error), again.threads, again.frame_count,
                    again.flags & flags_looked_at);
            if (bad.error != expected.error)
                return verdict.fail("%s, %s: the capture ends with %s, not with %s", what, name,
                                    kern_return_name(bad.error), kern_return_name(expected.error));
            if (expected.error != KERN_SUCCESS)
                continue;
            const std::size_t frames = std::min(expected.frames, good.frame_count);
            if (!bad.name_ends)
                return verdict.fail("%s, %s: the name does not end", what, name);
            if (bad.threads != good.threads)
                return verdict.fail("%s, %s: %zu threads instead of %zu", what, name, bad.threads,
                                    good.threads);
            if (bad.frame_count != frames ||
                !std::equal(
                    bad.frames.begin(),
                    bad.frames.begin() + static_cast<std::ptrdiff_t>(frames - expected.strange),
                    good.frames.begin()))
                return verdict.fail("%s, %s: %zu frames instead of the first %zu", what, name,
                                    bad.frame_count, frames);
            if (bad.waits != 1 || bad.turnstile_flags != expected.turnstile_flags ||
                bad.wait_context != (expected.wait_known ? good.wait_context : 0))
                return verdict.fail("%s, %s: %zu waits, for %lx with turnstile flags %lx", what,
                                    name, bad.waits, bad.wait_context, bad.turnstile_flags);
            if ((bad.flags & flags_looked_at) != expected.flags)
                return verdict.fail("%s, %s: the flags are %lx, not %lx", what, name,
                                    bad.flags & flags_looked_at, expected.flags);
        }
    }
};

/// Addresses that nothing of the kernel's is at, in every way.
struct WildAddress {
    const char* name;
    std::uint64_t address;
};

constexpr std::uint64_t incomplete = kThreadTruncatedBT;
constexpr std::uint64_t unreadable = kThreadTruncatedBT | kThreadTruncKernBT;

void corrupt_frame_chain(Session& session) {
    Thread& victim = session.victim;
    // The records of the victim's blocked stack, innermost first.
    auto* const first = reinterpret_cast<FrameRecord*>(victim.context.fp);
    auto* const second = reinterpret_cast<FrameRecord*>(first->fp);
    std::uint64_t* const link = word_of(*second);
    // Behind the PC and two return addresses the chain is not as it should be.
    constexpr std::size_t left = 3;
    const auto cut = [&](const char* what, std::uint64_t fp) {
        session.check(what, {Patch{link, fp}}, {.frames = left, .flags = incomplete});
    };
    cut("a record that leads to itself", address_of(second));
    cut("a record that leads back", address_of(first));
    cut("a record that overlaps the one before", address_of(second) + 8);
    cut("a misaligned record", second->fp + 4);
    cut("a record in another stack", victim.stack.high + 0x4100);
    cut("a record across the end of the stack", victim.stack.high - 8);
    cut("a record in the guard", victim.stack.low - 0x100);
    cut("a record in a device", platform::mmu::device_base);
    cut("a record at the end of memory", ~std::uint64_t{7});
    cut("a record in nobody's memory", platform::mmu::vm_end - 0x1000);
    session.check("a record that says the stack ends", {Patch{link, 0}}, {.frames = left});

    // With bounds that are corrupt as well, nothing is left to stop a read but the read itself.
    std::uint64_t* const low = word_of(victim.stack, 0);
    std::uint64_t* const high = word_of(victim.stack, 1);
    session.check("a stack that goes on into the next guard",
                  {Patch{link, victim.stack.high + 0x100}, Patch{high, victim.stack.high + 0x4000}},
                  {.frames = left, .flags = unreadable});
    session.check("a stack of all memory below the devices",
                  {Patch{low, 0x1000}, Patch{high, platform::mmu::device_base},
                   Patch{link, platform::mmu::vm_end - 0x1000}},
                  {.frames = left, .flags = unreadable});
    session.check(
        "a stack in a device",
        {Patch{low, platform::mmu::device_base}, Patch{high, platform::mmu::device_base + 0x4000},
         Patch{word_of(victim.context.fp), platform::mmu::device_base + 0x100}},
        {.frames = 1, .flags = unreadable});
    session.check("a stack with devices in it",
                  {Patch{low, 0x1000}, Patch{high, ~std::uint64_t{0}}},
                  {.frames = 1, .flags = unreadable});
    session.check("a stack that ends before it begins",
                  {Patch{low, victim.stack.high}, Patch{high, victim.stack.low}},
                  {.frames = 1, .flags = incomplete});
    session.check("a stack pointer in nobody's memory",
                  {Patch{word_of(victim.context.sp), platform::mmu::vm_end - 0x1000}}, {});
    // An exception's record, where no exception was.
    session.check("a return address in the exception entry code",
                  {Patch{word_of(*first, 1), platform::exception_entry_range().begin + 8}},
                  {.frames = 2, .flags = unreadable, .strange = 1});
}

/// `link`: the list link of the element `element`, whose predecessor is `before`.
void corrupt_list(Session& session, const char* list, std::uint64_t* link, std::uint64_t element,
                  std::uint64_t before, std::span<const WildAddress> wild) {
    constexpr Session::Expected failure{.error = KERN_FAILURE};
    const auto leads = [&](const char* where, std::uint64_t address) {
        char what[100];
        format_to(what, sizeof(what), "a %s list that leads %s", list, where);
        session.check(what, {Patch{link, address}}, failure);
    };
    leads("to the same element", element);
    leads("back", before);
    for (const WildAddress& to : wild)
        leads(to.name, to.address);
    session.check("an element that names another predecessor", {Patch{link + 1, element}}, failure);
}

void corrupt_lists(Session& session) {
    Thread& victim = session.victim;
    Task& task = *victim.task;
    const WildAddress wild[] = {
        {"into the guard of a stack", victim.stack.low - 0x1000},
        {"to nobody's memory", platform::mmu::vm_end - 0x1000},
        {"to a lower half address", 0x1000},
        {"to an address that is none", 0x1234'5678'9abc'def0},
        {"into a device", platform::mmu::device_base},
        {"to an object that lies askew", address_of(&task) + 4},
        {"to a readable object that is none",
         platform::exception_entry_range().begin & ~std::uint64_t{7}},
        {"to the end of memory", ~std::uint64_t{7}},
    };
    Task& before = *TaskList::previous(task);
    corrupt_list(session, "task", word_of(task.link), address_of(&task), address_of(&before), wild);
    Thread& first = *task.threads.first();
    corrupt_list(session, "thread", word_of(victim.task_link), address_of(&victim),
                 address_of(&first), wild);
    for (const WildAddress& to : wild) {
        char what[100];
        format_to(what, sizeof(what), "a thread list that begins and leads %s", to.name);
        session.check(what, {Patch{word_of(task.threads), to.address}}, {.error = KERN_FAILURE});
    }
    session.check("a thread list that begins with the second",
                  {Patch{word_of(task.threads), address_of(&victim)}}, {.error = KERN_FAILURE});
}

/// Values that are wrong, and are no reason to give up.
void corrupt_values(Session& session) {
    Thread& victim = session.victim;
    Patches nameless;
    for (std::size_t i = 0; i < nameless.size(); i++)
        nameless[i] = {word_of(victim.name, i), 0x7878'7878'7878'7878};
    session.check("a name without an end", nameless, {});
    session.check("a CPU that there is not",
                  {Patch{word_of(victim.state), ~std::uint64_t{0}},
                   Patch{word_of(victim.last_cpu), 0x4141'4141'4141'4141}},
                  {});
    session.check("more threads than memory has room for",
                  {Patch{word_of(victim.task->thread_count), ~std::uint64_t{0}}}, {});
}

/// What a thread waits for is not where it says, or not whole.
void corrupt_waits(Session& session) {
    Thread& victim = session.victim;
    Turnstile& turnstile = *victim.turnstile;
    std::uint64_t* const inheritor = word_of(turnstile, Turnstile::inheritor_offset / 8);
    constexpr WildAddress wild[] = {
        {"in a device", platform::mmu::device_base},
        {"at the end of memory", ~std::uint64_t{15}},
        {"in nobody's memory", platform::mmu::vm_end - 0x1000},
        {"that is misaligned", 0xffff'ffff'8000'0004},
        {"in the lower half", 0x1000},
    };
    for (const auto& [name, address] : wild) {
        session.check(name, {Patch{word_of(victim.turnstile), address}}, {.wait_known = false});
        session.check(name, {Patch{inheritor, address}}, {.wait_known = false});
    }
    std::uint64_t* const status = word_of(turnstile, Turnstile::status_offset / 8);
    session.check("a turnstile in the middle of a change", {Patch{status, *status | 1}},
                  {.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ});
    session.check("an inheritor in the middle of a change",
                  {Patch{status, *status | 1}, Patch{inheritor, wild[0].address}},
                  {.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ});
}

/// The second of the threads of the task called `name`.
Thread* second_thread_of(const char* name) {
    SchedulerGuard guard;
    for (Task* task = task_list().first(); task != nullptr; task = TaskList::next(*task))
        if (std::strcmp(task->name, name) == 0 && task->threads.first() != nullptr)
            return ThreadList::next(*task->threads.first());
    return nullptr;
}

}  // namespace

void hostile_test(Verdict& verdict) {
    if (!start_waiting_tasks(verdict, {.tasks = 3, .threads_per_task = 3, .depth = 12}))
        return;
    Thread* const victim = second_thread_of("waiting-1");
    if (victim == nullptr)
        return verdict.fail("the tasks that are to be corrupted are not there");
    Session session{verdict, *victim};
    corrupt_frame_chain(session);
    corrupt_lists(session);
    corrupt_values(session);
    corrupt_waits(session);
    console::print("hostile: %zu corruptions in both modes, %zu captures\n", session.corruptions,
                   session.captures);
}

}  // namespace kernel::selftest
