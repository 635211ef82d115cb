#include <array>
#include <atomic>

#include "kernel/format_text.hpp"
#include "kernel/heap.hpp"
#include "kernel/list.hpp"
#include "kernel/mutex.hpp"
#include "kernel/panic.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel::workload {
namespace {

/// What the threads of one task share. The last one to leave it takes it apart.
struct Ship {
    std::uint32_t number = 0;
    std::uint32_t depth = 0;
    Mutex helm{};
    Semaphore cargo{};
    std::uint32_t sailors = 0;
    std::atomic<std::uint32_t> aboard{0};
    std::atomic<bool> called_home{false};
    ListLink<Ship> link{};
};

constinit Mutex fleet_mutex;
constinit List<Ship, &Ship::link> fleet;

/// What a sailor does at the bottom of its stack.
using Duty = void (*)(Ship& ship, Random& random);

void keep_watch(Ship&, Random& random) {
    sleep_milliseconds(1000 + random.below(4000));
}
void take_the_helm(Ship& ship, Random& random) {
    MutexGuard guard(ship.helm);
    sleep_milliseconds(100 + random.below(400));
}
void unload_cargo(Ship& ship, Random&) {
    ship.cargo.wait();
    compute(100, ship.number);
}
void load_cargo(Ship& ship, Random& random) {
    compute(500, ship.number);
    ship.cargo.signal();
    sleep_milliseconds(500 + random.below(1000));
}
constexpr std::array<Duty, 4> duties = {load_cargo, keep_watch, take_the_helm, unload_cargo};
constexpr std::array<const char*, 4> duty_names = {"load", "watch", "helm", "unload"};

/// `decks` more frames, then the duty.
[[gnu::noinline]] std::uint32_t go_below(Ship& ship, Random& random, Duty duty,
                                         std::uint32_t decks) {
    if (decks <= 1) {
        duty(ship, random);
        return 1;
    }
    return 1 + go_below(ship, random, duty, decks - 1);
}

struct Sailor {
    Ship* ship = nullptr;
    std::uint32_t number = 0;
};

void fleet_sailor(void* argument) {
    const Sailor self = *static_cast<Sailor*>(argument);
    Ship& ship = *self.ship;
    Random random(std::uint64_t{ship.number} << 32 | self.number);
    const Duty duty = duties[self.number % duties.size()];
    while (!ship.called_home.load(std::memory_order_relaxed)) {
        const std::uint32_t decks = go_below(ship, random, duty, ship.depth);
        CHECK(decks == ship.depth);
    }
    heap::destroy(static_cast<Sailor*>(argument));
    // Under the mutex: who calls the ships home is done with this one.
    MutexGuard guard(fleet_mutex);
    if (ship.aboard.fetch_sub(1, std::memory_order_relaxed) != 1)
        return;
    fleet.remove(ship);
    heap::destroy(&ship);
}

template <typename T>
T& make() {
    T* const object = heap::create<T>();
    if (object == nullptr)
        panic("workload: no memory for the fleet");
    return *object;
}

}  // namespace

/// tasks (10) of threads (10) each, most of which wait with depth (8) frames of their own.
void start_fleet(const Size& size) {
    const std::uint32_t ships = size.tasks != 0 ? size.tasks : 10;
    const std::uint32_t sailors = size.threads != 0 ? size.threads : 10;
    for (std::uint32_t number = 0; number < ships; number++) {
        Ship& ship = make<Ship>();
        ship.number = number;
        ship.depth = size.depth != 0 ? size.depth : 8;
        ship.sailors = sailors;
        ship.aboard.store(sailors, std::memory_order_relaxed);
        {
            MutexGuard guard(fleet_mutex);
            fleet.push_back(ship);
        }
        char name[Task::max_name + 1];
        format_to(name, sizeof(name), "ship-%u", number);
        Task& task = make_task(name);
        for (std::uint32_t index = 0; index < sailors; index++) {
            Sailor& sailor = make<Sailor>();
            sailor = {&ship, index};
            make_thread(task, fleet_sailor, &sailor, {}, "sailor.%s.%u",
                        duty_names[index % duty_names.size()], index);
        }
        task_release(task);
    }
}

/// Those who sleep notice when they wake up, five seconds later at most.
kcdata::kern_return stop_fleet() {
    constexpr int tenths_of_a_second = 150;
    for (int waited = 0; waited < tenths_of_a_second; waited++) {
        {
            MutexGuard guard(fleet_mutex);
            if (fleet.empty())
                return waited == 0 ? kcdata::KERN_NOT_IN_SET : kcdata::KERN_SUCCESS;
            for (Ship* ship = fleet.first(); ship != nullptr;
                 ship = List<Ship, &Ship::link>::next(*ship)) {
                if (ship->called_home.exchange(true, std::memory_order_relaxed))
                    continue;
                for (std::uint32_t sailor = 0; sailor < ship->sailors; sailor++)
                    ship->cargo.signal();
            }
        }
        sleep_milliseconds(100);
    }
    return kcdata::KERN_OPERATION_TIMED_OUT;
}

}  // namespace kernel::workload
