#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/records.hpp"
#include "kcdata/result.hpp"
#include "kernel/list.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {

/// What tasks and threads have read and written, as a capture tells it. The scheduler lock guards
/// it.
using IoStatistics = kcdata::io_stats_snapshot;

/// What a request is for, besides the data of a file.
struct IoKind {
    bool metadata = false;
    bool paging = false;
};

/// A disk in memory behind a driver: a thread that serves what tasks queue, one request at a time,
/// those of the lowest I/O tier first. The tier is the requester's effective one.
class BlockDevice {
  public:
    static constexpr std::size_t tiers = 4;

    constexpr BlockDevice() = default;
    BlockDevice(const BlockDevice&) = delete;
    BlockDevice& operator=(const BlockDevice&) = delete;

    /// Makes a disk of `size` bytes, all zero, and starts its driver, a thread of kernel_task of
    /// this name, which takes so long for each request. KERN_RESOURCE_SHORTAGE: no memory. Once;
    /// thread context.
    kcdata::kern_return start(const char* name, std::size_t size,
                              std::uint64_t microseconds_each = 0);
    /// Ends the driver, when everything that was queued is done. Nothing may be asked for meanwhile
    /// or later. Thread context.
    void stop();

    /// Reads or writes at `offset`, and waits until it is done. KERN_INVALID_ARGUMENT: not all of
    /// it lies in the disk, or it is empty. KERN_RESOURCE_SHORTAGE: no memory for the thread's or
    /// task's first statistics. Thread context, interrupts on.
    kcdata::kern_return read(std::size_t offset, std::span<std::byte> to, IoKind kind = {});
    kcdata::kern_return write(std::size_t offset, std::span<const std::byte> from,
                              IoKind kind = {});

  private:
    /// On the requester's stack.
    struct Request {
        std::size_t offset = 0;
        std::byte* data = nullptr;
        std::size_t size = 0;
        bool is_write = false;
        IoKind kind{};
        std::size_t tier = 0;
        Thread* requester = nullptr;
        ListLink<Request> link{};
    };

    kcdata::kern_return perform(Request& request);
    Request* next();
    void finish(Request& request);
    static void drive(void* device);

    std::span<std::byte> disk_{};
    std::uint64_t microseconds_each_ = 0;
    bool stopping_ = false;
    Thread* driver_ = nullptr;
    std::array<List<Request, &Request::link>, tiers> queued_{};
    /// The driver, without work.
    Turnstile idle_{};
    /// Whoever waits for a request of theirs; the driver is their inheritor.
    Turnstile requesters_{};
};

}  // namespace kernel
