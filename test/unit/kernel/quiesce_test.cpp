#include "kernel/quiesce.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "test/unit/kernel/stop_machine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using kernel::bit_of;
using kernel::CpuIndex;
using kernel::CpuMask;
using kernel::CpuPosition;
using kernel::Quiesce;
using stackshot::Quiesced;
using stackshot::Registers;
namespace machine = kernel::machine;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr Registers entry{.pc = 0xe000, .lr = 0xe001, .fp = 0xe002, .sp = 0xe003};

/// What one CPU did. Plain memory on purpose: whoever reads it relies on the stop for order, and
/// TSan says so if the stop does not give it.
struct alignas(64) CpuLog {
    std::uint64_t steps = 0;
    std::uint64_t preflights = 0;
    std::uint64_t auxiliaries = 0;
    std::uint64_t pc = 0;
};

/// A world of CPUs that count steps, and a Quiesce that can stop them.
struct World {
    explicit World(CpuIndex count, std::uint64_t acknowledge = 60'000 * ms,
                   CpuMask online = ~CpuMask{0})
        : cpu_count(count) {
        quiesce.set_timeouts({acknowledge, 60'000 * ms});
        stop_machine::power_on(
            count,
            [this] {
                CpuLog& log = logs[machine::current_cpu()];
                quiesce.answer(
                    {.pc = log.pc, .lr = log.pc + 1, .fp = log.pc + 2, .sp = log.pc + 3});
            },
            online);
    }

    /// Runs and takes interrupts, as a CPU does.
    void step() {
        CpuLog& log = logs[machine::current_cpu()];
        log.steps++;
        log.pc = (std::uint64_t{machine::current_cpu()} << 32 | log.steps) << 4;
        std::this_thread::yield();
        stop_machine::poll();
    }

    /// CPUs that do not stop for a panic of the calling one.
    CpuMask panic() { return quiesce.absent(quiesce.stop_for_panic(entry, false)); }

    Quiesce quiesce{};
    CpuIndex cpu_count;
    std::array<CpuLog, 64> logs{};
    std::atomic<CpuIndex> done{0};
};

/// Checks inside each stop that the world stands still and that everybody's position is known.
struct Inspection final : stackshot::TrapBody {
    explicit Inspection(World& stopped) : world(stopped) {}

    void cpu_preflight(CpuIndex cpu) override {
        world.logs[cpu].preflights++;
        preflights.fetch_add(1, std::memory_order_relaxed);
    }
    void auxiliary(Quiesced& quiesced) override {
        world.logs[quiesced.cpu()].auxiliaries++;
        working.fetch_add(1, std::memory_order_release);
    }
    void initiator(Quiesced& quiesced) override {
        const CpuMask absent = world.quiesce.absent(quiesced);
        const auto present = world.cpu_count - static_cast<CpuIndex>(std::popcount(absent));
        preflights_complete = preflights.load(std::memory_order_relaxed) == present;
        for (CpuIndex cpu = 0; cpu < world.cpu_count; cpu++)
            preflights_complete &= (absent & bit_of(cpu)) != 0 || world.logs[cpu].preflights != 0;
        // A collector has such a barrier too: auxiliaries may still be at work.
        while (working.load(std::memory_order_acquire) != present - 1)
            std::this_thread::yield();

        for (CpuIndex cpu = 0; cpu < world.cpu_count; cpu++) {
            if ((absent & bit_of(cpu)) != 0)
                continue;
            CpuPosition position;
            const bool known = world.quiesce.position(cpu, position);
            positions_exact &= known && position.exact;
            if (cpu != quiesced.cpu() && position.interrupted)
                positions_right &= position.registers.pc == world.logs[cpu].pc &&
                                   position.registers.sp == world.logs[cpu].pc + 3;
        }
        std::array<std::uint64_t, 64> before{};
        for (CpuIndex cpu = 0; cpu < world.cpu_count; cpu++)
            if ((absent & bit_of(cpu)) == 0)
                before[cpu] = world.logs[cpu].steps;
        for (int i = 0; i < 3; i++)
            std::this_thread::yield();
        for (CpuIndex cpu = 0; cpu < world.cpu_count; cpu++)
            if ((absent & bit_of(cpu)) == 0)
                stood_still &= before[cpu] == world.logs[cpu].steps;
        inside();
        initiators++;
    }

    bool good() const {
        return preflights_complete && positions_exact && positions_right && stood_still &&
               initiators == 1;
    }

    World& world;
    std::function<void()> inside = [] {};
    std::atomic<CpuIndex> preflights{0};
    std::atomic<CpuIndex> working{0};
    bool preflights_complete = false;
    bool positions_exact = true;
    bool positions_right = true;
    bool stood_still = true;
    int initiators = 0;
};

}  // namespace

TEST_CASE("every CPU stands still at a known place while the initiator works, and goes on after") {
    const auto cpu_count = GENERATE(1U, 2U, 3U, 4U, 8U);
    const int stops = 1000;
    const auto world = std::make_unique<World>(cpu_count);
    int good = 0;
    bool all_stopped = true;
    stop_machine::run_cpus(cpu_count, [&](CpuIndex cpu) {
        if (cpu == 0) {
            for (int i = 0; i < stops; i++) {
                Inspection inspection(*world);
                const auto outcome = world->quiesce.stop(inspection, entry);
                good += inspection.good();
                all_stopped &= outcome.stopped == machine::online_cpus() && outcome.absent == 0;
                world->step();
            }
            world->done = 1;
        }
        while (world->done == 0)
            world->step();
    });
    CHECK(good == stops);
    CHECK(all_stopped);
    for (CpuIndex cpu = 0; cpu < cpu_count; cpu++) {
        CHECK(world->logs[cpu].preflights == stops);
        CHECK(world->logs[cpu].auxiliaries == (cpu == 0 ? 0 : stops));
    }
}

TEST_CASE("the initiator's position is the entry registers it gave") {
    World world(1);
    stop_machine::become(0);
    struct Body final : stackshot::TrapBody {
        void cpu_preflight(CpuIndex) override {}
        void auxiliary(Quiesced&) override {}
        void initiator(Quiesced& quiesced) override {
            known = quiesce->position(quiesced.cpu(), position);
            masked = !machine::interrupts_enabled();
        }
        Quiesce* quiesce;
        CpuPosition position;
        bool known = false, masked = false;
    } body;
    body.quiesce = &world.quiesce;
    const auto outcome = world.quiesce.stop(body, entry);
    CHECK(outcome.stopped == 1);
    CHECK(body.known);
    CHECK(body.masked);
    CHECK(body.position.exact);
    CHECK_FALSE(body.position.interrupted);
    CHECK(body.position.registers.pc == entry.pc);
    CHECK(body.position.registers.fp == entry.fp);
    CHECK(machine::interrupts_enabled());
}

TEST_CASE("a CPU that does not answer is absent and named with where it was last seen") {
    World world(3, 5 * ms);
    std::atomic<bool> masked{false}, over{false};
    CpuPosition position;
    bool known = false;
    stackshot::TrapOutcome outcome;
    stop_machine::run_cpus(3, [&](CpuIndex cpu) {
        if (cpu == 2) {
            const bool enabled = machine::interrupts_disable();
            world.quiesce.saw_interrupt({.pc = 0x1234, .lr = 0, .fp = 0, .sp = 0x5678});
            masked = true;
            while (!over)
                std::this_thread::yield();
            machine::interrupts_restore(enabled);
        } else if (cpu == 0) {
            while (!masked)
                std::this_thread::yield();
            // The host may make another CPU slow as well: only this one must be absent.
            do {
                Inspection inspection(world);
                inspection.inside = [&] { known = world.quiesce.position(2, position); };
                outcome = world.quiesce.stop(inspection, entry);
            } while (outcome.absent != bit_of(2));
            over = true;
        }
        while (!over)
            world.step();
    });
    CHECK(outcome.stopped == (bit_of(0) | bit_of(1)));
    CHECK(known);
    CHECK_FALSE(position.exact);
    CHECK(position.registers.pc == 0x1234);
    CHECK(position.registers.sp == 0x5678);
    CHECK(world.logs[2].auxiliaries == 0);
}

TEST_CASE("a CPU that arrives late is held until resume, takes no work, and is not lost") {
    World world(2, 2 * ms);
    std::atomic<bool> masked{false}, unmask{false}, left{false};
    bool held = false, exact = false, left_after = false;
    CpuMask absent = 0;
    stop_machine::run_cpus(2, [&](CpuIndex cpu) {
        if (cpu == 1) {
            machine::interrupts_disable();
            masked = true;
            while (!unmask)
                std::this_thread::yield();
            machine::interrupts_restore(true);
            left = true;
            while (world.done == 0)
                world.step();
            return;
        }
        while (!masked)
            std::this_thread::yield();
        struct Body final : stackshot::TrapBody {
            void cpu_preflight(CpuIndex) override {}
            void auxiliary(Quiesced&) override {}
            void initiator(Quiesced&) override { work(); }
            std::function<void()> work;
        } body;
        body.work = [&] {
            unmask = true;
            CpuPosition position;
            while (!world.quiesce.position(1, position) || !position.exact)
                std::this_thread::yield();
            exact = true;
            for (int i = 0; i < 1000; i++)
                std::this_thread::yield();
            held = !left;
        };
        absent = world.quiesce.stop(body, entry).absent;
        // The CPU answers the next stop as any other: one stop leaves nothing behind.
        world.quiesce.set_timeouts({60'000 * ms, 60'000 * ms});
        Inspection inspection(world);
        const auto next = world.quiesce.stop(inspection, entry);
        left_after = inspection.good() && next.absent == 0;
        world.done = 1;
    });
    CHECK(absent == bit_of(1));
    CHECK(exact);
    CHECK(held);
    CHECK(left);
    CHECK(left_after);
    CHECK(world.logs[1].preflights == 1);
    CHECK(world.logs[1].auxiliaries == 1);
}

TEST_CASE("CPUs that stop each other all get their turn, with interrupts off too") {
    const auto cpu_count = GENERATE(2U, 4U, 8U);
    const std::uint64_t stops = 300;
    const auto world = std::make_unique<World>(cpu_count);
    std::atomic<std::uint64_t> good{0};
    stop_machine::run_cpus(cpu_count, [&](CpuIndex cpu) {
        std::minstd_rand random(cpu + 1);
        for (std::uint64_t i = 0; i < stops; i++) {
            const bool masked = random() % 2 == 0;
            if (masked)
                machine::interrupts_disable();
            Inspection inspection(*world);
            world->quiesce.stop(inspection, entry);
            good += inspection.good();
            if (masked)
                machine::interrupts_restore(true);
            for (auto steps = random() % 3; steps != 0; steps--)
                world->step();
        }
        world->done++;
        while (world->done != world->cpu_count)
            world->step();
    });
    CHECK(good == stops * cpu_count);
    for (CpuIndex cpu = 0; cpu < cpu_count; cpu++) {
        CHECK(world->logs[cpu].preflights == stops * cpu_count);
        CHECK(world->logs[cpu].auxiliaries == stops * (cpu_count - 1));
    }
}

TEST_CASE("a CPU takes part in all of a stop or in nothing of it, whenever it comes") {
    const CpuIndex cpu_count = 4;
    const int stops = 2000;
    // So short that CPUs come in time, late and not at all.
    const auto world = std::make_unique<World>(cpu_count, 20'000);
    std::uint64_t took_part[cpu_count] = {};
    std::uint64_t absences = 0;
    int good = 0;
    stop_machine::run_cpus(cpu_count, [&](CpuIndex cpu) {
        std::minstd_rand random(cpu + 1);
        if (cpu == 0) {
            for (int i = 0; i < stops; i++) {
                Inspection inspection(*world);
                const auto outcome = world->quiesce.stop(inspection, entry);
                good += inspection.good() && (outcome.stopped & outcome.absent) == 0 &&
                        (outcome.stopped | outcome.absent) == machine::online_cpus();
                for (CpuIndex other = 1; other < cpu_count; other++)
                    took_part[other] += (outcome.stopped >> other) & 1;
                absences += static_cast<unsigned>(std::popcount(outcome.absent));
            }
            world->done = 1;
        }
        while (world->done == 0) {
            const bool enabled = machine::interrupts_disable();
            for (auto steps = random() % 4; steps != 0; steps--)
                world->step();
            machine::interrupts_restore(enabled);
            stop_machine::poll();
        }
    });
    CHECK(good == stops);
    CHECK(absences > 0);
    for (CpuIndex cpu = 1; cpu < cpu_count; cpu++) {
        CHECK(world->logs[cpu].preflights == took_part[cpu]);
        CHECK(world->logs[cpu].auxiliaries == took_part[cpu]);
        CHECK(took_part[cpu] > 0);
    }
}

TEST_CASE("a panic stops CPUs that run, that are stopped, that stop others and that wait to") {
    // CPU 0 panics inside the stop of CPU 1, which waits in it, while CPU 2 wants its turn.
    struct Body final : stackshot::TrapBody {
        explicit Body(World& stopped) : world(stopped) {}
        void cpu_preflight(CpuIndex) override {}
        void auxiliary(Quiesced& quiesced) override {
            if (quiesced.cpu() != 0)
                return;
            while (!inside)
                std::this_thread::yield();
            silent = world.panic();
            again = world.panic();
            for (CpuIndex other = 0; other < 5; other++) {
                CpuPosition position;
                if (world.quiesce.position(other, position) && position.exact)
                    exact |= bit_of(other);
            }
            throw stop_machine::Halted{};
        }
        void initiator(Quiesced&) override {
            inside = true;
            for (;;) {
                std::this_thread::yield();
                world.quiesce.park_if_panicking();
            }
        }
        World& world;
        std::atomic<bool> inside{false};
        CpuMask silent = ~CpuMask{0}, again = ~CpuMask{0}, exact = 0;
    };
    for (int round = 0; round < 50; round++) {
        World world(5);
        Body body(world);
        stop_machine::run_cpus(5, [&](CpuIndex cpu) {
            if (cpu == 1)
                world.quiesce.stop(body, entry);
            while (cpu == 2 && !body.inside)
                world.step();
            if (cpu == 2) {
                Inspection never_runs(world);
                world.quiesce.stop(never_runs, entry);
            }
            for (;;)
                world.step();
        });
        REQUIRE(body.silent == 0);
        REQUIRE(body.again == 0);
        REQUIRE((body.exact & 0b11110) == 0b11110);
        for (CpuIndex cpu = 1; cpu < 5; cpu++)
            REQUIRE(stop_machine::halted(cpu));
    }
}

namespace {

/// A body that CPU 1 is to be waited for in when CPU 0 panics: it leaves `late` behind that, and
/// stops somewhat later still.
struct BodyWithWorker final : stackshot::TrapBody {
    BodyWithWorker(World& stopped, std::chrono::nanoseconds lateness)
        : world(stopped), late(lateness) {}

    void cpu_preflight(CpuIndex) override {}
    void initiator(Quiesced& quiesced) override {
        while (!inside)
            std::this_thread::yield();
        silent = world.panic();
        left = !inside;
        known = world.quiesce.position(quiesced.cpu(), position);
        throw stop_machine::Halted{};
    }
    void auxiliary(Quiesced& quiesced) override {
        if (quiesced.cpu() != 1)
            return;
        inside = true;
        while ((panicked & bit_of(0)) == 0)
            std::this_thread::yield();
        std::this_thread::sleep_for(late);
        inside = false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        world.quiesce.park_if_panicking();
    }
    void panic(CpuIndex cpu) override { panicked.fetch_or(bit_of(cpu)); }
    CpuMask working() const override { return inside ? bit_of(1) : 0; }

    World& world;
    const std::chrono::nanoseconds late;
    std::atomic<bool> inside{false};
    std::atomic<CpuMask> panicked{0};
    CpuMask silent = 0;
    bool left = false, known = false;
    CpuPosition position{};
};

}  // namespace

TEST_CASE(
    "a panic ends the body of a stop, and CPUs have the progress timeout to leave it, then the ack "
    "timeout to stop") {
    const bool in_time = GENERATE(true, false);
    World world(3, 300 * ms);
    world.quiesce.set_timeouts({300 * ms, in_time ? 60'000 * ms : 10 * ms});
    // Longer than both the ack timeout and, in the second case, the two together.
    BodyWithWorker body(world, std::chrono::milliseconds(in_time ? 400 : 1500));
    stop_machine::run_cpus(3, [&](CpuIndex cpu) {
        if (cpu == 0)
            world.quiesce.stop(body, entry);
        for (;;)
            world.step();
    });
    CHECK(body.panicked == bit_of(0));
    CHECK(body.left == in_time);
    CHECK((body.silent & bit_of(1)) == (in_time ? 0 : bit_of(1)));
    CHECK(stop_machine::halted(1));
}

TEST_CASE("a panic while a panic ends the body of a stop stops the world without the body") {
    // CPU 0 panics in its own stop, whose body is damaged, and then CPU 1 does; CPU 2 is deaf.
    struct Body final : stackshot::TrapBody {
        explicit Body(World& stopped) : world(stopped) {}
        void cpu_preflight(CpuIndex) override {}
        void auxiliary(Quiesced&) override {
            while (asked[0] == 0)
                std::this_thread::yield();
            world.panic();
        }
        void initiator(Quiesced&) override { world.panic(); }
        void panic(CpuIndex cpu) override {
            if (++asked[cpu] == 1)
                silent = world.panic();
            throw stop_machine::Halted{};
        }
        World& world;
        std::array<std::atomic<int>, 3> asked{};
        std::atomic<CpuMask> silent{0};
    };
    World world(3, 200 * ms);
    Body body(world);
    std::atomic<bool> deaf{false}, ended{false};
    stop_machine::run_cpus(3, [&](CpuIndex cpu) {
        if (cpu == 0) {
            while (!deaf)
                std::this_thread::yield();
            try {
                world.quiesce.stop(body, entry);
            } catch (const stop_machine::Halted&) {
            }
            ended = true;
            return;
        }
        if (cpu == 2) {
            machine::interrupts_disable();
            deaf = true;
            while (!ended)
                std::this_thread::yield();
            return;
        }
        for (;;)
            world.step();
    });
    CHECK(body.asked[0] == 1);
    CHECK(body.asked[1] == 1);
    CHECK(body.silent == bit_of(2));
    CHECK(stop_machine::halted(1));
}

TEST_CASE("the CPU that panics stands where it panicked") {
    const bool interrupted = GENERATE(false, true);
    World world(1);
    CpuPosition position;
    bool known = false;
    stop_machine::run_cpus(1, [&](CpuIndex) {
        world.quiesce.stop_for_panic({.pc = 0x1234, .lr = 0, .fp = 0, .sp = 0x5678}, interrupted);
        // A panic inside the panic is of no interest.
        world.quiesce.stop_for_panic(entry, !interrupted);
        known = world.quiesce.position(0, position);
    });
    CHECK(known);
    CHECK(position.exact);
    CHECK(position.interrupted == interrupted);
    CHECK(position.registers.pc == 0x1234);
    CHECK(position.registers.sp == 0x5678);
}

TEST_CASE("no panic ends the body of a stop that has returned") {
    // CPU 1 panics while CPU 0 stops the world again and again, for a short time each.
    struct Body final : stackshot::TrapBody {
        void cpu_preflight(CpuIndex) override {}
        void initiator(Quiesced&) override {}
        void auxiliary(Quiesced&) override {}
        void panic(CpuIndex) override { ended_late = returned; }
        std::atomic<bool> returned{false};
        bool ended_late = false;
    };
    for (int round = 0; round < 300; round++) {
        World world(3);
        constexpr std::size_t enough = 2000;
        const auto bodies = std::make_unique<std::array<Body, enough>>();
        std::atomic<std::size_t> stops{0};
        stop_machine::run_cpus(3, [&](CpuIndex cpu) {
            if (cpu == 0) {
                for (Body& body : *bodies) {
                    world.quiesce.stop(body, entry);
                    body.returned = true;
                    stops++;
                }
            }
            while (cpu == 1 && stops < 3)
                world.step();
            if (cpu == 1) {
                world.panic();
                return;
            }
            for (;;)
                world.step();
        });
        for (const Body& body : *bodies)
            REQUIRE_FALSE(body.ended_late);
    }
}

TEST_CASE("of two CPUs that panic one goes on and the other stops") {
    for (int round = 0; round < 200; round++) {
        World world(3);
        std::atomic<int> survivors{0};
        stop_machine::run_cpus(3, [&](CpuIndex cpu) {
            if (cpu != 2) {
                if (world.panic() == 0)
                    survivors++;
                return;
            }
            for (;;)
                world.step();
        });
        REQUIRE(survivors == 1);
        REQUIRE(stop_machine::halted(2));
        REQUIRE(stop_machine::halted(0) != stop_machine::halted(1));
    }
}

TEST_CASE("a CPU comes online between two stops, never into one") {
    const CpuIndex cpu_count = 4;
    for (int round = 0; round < 100; round++) {
        const auto world = std::make_unique<World>(cpu_count, 60'000 * ms, bit_of(0));
        std::atomic<int> stops{0};
        bool same_inside = true, complete = true;
        stop_machine::run_cpus(cpu_count, [&](CpuIndex cpu) {
            if (cpu == 0) {
                CpuMask online = 0;
                while (online != bit_of(cpu_count) - 1) {
                    struct Body final : stackshot::TrapBody {
                        void cpu_preflight(CpuIndex) override {}
                        void auxiliary(Quiesced&) override {}
                        void initiator(Quiesced&) override {
                            first = machine::online_cpus();
                            for (int i = 0; i < 20; i++)
                                std::this_thread::yield();
                            last = machine::online_cpus();
                        }
                        CpuMask first = 0, last = 0;
                    } body;
                    const auto outcome = world->quiesce.stop(body, entry);
                    online = body.last;
                    same_inside &= body.first == body.last;
                    complete &= outcome.stopped == online && outcome.absent == 0;
                    stops++;
                    world->step();
                }
                world->done = 1;
                return;
            }
            while (stops < static_cast<int>(cpu))
                std::this_thread::yield();
            machine::interrupts_disable();
            world->quiesce.admit();
            machine::interrupts_restore(true);
            while (world->done == 0)
                world->step();
        });
        REQUIRE(same_inside);
        REQUIRE(complete);
    }
}

TEST_CASE("a CPU that comes online while another one panics is stopped like the others") {
    for (int round = 0; round < 500; round++) {
        World world(3, 60'000 * ms, bit_of(0) | bit_of(1));
        std::atomic<bool> go{false};
        CpuMask silent = ~CpuMask{0};
        stop_machine::run_cpus(3, [&](CpuIndex cpu) {
            if (cpu == 0) {
                go = true;
                silent = world.panic();
                return;
            }
            if (cpu == 2) {
                while (!go)
                    std::this_thread::yield();
                machine::interrupts_disable();
                world.quiesce.admit();
                machine::interrupts_restore(true);
            }
            for (;;)
                world.step();
        });
        // A CPU that saw the panic first may be online and parked, or not have been seen at all.
        REQUIRE((silent & ~bit_of(2)) == 0);
        REQUIRE(stop_machine::halted(2));
    }
}

TEST_CASE("a CPU that a panic finds waiting with interrupts off is where it waits") {
    World world(2);
    CpuPosition position;
    bool known = false;
    std::atomic<bool> masked{false};
    stop_machine::run_cpus(2, [&](CpuIndex cpu) {
        if (cpu == 1) {
            machine::interrupts_disable();
            world.quiesce.saw_interrupt({.pc = 0x1234, .lr = 0, .fp = 0, .sp = 0x5678});
            masked = true;
            for (;;) {
                std::this_thread::yield();
                world.quiesce.park_if_panicking();
            }
        }
        while (!masked)
            std::this_thread::yield();
        world.panic();
        known = world.quiesce.position(1, position);
    });
    CHECK(known);
    CHECK(position.exact);
    CHECK_FALSE(position.interrupted);
    CHECK(position.registers.pc != 0x1234);
    CHECK(position.registers.sp != 0x5678);
}
