#include "kernel/block_device.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "kernel/task.hpp"
#include "kernel/thread_policy.hpp"
#include "test/unit/kernel/holder.hpp"

// Behind the kernel's headers: the CHECK of this file is Catch's.
#include <catch2/catch_test_macros.hpp>

using namespace kernel;
using enum kcdata::kern_return;

namespace {

constexpr std::size_t disk_size = 64 * 1024;

/// Of the calling thread.
void set_io_tier(unsigned tier) {
    SchedulerGuard guard;
    current_thread().effective_policy = PolicyWord().with(thep_io_tier, tier).value();
}

}  // namespace

TEST_CASE("each thread reads what it wrote, and thread and task are told of every request") {
    constexpr std::size_t workers = 6, per_worker = 4096;
    struct Done {
        IoStatistics expected{}, counted{};
        bool wrong = false;
    };
    std::vector<Done> done(workers);
    IoStatistics of_task{};
    fake_machine::run([&] {
        BlockDevice disk;
        REQUIRE(disk.start("disk", disk_size) == KERN_SUCCESS);
        Task& task = *task_create("reader").value();
        {
            KernelThreads threads(task);
            for (std::size_t worker = 0; worker < workers; worker++)
                threads.start([&, worker] {
                    Done& own = done[worker];
                    IoStatistics& expected = own.expected;
                    std::minstd_rand random(static_cast<unsigned>(worker + 1));
                    const unsigned tier = static_cast<unsigned>(worker % BlockDevice::tiers);
                    set_io_tier(tier);
                    std::array<std::byte, 512> out{}, in{};
                    for (int turn = 0; turn < 40; turn++) {
                        const std::size_t size = 1 + random() % out.size();
                        const std::size_t offset =
                            worker * per_worker + random() % (per_worker - size);
                        const IoKind kind{.metadata = random() % 2 == 0,
                                          .paging = random() % 3 == 0};
                        for (auto& byte : out)
                            byte = static_cast<std::byte>(random());
                        own.wrong |=
                            disk.write(offset, std::span(out).first(size), kind) != KERN_SUCCESS;
                        own.wrong |=
                            disk.read(offset, std::span(in).first(size), kind) != KERN_SUCCESS;
                        own.wrong |= std::memcmp(in.data(), out.data(), size) != 0;
                        ++expected.ss_disk_writes_count;
                        expected.ss_disk_writes_size += size;
                        ++expected.ss_disk_reads_count;
                        expected.ss_disk_reads_size += size;
                        expected.ss_io_priority_count[tier] += 2;
                        expected.ss_io_priority_size[tier] += 2 * size;
                        (kind.paging ? expected.ss_paging_count : expected.ss_non_paging_count) +=
                            2;
                        (kind.paging ? expected.ss_paging_size : expected.ss_non_paging_size) +=
                            2 * size;
                        (kind.metadata ? expected.ss_metadata_count : expected.ss_data_count) += 2;
                        (kind.metadata ? expected.ss_metadata_size : expected.ss_data_size) +=
                            2 * size;
                    }
                    SchedulerGuard guard;
                    own.counted = *current_thread().io_statistics;
                });
        }
        {
            SchedulerGuard guard;
            of_task = *task.io_statistics;
        }
        task_release(task);
        disk.stop();
    });
    std::array<std::uint64_t, sizeof(IoStatistics) / 8> sum{}, words{};
    for (const Done& own : done) {
        CHECK_FALSE(own.wrong);
        CHECK(std::memcmp(&own.counted, &own.expected, sizeof(IoStatistics)) == 0);
        std::memcpy(words.data(), &own.expected, sizeof(words));
        for (std::size_t n = 0; n < sum.size(); n++)
            sum[n] += words[n];
    }
    CHECK(std::memcmp(sum.data(), &of_task, sizeof(of_task)) == 0);
}

TEST_CASE("requests of a lower tier are served first, in order of arrival within a tier") {
    std::vector<int> served;
    fake_machine::run([&] {
        BlockDevice disk;
        REQUIRE(disk.start("disk", disk_size, 20'000) == KERN_SUCCESS);
        const std::array<unsigned, 6> tiers = {3, 2, 3, 0, 1, 0};
        std::vector<std::unique_ptr<Holder>> holders;
        for (std::size_t n = 0; n < tiers.size(); n++)
            holders.push_back(std::make_unique<Holder>(40));
        for (std::size_t n = 0; n < tiers.size(); n++) {
            holders[n]->begin([&, n] {
                set_io_tier(tiers[n]);
                std::byte byte{};
                std::ignore = disk.read(n, {&byte, 1});
                SchedulerGuard guard;
                served.push_back(static_cast<int>(n));
            });
            // The first one is with the driver; the others are queued behind it.
            await([&] {
                SchedulerGuard guard;
                return holders[n]->thread().block_hint == kcdata::kThreadWaitSleepWithInheritor;
            });
        }
        for (auto& holder : holders)
            holder->finish();
        holders.clear();
        disk.stop();
    });
    CHECK(served == std::vector<int>{0, 3, 5, 4, 1, 2});
}

TEST_CASE("what is not in the disk cannot be read, and costs nobody statistics") {
    bool has_statistics = true;
    std::vector<kcdata::kern_return> results;
    fake_machine::run([&] {
        BlockDevice disk;
        REQUIRE(disk.start("disk", 100) == KERN_SUCCESS);
        std::array<std::byte, 60> room{};
        results.push_back(disk.read(41, room));
        results.push_back(disk.read(101, std::span(room).first(1)));
        results.push_back(disk.read(SIZE_MAX, room));
        results.push_back(disk.write(0, std::span(room).first(0)));
        has_statistics = current_thread().io_statistics != nullptr;
        results.push_back(disk.read(40, room));
        disk.stop();
    });
    CHECK_FALSE(has_statistics);
    CHECK(results == std::vector{KERN_INVALID_ARGUMENT, KERN_INVALID_ARGUMENT,
                                 KERN_INVALID_ARGUMENT, KERN_INVALID_ARGUMENT, KERN_SUCCESS});
}

TEST_CASE("without memory a disk does not start, and a request without statistics is refused") {
    std::vector<kcdata::kern_return> results;
    fake_machine::run([&] {
        Task& task = *task_create("poor").value();
        {
            BlockDevice disk;
            for (const int number : {1, 2, 3}) {
                fake_machine::fail_allocation(number);
                results.push_back(disk.start("disk", disk_size));
            }
            REQUIRE(disk.start("disk", disk_size) == KERN_SUCCESS);
            KernelThreads threads(task);
            threads.start([&] {
                std::byte byte{};
                for (const int number : {1, 2}) {
                    fake_machine::fail_allocation(number);
                    results.push_back(disk.read(0, {&byte, 1}));
                }
                results.push_back(disk.read(0, {&byte, 1}));
            });
            threads.join();
            disk.stop();
        }
        task_release(task);
    });
    CHECK(results == std::vector{KERN_RESOURCE_SHORTAGE, KERN_RESOURCE_SHORTAGE,
                                 KERN_RESOURCE_SHORTAGE, KERN_RESOURCE_SHORTAGE,
                                 KERN_RESOURCE_SHORTAGE, KERN_SUCCESS});
}
