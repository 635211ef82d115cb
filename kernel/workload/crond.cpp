#include <array>

#include "kernel/format_text.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/daemons.hpp"

namespace kernel::workload {
namespace {

constexpr std::size_t stages = 3;

/// A job: threads in a row, each of which waits for the one in front of it.
struct Job {
    std::uint64_t seed = 0;
    std::array<Semaphore, stages + 1> handed_over;
    std::array<std::uint64_t, stages + 1> results{};
};
struct Stage {
    Job* job = nullptr;
    std::size_t number = 0;
};

void job_stage(void* argument) {
    const Stage& stage = *static_cast<Stage*>(argument);
    Job& job = *stage.job;
    job.handed_over[stage.number].wait();
    Random random(job.seed + stage.number);
    compute(200 + random.below(800), job.seed);
    sleep_microseconds(random.below(20'000));
    job.results[stage.number + 1] = job.results[stage.number] + 1;
    job.handed_over[stage.number + 1].signal();
}

void run_job(Task& task, std::uint64_t seed) {
    Job job;
    job.seed = seed;
    std::array<Stage, stages> stage;
    std::array<Thread*, stages> threads;
    for (std::size_t number = 0; number < stages; number++) {
        stage[number] = {&job, number};
        threads[number] = &make_thread(task, job_stage, &stage[number],
                                       {.priority = 24, .joinable = true}, "job.stage.%zu", number);
    }
    job.handed_over[0].signal();
    for (Thread* thread : threads)
        thread_join(*thread);
    CHECK(job.results[stages] == stages);
}

void cron_runner(void* argument) {
    Random random(reinterpret_cast<std::uint64_t>(argument));
    for (std::uint64_t number = 0;; number++) {
        char name[Task::max_name + 1];
        format_to(name, sizeof(name), "job-%zu-%lu", reinterpret_cast<std::uintptr_t>(argument),
                  number);
        Task& task = make_task(name);
        run_job(task, random.next());
        task_release(task);
        sleep_microseconds(random.below(10'000));
    }
}

}  // namespace

void start_crond(std::uint32_t jobs) {
    Task& task = make_task("crond");
    for (std::uintptr_t index = 0; index < jobs; index++)
        make_thread(task, cron_runner, reinterpret_cast<void*>(index), {.priority = 33},
                    "cron.runner.%zu", index);
    task_release(task);
}

}  // namespace kernel::workload
