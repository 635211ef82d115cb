#include <algorithm>
#include <array>

#include "kernel/ipc_port.hpp"
#include "kernel/panic.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/workload/scene.hpp"

namespace kernel::workload {
namespace {

constexpr std::uint32_t max_cycle = 50;

struct Server {
    Semaphore has_port{};
    ReceiveRight port{};
    SendRight next{};
    Semaphore go{};
};
constinit std::array<Server, max_cycle> servers;
constinit Semaphore served;

[[gnu::noinline]] void ask(const SendRight& next) {
    Message question{.id = 1, .body = {}, .reply = {}};
    const MachMsgReturn result = next.request(question);
    panic("port-cycle: a request ended with 0x%x", static_cast<unsigned>(result));
}

/// Serves one message, and while it does, asks the next one.
void server(void* argument) {
    Server& self = *static_cast<Server*>(argument);
    auto port = ReceiveRight::allocate(*current_thread().task);
    if (!port.ok())
        panic("port-cycle: no memory for a port");
    self.port = std::move(port.value());
    self.has_port.signal();
    Message message;
    if (self.port.receive(message) != MachMsgReturn::MACH_MSG_SUCCESS)
        panic("port-cycle: nothing to serve");
    served.signal();
    self.go.wait();
    ask(self.next);
}

}  // namespace

/// threads (2, 2 to 50) servers, each of a task of its own. Each waits for the reply of the next
/// one before it serves anybody else.
void start_port_cycle(const Size& size) {
    Scene scene("port-cycle", size.seed);
    const std::uint32_t count =
        size.threads != 0 ? std::clamp(size.threads, std::uint32_t{2}, max_cycle) : 2;
    std::array<std::uint32_t, max_cycle> order;
    const std::span drawn = std::span(order).first(count);
    static constinit std::array<Thread*, max_cycle> threads;
    scene.shuffle(drawn);
    for (const std::uint32_t index : drawn) {
        threads[index] = &scene.actor(server, &servers[index], scene.between(20, 50));
        servers[index].has_port.wait();
    }
    for (std::uint32_t index = 0; index < count; index++) {
        servers[index].next = servers[(index + 1) % count].port.make_send();
        if (servers[index].port.make_send().send({}) != MachMsgReturn::MACH_MSG_SUCCESS)
            panic("port-cycle: a message was not sent");
        served.wait();
    }
    scene.shuffle(drawn);
    for (const std::uint32_t index : drawn)
        servers[index].go.signal();
    for (std::uint32_t index = 0; index < count; index++)
        scene.await_blocked(*threads[index], kcdata::kThreadWaitPortReceive);
    // What each waits for is a port of its own, to which the reply would come.
    for (std::uint32_t index = 0; index < count; index++)
        scene.waits(*threads[index], reinterpret_cast<const void*>(threads[index]->wait_event),
                    threads[(index + 1) % count]);
    scene.deadlock(std::span(threads).first(count));
}

}  // namespace kernel::workload
