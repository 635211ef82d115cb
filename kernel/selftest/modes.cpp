#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kcdata/reader.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kcdata/types.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_system.hpp"
#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"
#include "stackshot/request.hpp"

// Takes a single-threaded and a parallel capture of the same frozen world, inside one trap, and
// compares them byte for byte outside of what varying() names.
namespace kernel::selftest {
namespace {

using namespace kcdata;

/// What an item holds, or what an array's elements are.
std::uint32_t record_type(const Item& item) {
    return item.kind == ItemKind::array ? item.element_type : item.type;
}

/// Whether an item may differ: it tells when or by whom a capture was taken, not of what.
bool varying(const Item& item) {
    switch (record_type(item)) {
        case KCDATA_TYPE_MACH_ABSOLUTE_TIME:       // when the walk began
        case KCDATA_TYPE_USECS_SINCE_EPOCH:        // when the preflight was
        case STACKSHOT_KCTYPE_STACKSHOT_DURATION:  // all three durations
        case STACKSHOT_KCTYPE_LATENCY_INFO_CPU:    // an element for each CPU that worked
            return true;
        default:
            return false;
    }
}

struct Comparison {
    std::size_t items = 0;
    std::size_t varying_items = 0;
    std::size_t tasks = 0;
    std::size_t threads = 0;
};

bool same(const Item& a, const Item& b) {
    return a.type == b.type && a.flags == b.flags && a.payload.size() == b.payload.size() &&
           std::memcmp(a.payload.data(), b.payload.data(), a.payload.size()) == 0;
}

Comparison compare(Verdict& verdict, std::span<const std::byte> single,
                   std::span<const std::byte> parallel) {
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
        comparison.tasks += a.type == STACKSHOT_KCTYPE_TASK_SNAPSHOT;
        comparison.threads += a.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT;
        if (varying(a) && record_type(a) == record_type(b))
            comparison.varying_items++;
        else if (a.kind != b.kind || !same(a, b))
            verdict.fail("item %zu: type 0x%x at %zu and type 0x%x at %zu differ", comparison.items,
                         a.type, a.offset, b.type, b.offset);
    }
    if (second.next(b))
        verdict.fail("the parallel capture goes on behind item %zu", comparison.items);
    if (first.error() != ReadError::none || second.error() != ReadError::none)
        verdict.fail("not valid kcdata: %s, %s", read_error_text(first.error()),
                     read_error_text(second.error()));
    return comparison;
}

void compare_modes(Verdict& verdict, Comparison& total) {
    stackshot::System& system = stackshot_system();
    stackshot::Request request;
    request.flags =
        STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO | STACKSHOT_GET_GLOBAL_MEM_STATS;
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
    const stackshot::TrapOutcome outcome = system.trap(body);
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
        const Comparison found =
            compare(verdict, one->buffer.first(one->size), other->buffer.first(other->size));
        total.items += found.items;
        total.varying_items += found.varying_items;
        total.tasks += found.tasks;
        total.threads += found.threads;
    }
    if (one.ok())
        system.free(one->buffer);
    if (other.ok())
        system.free(other->buffer);
}

}  // namespace

void modes_test(Verdict& verdict) {
    const std::uint64_t rounds = boot_arguments().number("rounds", 20, 1);
    Comparison total;
    for (std::uint64_t round = 0; round < rounds && !verdict.failed(); round++) {
        sleep_milliseconds(20 + 7 * round % 50);
        compare_modes(verdict, total);
    }
    if (total.tasks < rounds || total.threads < rounds)
        verdict.fail("only %zu tasks and %zu threads in %lu captures", total.tasks, total.threads,
                     rounds);
    console::print(
        "modes: %lu pairs of captures, %zu items compared, %zu that may differ, %zu tasks, "
        "%zu threads\n",
        rounds, total.items, total.varying_items, total.tasks, total.threads);
}

}  // namespace kernel::selftest
