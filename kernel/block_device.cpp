#include "kernel/block_device.hpp"

#include <cstring>
#include <utility>

#include "kernel/heap.hpp"
#include "kernel/sleep.hpp"
#include "kernel/task.hpp"
#include "kernel/thread_policy.hpp"

namespace kernel {

using kcdata::kern_return;
using enum kcdata::kern_return;

namespace {

void count(IoStatistics& statistics, bool is_write, const IoKind& kind, std::size_t tier,
           std::size_t size) {
    const auto add = [size](std::uint64_t& requests, std::uint64_t& bytes) {
        ++requests;
        bytes += size;
    };
    is_write ? add(statistics.ss_disk_writes_count, statistics.ss_disk_writes_size)
             : add(statistics.ss_disk_reads_count, statistics.ss_disk_reads_size);
    add(statistics.ss_io_priority_count[tier], statistics.ss_io_priority_size[tier]);
    kind.paging ? add(statistics.ss_paging_count, statistics.ss_paging_size)
                : add(statistics.ss_non_paging_count, statistics.ss_non_paging_size);
    kind.metadata ? add(statistics.ss_metadata_count, statistics.ss_metadata_size)
                  : add(statistics.ss_data_count, statistics.ss_data_size);
}

/// Makes sure that `place` has statistics. False: no memory.
bool provide(IoStatistics*& place) {
    IoStatistics* made = heap::create<IoStatistics>();
    {
        SchedulerGuard guard;
        if (place == nullptr)
            place = std::exchange(made, nullptr);
    }
    heap::destroy(made);
    SchedulerGuard guard;
    return place != nullptr;
}

bool has_statistics(const Thread& thread) {
    SchedulerGuard guard;
    return thread.io_statistics != nullptr && thread.task->io_statistics != nullptr;
}

}  // namespace

kern_return BlockDevice::start(const char* name, std::size_t size,
                               std::uint64_t microseconds_each) {
    CHECK(driver_ == nullptr);
    auto* const memory = static_cast<std::byte*>(heap::allocate(size));
    if (memory == nullptr)
        return KERN_RESOURCE_SHORTAGE;
    disk_ = {memory, size};
    microseconds_each_ = microseconds_each;
    auto driver = thread_create(kernel_task(), name, drive, this,
                                {.priority = BASEPRI_KERNEL, .joinable = true});
    if (!driver.ok()) {
        heap::free(memory);
        disk_ = {};
        return driver.error();
    }
    driver_ = driver.value();
    thread_start(*driver_);
    return KERN_SUCCESS;
}

void BlockDevice::stop() {
    {
        SchedulerGuard guard;
        stopping_ = true;
        idle_.wake_all(guard);
    }
    thread_join(*driver_);
    driver_ = nullptr;
    heap::free(disk_.data());
    disk_ = {};
}

kern_return BlockDevice::read(std::size_t offset, std::span<std::byte> to, IoKind kind) {
    Request request{offset, to.data(), to.size(), false, kind};
    return perform(request);
}

kern_return BlockDevice::write(std::size_t offset, std::span<const std::byte> from, IoKind kind) {
    Request request{offset, const_cast<std::byte*>(from.data()), from.size(), true, kind};
    return perform(request);
}

kern_return BlockDevice::perform(Request& request) {
    CHECK(machine::interrupts_enabled());
    if (request.size == 0 || request.offset > disk_.size() ||
        request.size > disk_.size() - request.offset)
        return KERN_INVALID_ARGUMENT;
    Thread& self = current_thread();
    if (!has_statistics(self) &&
        (!provide(self.io_statistics) || !provide(self.task->io_statistics)))
        return KERN_RESOURCE_SHORTAGE;
    SchedulerGuard guard;
    CHECK(!stopping_);
    request.requester = &self;
    request.tier = PolicyWord(self.effective_policy).get(thep_io_tier);
    queued_[request.tier].push_back(request);
    idle_.wake_one(guard);
    requesters_.set_inheritor(guard, driver_);
    const WaitResult result = requesters_.wait(
        guard, {.event = this, .block_hint = kcdata::kThreadWaitSleepWithInheritor});
    CHECK(result == WaitResult::THREAD_AWAKENED);
    return KERN_SUCCESS;
}

/// Waits for a request. Null: there will be none any more.
BlockDevice::Request* BlockDevice::next() {
    SchedulerGuard guard;
    for (;;) {
        for (auto& queue : queued_)
            if (Request* const request = queue.pop_front(); request != nullptr)
                return request;
        if (stopping_)
            return nullptr;
        const WaitResult result = idle_.wait(guard, {.event = this});
        CHECK(result == WaitResult::THREAD_AWAKENED);
    }
}

void BlockDevice::finish(Request& request) {
    SchedulerGuard guard;
    Thread& requester = *request.requester;
    for (IoStatistics* statistics : {requester.io_statistics, requester.task->io_statistics})
        count(*statistics, request.is_write, request.kind, request.tier, request.size);
    // The request goes away as soon as the lock is free.
    requesters_.wake(guard, requester);
    if (requesters_.first() == nullptr)
        requesters_.set_inheritor(guard, nullptr);
}

void BlockDevice::drive(void* argument) {
    auto& device = *static_cast<BlockDevice*>(argument);
    while (Request* const request = device.next()) {
        if (device.microseconds_each_ != 0)
            sleep_microseconds(device.microseconds_each_);
        std::byte* const place = device.disk_.data() + request->offset;
        request->is_write ? std::memcpy(place, request->data, request->size)
                          : std::memcpy(request->data, place, request->size);
        device.finish(*request);
    }
}

}  // namespace kernel
