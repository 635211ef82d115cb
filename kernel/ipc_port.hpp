#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "kcdata/result.hpp"
#include "kernel/task.hpp"
#include "kernel/turnstile.hpp"

namespace kernel {

/// How sending and receiving ends. Mach's names and values.
enum class [[nodiscard]] MachMsgReturn : std::uint32_t{
    MACH_MSG_SUCCESS = 0,
    MACH_SEND_INVALID_DEST = 0x10000003,  ///< nobody can receive there any more
    MACH_SEND_TIMED_OUT = 0x10000004,
    MACH_SEND_NO_BUFFER = 0x1000000d,  ///< no memory for the reply port
    MACH_RCV_TIMED_OUT = 0x10004003,
    MACH_RCV_PORT_DIED = 0x10004009,  ///< the reply will not come
};

/// One reference to a port, which lives as long as there are any. Thread context.
class PortReference {
  public:
    constexpr PortReference() = default;
    /// Takes over a reference that was counted for it.
    explicit PortReference(Port* counted) : port_(counted) {}
    PortReference(PortReference&& other) noexcept : port_(std::exchange(other.port_, nullptr)) {}
    PortReference& operator=(PortReference&& other) noexcept {
        std::swap(port_, other.port_);
        return *this;
    }
    ~PortReference();

    Port* get() const { return port_; }
    Port* operator->() const { return port_; }
    explicit operator bool() const { return port_ != nullptr; }

  private:
    Port* port_ = nullptr;
};

/// The right to send one message, the reply to a request. If it goes away unused, the requester's
/// wait ends with MACH_RCV_PORT_DIED.
class SendOnceRight {
  public:
    constexpr SendOnceRight() = default;
    SendOnceRight(SendOnceRight&&) noexcept = default;
    SendOnceRight& operator=(SendOnceRight&&) noexcept = default;
    ~SendOnceRight();

    explicit operator bool() const { return static_cast<bool>(reply_port_); }

  private:
    friend class Port;
    explicit SendOnceRight(PortReference reply_port) : reply_port_(std::move(reply_port)) {}

    PortReference reply_port_{};
};

/// A message: words, and for a request the right to reply.
struct Message {
    std::int32_t id = 0;  ///< msgh_id
    std::array<std::uint64_t, 4> body{};
    SendOnceRight reply{};
};

/// Sends the reply to a request. MACH_SEND_INVALID_DEST: the requester does not wait any more, or
/// `request` was none. Thread context.
MachMsgReturn reply(Message& request, Message message);

/// The right to send to a port. Any number of them; used by one thread at a time. Thread context,
/// interrupts on.
class SendRight {
  public:
    constexpr SendRight() = default;

    SendRight copy() const;
    explicit operator bool() const { return static_cast<bool>(port_); }
    /// The port, as wait information names it.
    const void* port() const { return port_.get(); }

    /// Puts `message` into the port's queue. Waits while it is full, until `deadline`.
    MachMsgReturn send(Message message, std::uint64_t deadline = no_deadline) const;
    /// Sends a request and waits for the reply, which takes its place, until `deadline`. Meanwhile
    /// the thread that serves the port inherits the caller's priority.
    MachMsgReturn request(Message& message, std::uint64_t deadline = no_deadline) const;

  private:
    friend class ReceiveRight;
    explicit SendRight(PortReference port) : port_(std::move(port)) {}

    PortReference port_{};
};

/// The right to receive from a port. The port dies with it: senders are refused.
class ReceiveRight {
  public:
    /// Mach's default for the length of a message queue, and its largest one.
    static constexpr std::uint32_t MACH_PORT_QLIMIT_DEFAULT = 5;
    static constexpr std::uint32_t MACH_PORT_QLIMIT_LARGE = 16;

    /// A new port, whose receiver is `task`. At most `qlimit` (1 to MACH_PORT_QLIMIT_LARGE)
    /// messages are queued. KERN_RESOURCE_SHORTAGE: no memory. Thread context.
    static kcdata::Result<ReceiveRight> allocate(const Task& task,
                                                 std::uint32_t qlimit = MACH_PORT_QLIMIT_DEFAULT);

    constexpr ReceiveRight() = default;
    ReceiveRight(ReceiveRight&&) noexcept = default;
    ReceiveRight& operator=(ReceiveRight&&) noexcept = default;
    ~ReceiveRight();

    SendRight make_send() const;
    explicit operator bool() const { return static_cast<bool>(port_); }
    const void* port() const { return port_.get(); }
    /// Registers the port as the way to a service of launchd's domain `domain_type`: captures name
    /// it to those who wait there. The name is cut to 63 characters. Once; thread context.
    void set_service(const char* name, std::uint8_t domain_type) const;

    /// Takes the first message, waiting for one until `deadline`. Any number of threads; the one
    /// that took a message last serves the port: it inherits the priority of those who wait for
    /// room in the queue or for the reply to a queued request. Thread context, interrupts on.
    MachMsgReturn receive(Message& message, std::uint64_t deadline = no_deadline) const;

  private:
    explicit ReceiveRight(PortReference port) : port_(std::move(port)) {}

    PortReference port_{};
};

/// What a thread's replies come to; gone with the thread. For thread.cpp.
void release_special_reply_port(Port* port);

}  // namespace kernel
