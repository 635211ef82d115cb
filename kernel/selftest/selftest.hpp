#pragma once

#include <atomic>
#include <cstddef>

/// Tests of the running kernel that need a real machine. The boot argument `test=NAME` runs one,
/// which prints a line `TEST NAME: passed` or `TEST NAME: failed: REASON` and turns the machine
/// off.
namespace kernel::selftest {

/// What a test found out. The first failure is kept.
class Verdict {
  public:
    /// Any thread.
    [[gnu::format(printf, 2, 3)]] void fail(const char* format, ...);
    bool failed() const { return failed_.load(std::memory_order_acquire); }
    const char* reason() const { return reason_; }

  private:
    std::atomic<bool> claimed_{false};
    std::atomic<bool> failed_{false};
    char reason_[200] = {};
};

// The tests. Each runs in a thread of kernel_task and may read boot arguments of its own.
void quiesce_test(Verdict& verdict);
void absent_test(Verdict& verdict);
void console_test(Verdict& verdict);
void modes_test(Verdict& verdict);
void scale_test(Verdict& verdict);
void cost_test(Verdict& verdict);
void speedup_test(Verdict& verdict);
void hostile_test(Verdict& verdict);
void admission_test(Verdict& verdict);
void injection_test(Verdict& verdict);
void stress_test(Verdict& verdict);
void scheduler_test(Verdict& verdict);
void inversion_test(Verdict& verdict);
void turnstiles_test(Verdict& verdict);
void panic_test(Verdict& verdict);
void panic_collector_test(Verdict& verdict);

}  // namespace kernel::selftest

namespace kernel {

/// Starts the test that the boot argument `test` names, if there is one; returns whether there is.
/// Thread context.
bool start_selftest();

}  // namespace kernel
