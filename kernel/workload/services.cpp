#include <algorithm>
#include <array>

#include "kcdata/records.hpp"
#include "kernel/block_device.hpp"
#include "kernel/coalition.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/ipc_port.hpp"
#include "kernel/mutex.hpp"
#include "kernel/panic.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/scene.hpp"
#include "kernel/workqueue.hpp"

// Two applications and what serves them: coalitions, thread groups, labelled ports, importance,
// policies, a disk, a dispatch queue, stacks and counters that were put to use in a known way. What
// a capture is to say of them is printed, a line each:
//
//     services: coalition 3 group 4 "photos-1f" flags 0x102 leader 17
//     services: task 12 coalition 3
//     services: task 12 donates to 13
//     services: thread 40 group 4 requested 0x18000 effective 0xa002 tier 1
//     services: thread 40 waits at "com.example.photos" of domain 1
//     services: thread 41 asks "com.example.photos" of domain 1
//     services: thread 42 works for queue 7 "com.example.queue"
//     services: thread 43 reads 5 of 2560 bytes, writes 3 of 1536 bytes, tier 2, metadata 4
//     services: task 14 reads 5 of 2560 bytes, writes 3 of 1536 bytes, tier 2, metadata 4
//     services: thread 44 used 4711 bytes of its stack
//     services: thread 45 has run 123456 rounds
//     services: stand
namespace kernel::workload {
namespace {

constexpr std::size_t sector = 512;

constinit BlockDevice disk;
constinit WorkQueue thumbnails;
constinit Semaphore ready, go_on, never;
constinit Mutex held;

struct Service {
    char name[32] = {};
    std::uint8_t domain = 0;
    ReceiveRight port{};
};
constinit Service photos, events;

/// One that asks, and for what.
void ask(void* argument) {
    const auto& service = *static_cast<const Service*>(argument);
    const SendRight way = service.port.make_send();
    Message question{.id = 1, .body = {}, .reply = {}};
    const MachMsgReturn result = way.request(question);
    panic("services: a request ended with 0x%x", static_cast<unsigned>(result));
}

/// Asks with a mutex held that the one who serves needs.
void ask_holding(void* argument) {
    MutexGuard guard(held);
    ask(argument);
}

/// Takes one request, and for that needs what the other one who asks holds. It is no deadlock: that
/// request is queued, and a thread to spare may take it.
void serve(void* argument) {
    auto& service = *static_cast<Service*>(argument);
    Message request;
    if (service.port.receive(request) != MachMsgReturn::MACH_MSG_SUCCESS)
        panic("services: nothing to serve");
    ready.signal();
    go_on.wait();
    MutexGuard guard(held);
}

/// Waits for what does not come.
void listen(void* argument) {
    Message message;
    const auto result = static_cast<Service*>(argument)->port.receive(message);
    panic("services: a listener heard 0x%x", static_cast<unsigned>(result));
}

struct Io {
    std::uint64_t seed = 0;
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0, metadata = 0;

    void operator+=(const Io& other) {
        reads += other.reads;
        read_bytes += other.read_bytes;
        writes += other.writes;
        written_bytes += other.written_bytes;
        metadata += other.metadata;
    }
};

/// Writes and reads sectors, looks at what comes back, and tells in `argument` what it did.
void do_io(void* argument) {
    Io& io = *static_cast<Io*>(argument);
    Random random(io.seed);
    std::array<std::byte, 2 * sector> written{}, read{};
    for (std::uint64_t turn = 3 + random.below(8); turn > 0; turn--) {
        const std::size_t size = sector * (1 + random.below(2));
        const std::size_t offset = io.seed % 16 * sizeof(written);
        const IoKind kind{.metadata = random.below(2) == 0};
        std::ranges::fill(written, static_cast<std::byte>(random.next()));
        if (disk.write(offset, std::span(written).first(size), kind) != kcdata::KERN_SUCCESS)
            panic("services: the disk does not write");
        io.writes++;
        io.written_bytes += size;
        io.metadata += kind.metadata;
        for (std::uint64_t again = random.below(3); again > 0; again--) {
            if (disk.read(offset, std::span(read).first(size)) != kcdata::KERN_SUCCESS)
                panic("services: the disk does not read");
            CHECK(std::equal(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(size),
                             written.begin()));
            io.reads++;
            io.read_bytes += size;
        }
    }
    ready.signal();
    never.wait();
}

struct StackUse {
    std::uint32_t depth = 0;
    std::uint64_t deepest = 0;  ///< address
};

[[gnu::noinline]] std::uint64_t use_stack(StackUse& use, std::uint32_t depth) {
    volatile std::uint64_t room[8];
    for (auto& word : room)
        word = depth;
    use.deepest = reinterpret_cast<std::uint64_t>(&room[0]);
    return depth <= 1 ? room[0] : room[0] + use_stack(use, depth - 1);
}
void stack_user(void* argument) {
    auto& use = *static_cast<StackUse*>(argument);
    use_stack(use, use.depth);
    ready.signal();
    never.wait();
}

/// Of at least two instructions a round.
void run_rounds(void* argument) {
    for (volatile std::uint64_t left = *static_cast<std::uint64_t*>(argument); left > 0;)
        left = left - 1;
    ready.signal();
    never.wait();
}

void work_for_queue(void*) {
    ready.signal();
    never.wait();
}

void print_coalition(const Coalition& coalition) {
    console::print("services: coalition %lu group %lu \"%.32s\" flags 0x%lx leader %lu\n",
                   coalition.id, coalition.thread_group.id, coalition.thread_group.name,
                   coalition.thread_group.flags, coalition.leader_unique_pid);
}
void print_task(const Task& task) {
    console::print("services: task %d coalition %lu\n", task.pid, task.coalition->id);
}
void print_thread(const Thread& thread) {
    console::print("services: thread %lu group %lu requested 0x%lx effective 0x%lx tier %u\n",
                   thread.thread_id, thread.task->coalition->thread_group.id,
                   thread.requested_policy, thread.effective_policy,
                   unsigned{PolicyWord(thread.effective_policy).get(thep_io_tier)});
}
void print_io(const char* what, std::uint64_t id, const Io& io, unsigned tier) {
    console::print(
        "services: %s %lu reads %lu of %lu bytes, writes %lu of %lu bytes, tier %u, metadata %lu\n",
        what, id, io.reads, io.read_bytes, io.writes, io.written_bytes, tier, io.metadata);
}

void open(Service& service, const Task& task, Random& random, const char* name) {
    format_to(service.name, sizeof(service.name), "com.example.%s-%lx", name, random.below(4096));
    service.domain = static_cast<std::uint8_t>(1 + random.below(5));
    auto port = ReceiveRight::allocate(task);
    if (!port.ok())
        panic("services: no memory for a port");
    service.port = std::move(port.value());
    service.port.set_service(service.name, service.domain);
}

Coalition& make_coalition(Random& random, const char* name, std::uint64_t thread_group_flags) {
    char drawn[ThreadGroup::max_name + 1];
    format_to(drawn, sizeof(drawn), "%s-%lx", name, random.below(4096));
    auto coalition = coalition_create(drawn, 0, thread_group_flags);
    if (!coalition.ok())
        panic("services: no memory for a coalition");
    return *coalition.value();
}

void start_photos(Random& random) {
    Coalition& application = make_coalition(
        random, "photos", kcdata::kThreadGroupUIApplication | kcdata::kThreadGroupApplication);
    Task& server = make_task("photosd", kcdata::kTaskIsForeground, &application);
    Task& client = make_task("photos", kcdata::kTaskIsImpDonor, &application);
    open(photos, server, random, "photos");
    open(events, server, random, "events");
    constexpr ThreadPolicy interactive{.qos = ThreadQos::USER_INTERACTIVE};
    const Thread& serving = make_thread(server, serve, &photos, {.policy = interactive}, "server");
    const Thread& listening = make_thread(server, listen, &events, {}, "listener");
    const Thread& asking = make_thread(client, ask, &photos, {.policy = interactive}, "asks");
    ready.wait();
    // This one's request is queued.
    const Thread& queued = make_thread(client, ask_holding, &photos,
                                       {.policy = {.qos = ThreadQos::USER_INITIATED}}, "is queued");
    for (const Thread* thread : {&listening, &asking, &queued})
        Scene::await_blocked(*thread, kcdata::kThreadWaitPortReceive);
    go_on.signal();
    Scene::await_blocked(serving, kcdata::kThreadWaitKernelMutex);

    if (thumbnails.start(client, "com.example.thumbnails", 2) != kcdata::KERN_SUCCESS)
        panic("services: no memory for workers");
    static constinit WorkItem item{work_for_queue, nullptr, {}};
    thumbnails.enqueue(item);
    ready.wait();

    print_coalition(application);
    for (const Task* task : {&server, &client})
        print_task(*task);
    for (const Thread* thread : {&serving, &listening, &asking, &queued})
        print_thread(*thread);
    console::print("services: thread %lu waits at \"%s\" of domain %u\n", listening.thread_id,
                   events.name, unsigned{events.domain});
    for (const Thread* thread : {&asking, &queued})
        console::print("services: thread %lu asks \"%s\" of domain %u\n", thread->thread_id,
                       photos.name, unsigned{photos.domain});
    console::print("services: task %d donates to %d\n", client.pid, server.pid);
    console::print("services: task %d works for queue %lu \"%s\"\n", client.pid,
                   thumbnails.dispatch_queue().serial_number, thumbnails.dispatch_queue().label);
    task_release(server);
    task_release(client);
    coalition_release(application);
}

void start_backup(Random& random) {
    Coalition& backup = make_coalition(
        random, "backup", kcdata::kThreadGroupEfficient | kcdata::kThreadGroupBestEffort);
    Task& task = make_task("backupd", 0, &backup);
    if (disk.start("disk0", 16 * 2 * sector, 300) != kcdata::KERN_SUCCESS)
        panic("services: no memory for a disk");
    static constinit std::array<Io, 3> done;
    constexpr std::array<ThreadPolicy, 3> policies = {
        {{.qos = ThreadQos::UTILITY},
         {.qos = ThreadQos::USER_INITIATED, .darwin_background = true, .io_passive = true},
         {.qos = ThreadQos::MAINTENANCE}}};
    std::array<const Thread*, 3> threads;
    for (std::size_t index = 0; index < threads.size(); index++) {
        done[index].seed = index + 16 * (1 + random.below(1000));
        threads[index] = &make_thread(task, do_io, &done[index], {.policy = policies[index]},
                                      "backup.%zu", index);
    }
    for (std::size_t index = 0; index < threads.size(); index++)
        ready.wait();
    print_coalition(backup);
    print_task(task);
    for (std::size_t index = 0; index < threads.size(); index++) {
        print_thread(*threads[index]);
        print_io("thread", threads[index]->thread_id, done[index],
                 PolicyWord(threads[index]->effective_policy).get(thep_io_tier));
    }
    Io sum;
    for (const Io& io : done)
        sum += io;
    print_io("task", static_cast<std::uint64_t>(task.pid), sum, BlockDevice::tiers);
    task_release(task);
    coalition_release(backup);
}

void start_users(Random& random) {
    Task& task = make_task("users");
    static constinit StackUse use;
    static constinit std::uint64_t rounds = 0;
    use.depth = 20 + static_cast<std::uint32_t>(random.below(60));
    rounds = 1'000'000 + random.below(1'000'000);
    const Thread& of_stack = make_thread(task, stack_user, &use, {}, "of stack");
    const Thread& of_time = make_thread(task, run_rounds, &rounds, {}, "of time");
    ready.wait();
    ready.wait();
    console::print("services: thread %lu used %lu bytes of its stack\n", of_stack.thread_id,
                   of_stack.stack.high - use.deepest);
    console::print("services: thread %lu has run %lu rounds\n", of_time.thread_id, rounds);
    task_release(task);
}

}  // namespace

void start_services(const Size& size) {
    Random random(size.seed);
    start_photos(random);
    start_backup(random);
    start_users(random);
    console::print("services: stand\n");
}

}  // namespace kernel::workload
