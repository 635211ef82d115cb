#include "kernel/main.hpp"

#include <string_view>

#include "kernel/boot_arguments.hpp"
#include "kernel/capture_sender.hpp"
#include "kernel/command_service.hpp"
#include "kernel/console.hpp"
#include "kernel/machine_arm64.hpp"
#include "kernel/memory.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/panic.hpp"
#include "kernel/panic_capture.hpp"
#include "kernel/pl011_driver.hpp"
#include "kernel/quiesce.hpp"
#include "kernel/scheduler.hpp"
#include "kernel/secondaries.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/stackshot_service.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel {
namespace {

void complain(std::string_view key, std::string_view value, const char* why) {
    console::print("boot argument %.*s=%.*s: %s\n", static_cast<int>(key.size()), key.data(),
                   static_cast<int>(value.size()), value.data(), why);
}

void announce(const platform::Board& board) {
    console::print("stackshot-unikernel " STACKSHOT_UNIKERNEL_VERSION " on %s: %zu CPUs, %zu MiB\n",
                   board.model, board.cpus.size(),
                   page_allocator().total_pages() * page_size >> 20);
}

/// The first thread: what needs threads to be started.
void kernel_bootstrap_thread(void* argument) {
    const auto& board = *static_cast<const platform::Board*>(argument);
    start_kernel_thread("daemon.thread-terminate", thread_terminate_daemon, nullptr);
    pl011_driver::start(board);
    start_secondaries(board);
    initialize_stackshot_subsystem(boot_arguments());
    start_workload(boot_arguments());
    take_boot_profile(boot_arguments());
    // A self test reads arguments of its own later.
    if (start_selftest())
        return;
    start_command_service();
    start_stackshot_service();
    boot_arguments().complain_of_unused();
}

/// The calling context becomes the idle thread of the boot CPU.
void adopt_boot_context() {
    auto idle = idle_thread_create(machine::current_cpu(), {});
    if (!idle.ok())
        panic("idle thread: %s", kcdata::kern_return_name(idle.error()));
    SchedulerGuard guard;
    scheduler::adopt_idle_thread(guard, *idle.value());
}

}  // namespace

void adopt_boot_cpu() {
    machine::adopt_cpu(0);
}

void kernel_main(const platform::Board& board) {
    boot_arguments() = BootArguments(board.bootargs, complain);
    configure_panic(boot_arguments());
    configure_capture_sender(boot_arguments());
    configure_quiesce(boot_arguments());
    initialize_memory(board);
    announce(board);

    machine::initialize_interrupts(board);
    if (const auto status = machine::initialize_cpu_interrupts(); status != platform::GicStatus::ok)
        panic("interrupt controller: %s", platform::name(status));
    quiesce().admit();
    initialize_stackshot_system(board);
    reserve_panic_capture(boot_arguments());

    initialize_kernel_task();
    adopt_boot_context();
    start_kernel_thread("kernel_bootstrap_thread", kernel_bootstrap_thread,
                        const_cast<platform::Board*>(&board));
    scheduler::idle();
}

}  // namespace kernel
