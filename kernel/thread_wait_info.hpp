#pragma once

#include <cstddef>
#include <cstdint>

#include "kcdata/records.hpp"
#include "kernel/thread.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {

/// What a blocked thread waits for, and who makes it go on: in the terms of thread_waitinfo_v2 and
/// thread_turnstileinfo_v2.
struct ThreadWaitInfo {
    std::uint64_t waiter = 0;  ///< thread id
    /// The thread's id, or for a semaphore or a port the task's pid; STACKSHOT_WAITOWNER_...; 0:
    /// not known.
    std::uint64_t owner = 0;
    std::uint64_t context = 0;  ///< the object's address
    std::uint8_t wait_type = kcdata::kThreadWaitNone;
    std::uint32_t wait_flags = 0;
    /// The inheritor's thread id or pid, as turnstile_flags say; 0 if they say neither.
    std::uint64_t turnstile_context = 0;
    std::uint8_t turnstile_priority = 0;
    std::uint8_t number_of_hops = 0;
    std::uint64_t turnstile_flags = 0;  ///< STACKSHOT_TURNSTILE_STATUS_...
};

/// How read_thread_wait_info() ended.
enum class [[nodiscard]] WaitInfoRead : std::uint8_t{
    waits,
    waits_for_nothing,  ///< known to the format: it does not wait, or for time, or is parked
    unreadable,
};

/// Reads what the thread at `thread` waits for, of a kernel that may hold still anywhere, or not at
/// all: what is found in the middle of a change is told as locked, and no owner that never was.
/// Takes no lock. `read(address, to, size)` copies whole words, in program order, and returns
/// whether it could.
template <typename Read>
WaitInfoRead read_thread_wait_info(Read read, std::uint64_t thread, ThreadWaitInfo& info) {
    using namespace kcdata;
    constexpr std::size_t thread_size = offsetof(Thread, turnstile) + sizeof(Thread::turnstile);
    alignas(Thread) std::byte thread_copy[sizeof(Thread)];
    alignas(Turnstile) std::byte turnstile_copy[sizeof(Turnstile)];

    if (!read(thread, thread_copy, thread_size))
        return WaitInfoRead::unreadable;
    const Thread& blocked = *reinterpret_cast<const Thread*>(thread_copy);
    const std::uint64_t turnstile_address = reinterpret_cast<std::uint64_t>(blocked.turnstile);
    info = {};
    info.waiter = blocked.thread_id;
    info.wait_type = blocked.block_hint;
    if ((blocked.state & SS_TH_WAIT) == 0 || turnstile_address == 0 ||
        blocked.block_hint == kThreadWaitNone || blocked.block_hint == kThreadWaitParkedWorkQueue)
        return WaitInfoRead::waits_for_nothing;
    if (!read(turnstile_address, turnstile_copy, sizeof(turnstile_copy)))
        return WaitInfoRead::unreadable;
    const Turnstile& turnstile = *reinterpret_cast<const Turnstile*>(turnstile_copy);
    const auto inheritor = reinterpret_cast<std::uint64_t>(turnstile.inheritor());
    std::uint64_t inheritor_id = 0;
    if (!turnstile.in_flux() && inheritor != 0 &&
        !read(inheritor + offsetof(Thread, thread_id), &inheritor_id, sizeof(inheritor_id)))
        return WaitInfoRead::unreadable;

    // What was read belongs together if it is still so.
    alignas(Thread) std::byte thread_again[sizeof(Thread)];
    alignas(Turnstile) std::byte turnstile_again[sizeof(Turnstile)];
    if (!read(turnstile_address, turnstile_again, sizeof(turnstile_again)) ||
        !read(thread, thread_again, thread_size))
        return WaitInfoRead::unreadable;
    const Thread& later = *reinterpret_cast<const Thread*>(thread_again);
    const bool locked =
        turnstile.in_flux() || later.turnstile != blocked.turnstile ||
        later.block_hint != blocked.block_hint || later.wait_event != blocked.wait_event ||
        reinterpret_cast<const Turnstile*>(turnstile_again)->sequence() != turnstile.sequence();

    const std::uint64_t pid = static_cast<std::uint32_t>(turnstile.owner_pid());
    info.context = blocked.wait_event;
    switch (info.wait_type) {
        case kThreadWaitKernelMutex:
            info.owner = locked ? STACKSHOT_WAITOWNER_MTXSPIN : inheritor_id;
            break;
        case kThreadWaitKernelRWLockRead:
        case kThreadWaitKernelRWLockWrite:
        case kThreadWaitKernelRWLockUpgrade:
            info.owner = locked ? 0 : inheritor_id;
            break;
        case kThreadWaitSleepWithInheritor:
            // As in XNU: the event is not told.
            info.owner = locked ? 0 : inheritor_id;
            info.context = 0;
            break;
        case kThreadWaitSemaphore:
            info.owner = pid;
            break;
        case kThreadWaitPortSend:
            info.owner = locked     ? STACKSHOT_WAITOWNER_PORT_LOCKED
                         : pid == 0 ? STACKSHOT_WAITOWNER_KERNEL
                                    : pid;
            break;
        case kThreadWaitPortReceive:
            info.owner = locked ? STACKSHOT_WAITOWNER_PORT_LOCKED : 0;
            info.wait_flags = turnstile.wait_flags();
            break;
        default:
            break;
    }

    if (locked) {
        info.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ;
        return WaitInfoRead::waits;
    }
    info.turnstile_priority = static_cast<std::uint8_t>(turnstile.priority());
    info.number_of_hops = 1;
    const bool has_task = info.wait_type == kThreadWaitPortSend ||
                          (info.wait_flags & STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY) != 0;
    if (inheritor != 0) {
        info.turnstile_context = inheritor_id;
        info.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_THREAD;
    } else if (has_task) {
        info.turnstile_context = pid;
        info.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_BLOCKED_ON_TASK;
    } else {
        info.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_UNKNOWN;
    }
    return WaitInfoRead::waits;
}

}  // namespace kernel
