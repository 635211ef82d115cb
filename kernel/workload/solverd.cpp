#include "kcdata/records.hpp"
#include "kernel/panic.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/daemons.hpp"

namespace kernel::workload {
namespace {

/// Tries one move after the other, `depth` moves ahead; gives up a branch now and then.
[[gnu::noinline]] std::uint64_t search_moves(Random& random, std::uint32_t depth) {
    const std::uint64_t value = compute(50, depth);
    if (depth <= 1)
        return value;
    std::uint64_t best = search_moves(random, depth - 1);
    if (random.below(6) == 0)
        best ^= search_moves(random, depth - 1 - depth / 3);
    return best + value;
}

constinit std::uint32_t solver_depth = 0;

void solver_search(void* argument) {
    Random random(reinterpret_cast<std::uint64_t>(argument));
    for (;;) {
        // Rests in proportion: most of a CPU, but not all.
        const std::uint64_t start = machine::absolute_time();
        search_moves(random, solver_depth);
        const std::uint64_t worked = machine::absolute_time() - start;
        sleep_until(machine::absolute_time() + worked / 4);
    }
}

[[gnu::noinline]] std::uint32_t place_queens(std::uint32_t columns, std::uint32_t down,
                                             std::uint32_t up, std::uint32_t board) {
    if (columns == board)
        return 1;
    std::uint32_t solutions = 0;
    for (std::uint32_t open = board & ~(columns | down | up); open != 0; open &= open - 1) {
        const std::uint32_t queen = open & -open;
        solutions += place_queens(columns | queen, (down | queen) << 1, (up | queen) >> 1, board);
    }
    return solutions;
}

void solver_queens(void*) {
    for (;;) {
        const std::uint32_t solutions = place_queens(0, 0, 0, (1u << 9) - 1);
        CHECK(solutions == 352);
        sleep_milliseconds(15);
    }
}

}  // namespace

void start_solverd(std::uint32_t threads, std::uint32_t depth) {
    solver_depth = depth;
    Task& task = make_task("solverd", kcdata::kTaskDarwinBG);
    for (std::uintptr_t index = 0; index < threads; index++)
        make_thread(task, solver_search, reinterpret_cast<void*>(index), {.priority = 20},
                    "solver.search.%zu", index);
    make_thread(task, solver_queens, nullptr, {.priority = 22}, "solver.queens");
    task_release(task);
}

}  // namespace kernel::workload
