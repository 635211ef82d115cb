#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kcdata/reader.hpp"
#include "kcdata/records.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kcdata/types.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/selftest/waiting_tasks.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/request.hpp"

// Takes a single-threaded and a parallel capture of the same frozen world, inside one trap, and
// compares them byte for byte outside of the fields named below.
namespace kernel::selftest {
namespace {

using namespace kcdata;

/// Part of a payload that may differ: it tells when or how a capture was taken, not of what.
struct Varying {
    std::uint32_t type;
    std::size_t begin, end;
};
constexpr Varying varying[] = {
    {KCDATA_TYPE_MACH_ABSOLUTE_TIME, 0, sizeof(std::uint64_t)},  // when the walk began
    {KCDATA_TYPE_USECS_SINCE_EPOCH, 0, sizeof(std::uint64_t)},   // when the preflight was
    {STACKSHOT_KCTYPE_STACKSHOT_DURATION, 0,
     offsetof(stackshot_duration_v2, stackshot_duration_prior)},
    {STACKSHOT_KCTYPE_LATENCY_INFO, offsetof(stackshot_latency_collection_v2, setup_latency_mt),
     sizeof(stackshot_latency_collection_v2)},
    {STACKSHOT_KCTYPE_LATENCY_INFO_TASK, offsetof(stackshot_latency_task, setup_latency),
     sizeof(stackshot_latency_task)},
    {STACKSHOT_KCTYPE_LATENCY_INFO_THREAD, offsetof(stackshot_latency_thread, cur_thsnap1_latency),
     sizeof(stackshot_latency_thread)},
};

bool may_differ(const Item& item, std::size_t at) {
    return std::ranges::any_of(varying, [&](const Varying& part) {
        return item.type == part.type && at >= part.begin && at < part.end;
    });
}

/// Tasks and threads, as one side or the other counts them.
struct Totals {
    std::uint64_t tasks = 0;
    std::uint64_t threads = 0;

    bool operator==(const Totals&) const = default;
};

/// STACKSHOT_KCTYPE_LATENCY_INFO_CPU has an element for each CPU that worked, which tells what that
/// CPU did. Nothing but the sums is the same in both modes.
bool is_latency(const Item& item) {
    return item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_LATENCY_INFO_CPU &&
           item.element_size == sizeof(stackshot_latency_cpu);
}

Totals processed(const Item& latencies) {
    Totals totals;
    for (std::size_t i = 0; i < latencies.element_count; i++) {
        stackshot_latency_cpu latency;
        std::memcpy(&latency, latencies.payload.data() + i * sizeof(latency), sizeof(latency));
        totals.tasks += latency.tasks_processed;
        totals.threads += latency.threads_processed;
    }
    return totals;
}

struct Comparison {
    std::size_t items = 0;
    std::size_t parts = 0;  ///< that the parallel captures cut tasks into, above one each
    Totals written{};
};

/// An item and the bytes it was read from.
struct ItemInBuffer {
    const Item& item;
    std::span<const std::byte> buffer;

    std::span<const std::byte> header() const {
        return buffer.subspan(item.offset, sizeof(ItemHeader));
    }
};

bool same(const ItemInBuffer& one, const ItemInBuffer& other) {
    if (!std::ranges::equal(one.header(), other.header()) ||
        one.item.payload.size() != other.item.payload.size())
        return false;
    for (std::size_t at = 0; at < one.item.payload.size(); at++)
        if (one.item.payload[at] != other.item.payload[at] && !may_differ(one.item, at))
            return false;
    return true;
}

Comparison compare(Verdict& verdict, std::span<const std::byte> single,
                   std::span<const std::byte> parallel, const Totals& wanted) {
    Comparison comparison;
    Reader first(single);
    Reader second(parallel);
    Item a;
    Item b;
    while (first.next(a)) {
        if (!second.next(b)) {
            verdict.fail("the parallel capture ends at item %zu", comparison.items);
            return comparison;
        }
        comparison.items++;
        comparison.written.tasks += a.type == STACKSHOT_KCTYPE_TASK_SNAPSHOT ||
                                    a.type == STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT;
        comparison.written.threads += a.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT;
        if (is_latency(a) && is_latency(b)) {
            if (processed(a) != wanted || processed(b) != wanted)
                verdict.fail("the CPUs have processed %lu and %lu threads of %lu",
                             processed(a).threads, processed(b).threads, wanted.threads);
        } else if (!same({a, single}, {b, parallel})) {
            verdict.fail("item %zu: type 0x%x at %zu and type 0x%x at %zu differ", comparison.items,
                         a.type, a.offset, b.type, b.offset);
        }
    }
    if (second.next(b))
        verdict.fail("the parallel capture goes on behind item %zu", comparison.items);
    if (first.error() != ReadError::none || second.error() != ReadError::none)
        verdict.fail("not valid kcdata: %s, %s", read_error_text(first.error()),
                     read_error_text(second.error()));
    if (comparison.written != wanted)
        verdict.fail("%lu tasks and %lu threads were written of %lu and %lu",
                     comparison.written.tasks, comparison.written.threads, wanted.tasks,
                     wanted.threads);
    return comparison;
}

/// Counts what there is to capture, by the kernel's own count.
class CountingTrap final : public stackshot::ForwardingBody {
  public:
    using ForwardingBody::ForwardingBody;
    void initiator(stackshot::Quiesced& quiesced) override {
        totals = {task_count(), thread_count()};
        ForwardingBody::initiator(quiesced);
    }

    Totals totals{};
};

void compare_modes(Verdict& verdict, Comparison& total) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                    STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_THREAD_WAITINFO | STACKSHOT_GET_DQ |
                    STACKSHOT_SAVE_IMP_DONATION_PIDS | STACKSHOT_THREAD_GROUP |
                    STACKSHOT_SAVE_JETSAM_COALITIONS | STACKSHOT_INSTRS_CYCLES;
    const auto estimate = stackshot::estimate_stackshot(system.facts(), system.task_count(),
                                                        system.thread_count(), request);
    stackshot::Attempt single(system);
    stackshot::Attempt parallel(system);
    if (single.prepare(request, estimate, estimate.size, stackshot::Mode::single_threaded) !=
            KERN_SUCCESS ||
        parallel.prepare(request, estimate, estimate.size, stackshot::Mode::parallel) !=
            KERN_SUCCESS)
        return verdict.fail("no memory for two captures");

    std::array<stackshot::Collection*, 2> collections = {&single.collection(),
                                                         &parallel.collection()};
    stackshot::CaptureTrap body(collections);
    CountingTrap counting(body);
    const stackshot::TrapOutcome outcome = system.trap(counting);
    const stackshot::AssemblyFacts facts;
    auto one = single.assemble(facts);
    auto other = parallel.assemble(facts);
    if (!one.ok() || !other.ok()) {
        verdict.fail("collection failed: single-threaded %s, parallel %s",
                     kern_return_name(one.error()), kern_return_name(other.error()));
    } else {
        if (outcome.absent != 0)
            verdict.fail("CPUs %016lx did not answer", outcome.absent);
        if (parallel.collection().workers() != outcome.stopped)
            verdict.fail("CPUs %016lx stopped, but %016lx worked", outcome.stopped,
                         parallel.collection().workers());
        const Comparison found = compare(verdict, one->buffer.first(one->size),
                                         other->buffer.first(other->size), counting.totals);
        total.items += found.items;
        total.parts += parallel.collection().items().size() - found.written.tasks;
        total.written.tasks += found.written.tasks;
        total.written.threads += found.written.threads;
    }
    if (one.ok())
        system.free(one->buffer);
    if (other.ok())
        system.free(other->buffer);
}

/// What the device tree says of the CPUs: a letter for each.
void print_cluster_types() {
    const stackshot::System& system = stackshot_system();
    char letters[max_cpus + 1] = {};
    for (CpuIndex cpu = 0; cpu < system.facts().cpu_count; cpu++)
        letters[cpu] =
            "SEP"[static_cast<std::size_t>(system.facts().cluster_types[system.cluster_of(cpu)])];
    console::print("modes: %u clusters, CPUs %s\n", system.facts().cluster_count, letters);
}

}  // namespace

void modes_test(Verdict& verdict) {
    const std::uint64_t rounds = boot_arguments().number("rounds", 20, 1);
    print_cluster_types();
    // A task of so many threads.
    const std::uint64_t large = boot_arguments().number("modes.threads", 0, 0, 10'000);
    if (large != 0 && !start_waiting_tasks(verdict, {1, large, 3}))
        return;
    Comparison total;
    for (std::uint64_t round = 0; round < rounds && !verdict.failed(); round++) {
        sleep_milliseconds(20 + 7 * round % 50);
        compare_modes(verdict, total);
    }
    // Without CPUs to share it, or threads to share, a task stays whole.
    if (large >= 1000 && std::popcount(machine::online_cpus()) > 1 && total.parts == 0)
        verdict.fail("a task of %lu threads was not cut into parts", large);
    console::print(
        "modes: %lu pairs of captures, %zu items compared, %lu tasks, %lu threads, cut %zu times\n",
        rounds, total.items, total.written.tasks, total.written.threads, total.parts);
}

}  // namespace kernel::selftest
