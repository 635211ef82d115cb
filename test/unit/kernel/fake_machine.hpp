#pragma once

#include <functional>

#include "kernel/machine.hpp"

/// A machine for the kernel's scheduler and everything above it: host threads are CPUs, kernel
/// threads are fibers that move between them, and interrupts are taken where a CPU unmasks them or
/// polls for them. The scheduler on it is the kernel's own. TSan is told of the fibers, but not
/// that a switch orders anything: the kernel's locks have to.
namespace fake_machine {

/// Starts `count` CPUs, each in its idle thread, and kernel_task's terminate daemon. Once in a
/// process.
void boot(kernel::CpuIndex count);
/// Stops the CPUs; whatever runs on them must have ended.
void power_off();
kernel::CpuIndex cpu_count();

/// Runs `body` in a kernel thread of kernel_task and waits for its end. For host threads that are
/// no CPU. What the body throws is thrown here.
void run(std::function<void()> body);

/// Takes a pending interrupt if interrupts are unmasked. What a CPU does between instructions.
void poll();
/// Calls `handler` in an interrupt on `cpu`, soon. From any host thread.
void raise(kernel::CpuIndex cpu, std::function<void()> handler);

/// The `number`-th allocation from now on, of heap memory or of a stack, finds no memory. The one
/// after it does.
void fail_allocation(int number);

}  // namespace fake_machine
