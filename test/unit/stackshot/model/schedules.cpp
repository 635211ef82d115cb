#include "test/unit/stackshot/model/schedules.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "stackshot/work_queue.hpp"
#include "test/unit/stackshot/comparison.hpp"
#include "test/unit/stackshot/model/model_system.hpp"

namespace model {

using namespace kcdata;
using namespace stackshot;

namespace {

/// Numbers of threads of tasks; the last one is cut into parts.
const std::vector<std::size_t> task_sets[] = {
    {1},
    {2, 0, 20, 1},
    {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
    {3, 11, 70, 2, 10, 9},
};

/// A system that schedules share, and what a capture of it has to be.
struct Subject {
    std::unique_ptr<ModelSystem> system;
    std::size_t threads = 0;
    std::vector<std::byte> reference{};
};

const Request request{Request::all_pids,
                      kcdata::STACKSHOT_KCDATA_FORMAT | kcdata::STACKSHOT_THREAD_WAITINFO};

Estimate estimate_of(const Subject& subject) {
    Estimate estimate;
    // Recorded in the capture, and so the same for all.
    estimate.size = 1'000'000;
    estimate.queue_capacity = subject.system->tasks.size();
    estimate.threads = subject.threads;
    return estimate;
}

Subject& subject_of(std::size_t task_set) {
    static std::map<std::size_t, Subject> subjects;
    Subject& subject = subjects[task_set];
    if (subject.system != nullptr)
        return subject;
    subject.system = std::make_unique<ModelSystem>(max_cpus, 2);
    for (const std::size_t threads : task_sets[task_set]) {
        subject.system->add_task("task", threads, 0);
        subject.threads += threads;
    }
    ModelSystem& system = *subject.system;
    Attempt attempt(system);
    if (attempt.prepare(request, estimate_of(subject), 1'000'000, Mode::single_threaded) !=
        KERN_SUCCESS)
        return subject;
    FakeQuiesced quiesced(0);
    attempt.collection().cpu_preflight(0);
    attempt.collection().initiator(quiesced);
    auto assembled = attempt.assemble({});
    if (assembled.ok()) {
        subject.reference = comparable(assembled->buffer.first(assembled->size));
        system.free(assembled->buffer);
    }
    return subject;
}

}  // namespace

const char* name(Scenario scenario) {
    switch (scenario) {
        case Scenario::undisturbed:
            return "undisturbed";
        case Scenario::little_memory:
            return "little memory";
        case Scenario::errors:
            return "errors";
        case Scenario::panics:
            return "panics";
        case Scenario::all_at_once:
            return "all at once";
    }
    return "unknown";
}

Schedule run_schedule(Scenario scenario, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&random](std::uint64_t limit) { return random() % limit; };
    const bool all = scenario == Scenario::all_at_once;

    Subject& subject = subject_of(draw(std::size(task_sets)));
    if (subject.reference.empty())
        return {.failure = "no single-threaded capture to compare with"};
    ModelSystem& system = *subject.system;
    const auto cpus = static_cast<CpuIndex>(1 + draw(draw(3) == 0 ? max_cpus : 5));
    system.constant.cpu_count = cpus;
    system.cluster_of_cpu.assign(cpus, 0);
    const bool two_types = draw(2) == 0;
    system.constant.cluster_types = {};
    if (two_types) {
        system.constant.cluster_types[0] = ClusterType::P;
        system.constant.cluster_types[1] = ClusterType::E;
    }
    for (std::uint32_t& cluster : system.cluster_of_cpu)
        cluster = static_cast<std::uint32_t>(draw(2));

    Estimate estimate = estimate_of(subject);
    constexpr std::size_t chunks[] = {0, 600, 4000};
    estimate.smallest_chunk = chunks[draw(std::size(chunks))];
    const std::size_t fixed =
        cpus * Unwinder::max_frames * sizeof(std::uint64_t) +
        WorkQueues::storage_size(estimate.queue_capacity + max_extra_parts(cpus), 2);
    std::size_t size = fixed + 4 * subject.reference.size() + 200'000;
    if (scenario == Scenario::little_memory || (all && draw(2) == 0))
        size = draw(8) == 0 ? draw(fixed) : fixed + draw(2 * subject.reference.size());

    std::vector<kern_return> possible;
    system.thread_errors.clear();
    if (scenario == Scenario::errors || (all && draw(2) == 0)) {
        constexpr kern_return errors[] = {KERN_FAILURE, KERN_INVALID_ADDRESS};
        for (std::size_t n = 0; n <= draw(2); ++n) {
            system.thread_errors.emplace_back(1 + draw(subject.threads), errors[n]);
            possible.push_back(errors[n]);
        }
    }
    system.memory_may_end = size <= fixed + 4 * subject.reference.size();
    if (system.memory_may_end)
        possible.push_back(KERN_INSUFFICIENT_BUFFER_SIZE);

    Scheduler scheduler(seed, cpus);
    const bool may_panic = scenario == Scenario::panics || all;
    if (may_panic) {
        for (std::size_t n = 0; n <= draw(2); ++n) {
            // Drawn one after the other: a seed is the same schedule with every compiler.
            const auto cpu = static_cast<unsigned>(draw(cpus));
            scheduler.panic_at(cpu, 1 + draw(draw(2) ? 20 : 400));
        }
    }

    const Outcome outcome = system.collect(scheduler, request, estimate, size);
    const auto failure = [&]() -> std::string {
        if (!outcome.failure.empty())
            return outcome.failure;
        if (outcome.panicked)
            return may_panic ? "" : "a panic out of nothing";
        if (outcome.error == KERN_SUCCESS) {
            if (!system.thread_errors.empty())
                return "an error was lost";
            return outcome.bytes == subject.reference ? "" : "the records are not those of one CPU";
        }
        if (std::find(possible.begin(), possible.end(), outcome.error) == possible.end())
            return std::string("an error that nobody had: ") + kern_return_name(outcome.error);
        return "";
    };
    return {failure(), scheduler.digest()};
}

}  // namespace model
