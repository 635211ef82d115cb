#include "kernel/ipc_port.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/heap.hpp"
#include "kernel/port_label.hpp"

namespace kernel {

using enum MachMsgReturn;
using kcdata::kThreadWaitPortReceive;
using kcdata::kThreadWaitPortSend;

/// A queue of messages, those who wait for one, and those who wait for room. The scheduler lock
/// guards it.
class Port {
  public:
    Port(std::int32_t receiver_pid, std::uint32_t qlimit, std::uint32_t wait_flags = 0)
        : qlimit_(qlimit), receivers_(receiver_pid, wait_flags), senders_(receiver_pid) {}

    static PortReference retain(SchedulerGuard&, Port& port) {
        ++port.references_;
        return PortReference(&port);
    }
    /// True: it was the last one.
    [[nodiscard]] static bool drop(SchedulerGuard& guard, Port& port) {
        if (--port.references_ > 0)
            return false;
        port.receivers_.set_inheritor(guard, nullptr);
        port.senders_.set_inheritor(guard, nullptr);
        return true;
    }

    MachMsgReturn send(SchedulerGuard& guard, Message& message, std::uint64_t deadline);
    MachMsgReturn receive(SchedulerGuard& guard, Message& message, std::uint64_t deadline);
    MachMsgReturn request(Message& message, std::uint64_t deadline);
    static MachMsgReturn reply(SendOnceRight& right, Message& message);
    void set_label(SchedulerGuard& guard, const PortLabel& label) {
        CHECK(senders_.port_label() == nullptr);
        label_ = label;
        senders_.set_port_label(guard, &label_);
        receivers_.set_port_label(guard, &label_);
    }
    /// Nobody receives any more. `messages` takes what is queued.
    using Messages = std::array<Message, ReceiveRight::MACH_PORT_QLIMIT_LARGE>;
    void die(SchedulerGuard& guard, Messages& messages);

  private:
    static Port* special_reply_port(Thread& self);
    void serve_with(SchedulerGuard& guard, Thread* thread);
    Message& queued(std::uint32_t index) { return messages_[(first_ + index) % qlimit_]; }

    std::uint32_t references_ = 1;
    std::uint32_t qlimit_;
    bool active_ = true;
    /// Messages queued, from `first_` on.
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
    /// Of these, such as are for receivers that were woken for them and have not run yet.
    std::uint32_t promised_messages_ = 0;
    /// Room that senders were woken for that have not run yet.
    std::uint32_t promised_room_ = 0;
    Messages messages_{};
    PortLabel label_{};
    /// Their inheritor, for a special reply port: who serves the request.
    Turnstile receivers_;
    /// Their inheritor: who took a message last.
    Turnstile senders_;
};

PortReference::~PortReference() {
    if (port_ == nullptr)
        return;
    bool last = false;
    {
        SchedulerGuard guard;
        last = Port::drop(guard, *port_);
    }
    if (last)
        heap::destroy(port_);
}

MachMsgReturn Port::send(SchedulerGuard& guard, Message& message, std::uint64_t deadline) {
    if (active_ && count_ + promised_room_ >= qlimit_) {
        const WaitResult result =
            senders_.wait(guard, {.event = this, .block_hint = kThreadWaitPortSend}, deadline);
        if (result == WaitResult::THREAD_TIMED_OUT)
            return MACH_SEND_TIMED_OUT;
        if (active_)
            --promised_room_;
    }
    if (!active_)
        return MACH_SEND_INVALID_DEST;
    queued(count_++) = std::move(message);
    if (Thread* const receiver = receivers_.wake_one(guard); receiver != nullptr) {
        ++promised_messages_;
        serve_with(guard, receiver);
    } else {
        serve_with(guard, senders_.inheritor());
    }
    return MACH_MSG_SUCCESS;
}

MachMsgReturn Port::receive(SchedulerGuard& guard, Message& message, std::uint64_t deadline) {
    if (active_ && count_ == promised_messages_) {
        const WaitResult result =
            receivers_.wait(guard, {.event = this, .block_hint = kThreadWaitPortReceive}, deadline);
        if (result == WaitResult::THREAD_TIMED_OUT)
            return MACH_RCV_TIMED_OUT;
        if (active_)
            --promised_messages_;
    }
    if (!active_)
        return MACH_RCV_PORT_DIED;
    // The slot is left empty, as its next message is to find it.
    message = std::exchange(queued(0), {});
    first_ = (first_ + 1) % qlimit_;
    --count_;
    serve_with(guard, &current_thread());
    if (message.reply)
        message.reply.reply_port_->receivers_.set_inheritor(guard, &current_thread());
    if (senders_.wake_one(guard) != nullptr)
        ++promised_room_;
    return MACH_MSG_SUCCESS;
}

/// Those who wait for room or for the reply to a queued request depend on `thread`. A request is
/// a hop away while it is queued: another thread may take it.
void Port::serve_with(SchedulerGuard& guard, Thread* thread) {
    senders_.set_inheritor(guard, thread);
    for (std::uint32_t index = 0; index < count_; index++)
        if (const Message& message = queued(index); message.reply)
            message.reply.reply_port_->receivers_.set_inheritor(guard, thread, /*hops=*/2);
}

Port* Port::special_reply_port(Thread& self) {
    if (self.special_reply_port == nullptr)
        self.special_reply_port =
            heap::create<Port>(self.task->pid, 1u, kcdata::STACKSHOT_WAITINFO_FLAGS_SPECIALREPLY);
    return self.special_reply_port;
}

MachMsgReturn Port::request(Message& message, std::uint64_t deadline) {
    Thread& self = current_thread();
    Port* const reply_port = special_reply_port(self);
    if (reply_port == nullptr)
        return MACH_SEND_NO_BUFFER;
    MachMsgReturn result = MACH_MSG_SUCCESS;
    PortReference given_up;
    // Rights go away with the lock free only: the caller's message is not touched before.
    Message exchanged{message.id, message.body, {}};
    ImportanceDonation donation{.pid = receivers_.owner_pid()};
    {
        SchedulerGuard guard;
        reply_port->receivers_.set_owner_pid(guard, receivers_.owner_pid());
        reply_port->receivers_.set_port_label(guard, receivers_.port_label());
        if ((self.task->flags & kcdata::kTaskIsImpDonor) != 0)
            self.task->donations.push_back(donation);
        exchanged.reply = SendOnceRight(retain(guard, *reply_port));
        result = send(guard, exchanged, deadline);
        if (result == MACH_MSG_SUCCESS)
            result = reply_port->receive(guard, exchanged, deadline);
        // Whoever served the request, does so no more.
        reply_port->receivers_.set_inheritor(guard, nullptr);
        reply_port->senders_.set_inheritor(guard, nullptr);
        reply_port->receivers_.set_port_label(guard, nullptr);
        if ((self.task->flags & kcdata::kTaskIsImpDonor) != 0)
            self.task->donations.remove(donation);
        if (result != MACH_MSG_SUCCESS) {
            // A reply may still come: it is to find a port that is dead, and not the next one's.
            reply_port->active_ = false;
            given_up = PortReference(std::exchange(self.special_reply_port, nullptr));
        }
    }
    if (result == MACH_MSG_SUCCESS)
        message = std::move(exchanged);
    return result;
}

MachMsgReturn Port::reply(SendOnceRight& right, Message& message) {
    const PortReference reply_port = std::move(right.reply_port_);
    if (!reply_port)
        return MACH_SEND_INVALID_DEST;
    SchedulerGuard guard;
    return reply_port->send(guard, message, no_deadline);
}

void Port::die(SchedulerGuard& guard, Messages& messages) {
    active_ = false;
    std::swap(messages, messages_);
    count_ = 0;
    receivers_.wake_all(guard);
    senders_.wake_all(guard);
    senders_.set_inheritor(guard, nullptr);
}

SendOnceRight::~SendOnceRight() {
    if (!reply_port_)
        return;
    Port::Messages messages;
    SchedulerGuard guard;
    reply_port_->die(guard, messages);
}

MachMsgReturn reply(Message& request, Message message) {
    return Port::reply(request.reply, message);
}

SendRight SendRight::copy() const {
    SchedulerGuard guard;
    return SendRight(Port::retain(guard, *port_.get()));
}

MachMsgReturn SendRight::send(Message message, std::uint64_t deadline) const {
    CHECK(machine::interrupts_enabled());
    SchedulerGuard guard;
    return port_->send(guard, message, deadline);
}

MachMsgReturn SendRight::request(Message& message, std::uint64_t deadline) const {
    CHECK(machine::interrupts_enabled());
    return port_->request(message, deadline);
}

kcdata::Result<ReceiveRight> ReceiveRight::allocate(const Task& task, std::uint32_t qlimit) {
    CHECK(qlimit >= 1 && qlimit <= MACH_PORT_QLIMIT_LARGE);
    Port* const port = heap::create<Port>(task.pid, qlimit);
    if (port == nullptr)
        return kcdata::KERN_RESOURCE_SHORTAGE;
    return ReceiveRight(PortReference(port));
}

ReceiveRight::~ReceiveRight() {
    if (!port_)
        return;
    Port::Messages messages;
    SchedulerGuard guard;
    port_->die(guard, messages);
}

SendRight ReceiveRight::make_send() const {
    SchedulerGuard guard;
    return SendRight(Port::retain(guard, *port_.get()));
}

void ReceiveRight::set_service(const char* name, std::uint8_t domain_type) const {
    PortLabel label{.domain_type = domain_type};
    std::memcpy(label.name, name, std::min(std::strlen(name), sizeof(label.name) - 1));
    SchedulerGuard guard;
    port_->set_label(guard, label);
}

MachMsgReturn ReceiveRight::receive(Message& message, std::uint64_t deadline) const {
    CHECK(machine::interrupts_enabled());
    // Behind the lock: rights go away with the lock free only. The port is held, as the right may
    // go away in the wait.
    PortReference held;
    Message received;
    MachMsgReturn result = MACH_MSG_SUCCESS;
    {
        SchedulerGuard guard;
        held = Port::retain(guard, *port_.get());
        result = held->receive(guard, received, deadline);
    }
    if (result == MACH_MSG_SUCCESS)
        message = std::move(received);
    return result;
}

void release_special_reply_port(Port* port) {
    const PortReference last(port);
}

}  // namespace kernel
