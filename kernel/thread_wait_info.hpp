#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kcdata/records.hpp"
#include "kernel/thread.hpp"
#include "kernel/turnstile.hpp"
#include "stackshot/system.hpp"

namespace kernel {

/// An object of which pairs of words are read, one by one.
template <typename T>
class PartlyRead {
  public:
    /// Reads the two words at `offset`.
    template <std::size_t offset, typename Read>
    bool read(Read& read, std::uint64_t object) {
        static_assert(offset % 8 == 0 && offset + 16 <= sizeof(T));
        return read(object + offset, bytes_ + offset);
    }
    /// Only what was read may be looked at.
    const T& operator*() const { return *reinterpret_cast<const T*>(bytes_); }

  private:
    alignas(T) std::byte bytes_[sizeof(T)];
};

/// How read_thread_wait_info() ended.
enum class [[nodiscard]] WaitInfoRead : std::uint8_t{
    waits,
    waits_for_nothing,  ///< known to the format: it does not wait, or for time, or is parked
    unreadable,
};

/// What is copied of a thread in front of its wait information.
inline stackshot::BlockedThread blocked_thread(const Thread& thread) {
    return {thread.wait_event, reinterpret_cast<std::uint64_t>(thread.turnstile),
            thread.block_hint};
}

/// Whether anything can change while it is read.
enum class World : std::uint8_t {
    stands,  ///< every CPU has stopped
    moves,   ///< a CPU did not stop, or nobody asked it to
};

/// Reads what the thread at `thread`, copied before as `blocked`, waits for, of a kernel that may
/// hold still anywhere, or not at all: what is found in the middle of a change is told as locked,
/// and no owner that never was. Takes no lock. `read(address, to)` copies the two words at
/// `address`, and returns whether it could. `info` is written unless the thread waits for nothing;
/// what could not be read stays 0.
template <typename Read>
WaitInfoRead read_thread_wait_info(Read read, World world, std::uint64_t thread,
                                   const stackshot::BlockedThread& blocked,
                                   stackshot::WaitFacts& info) {
    using namespace kcdata;
    const std::uint8_t wait_type = blocked.wait_type;
    if (blocked.turnstile == 0 || wait_type == kThreadWaitNone ||
        wait_type == kThreadWaitParkedWorkQueue)
        return WaitInfoRead::waits_for_nothing;
    info = {};
    info.wait_type = wait_type;
    // Behind the copy of the thread; then, in front of the inheritor; then, before it is looked
    // whether all is still so.
    std::atomic_thread_fence(std::memory_order_acquire);
    PartlyRead<Turnstile> turnstile;
    if (!turnstile.template read<Turnstile::status_offset>(read, blocked.turnstile) ||
        !turnstile.template read<Turnstile::inheritor_offset>(read, blocked.turnstile))
        return WaitInfoRead::unreadable;
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto inheritor = reinterpret_cast<std::uint64_t>((*turnstile).inheritor());
    PartlyRead<Thread> inheriting;
    if (!(*turnstile).in_flux() && inheritor != 0 &&
        !inheriting.template read<offsetof(Thread, thread_id)>(read, inheritor))
        return WaitInfoRead::unreadable;
    bool locked = (*turnstile).in_flux();
    if (world == World::moves) [[unlikely]] {
        std::atomic_thread_fence(std::memory_order_acquire);
        PartlyRead<Turnstile> turnstile_later;
        PartlyRead<Thread> later;
        static_assert(offsetof(Thread, block_hint) < offsetof(Thread, state) + 16);
        static_assert(offsetof(Thread, turnstile) == offsetof(Thread, wait_event) + 8);
        if (!turnstile_later.template read<Turnstile::status_offset>(read, blocked.turnstile) ||
            !later.template read<offsetof(Thread, state)>(read, thread) ||
            !later.template read<offsetof(Thread, wait_event)>(read, thread))
            return WaitInfoRead::unreadable;
        locked = locked ||
                 reinterpret_cast<std::uint64_t>((*later).turnstile) != blocked.turnstile ||
                 (*later).block_hint != wait_type || (*later).wait_event != blocked.wait_event ||
                 (*turnstile_later).sequence() != (*turnstile).sequence();
    }
    const std::uint64_t inheritor_id = inheritor != 0 ? (*inheriting).thread_id : 0;

    const std::uint64_t pid = static_cast<std::uint32_t>((*turnstile).owner_pid());
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
            info.wait_flags = (*turnstile).wait_flags();
            break;
        default:
            break;
    }

    if (locked) {
        info.turnstile_flags = STACKSHOT_TURNSTILE_STATUS_LOCKED_WAITQ;
        return WaitInfoRead::waits;
    }
    info.turnstile_port_label =
        stackshot::PortLabelRef{reinterpret_cast<std::uint64_t>((*turnstile).port_label())};
    // The label of a special reply port is that of the port the request was sent to.
    if ((info.wait_flags & STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY) == 0)
        info.port_label = info.turnstile_port_label;
    info.turnstile_priority = static_cast<std::uint8_t>((*turnstile).priority());
    info.number_of_hops = (*turnstile).hops();
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
