#include "kernel/selftest/selftest.hpp"

#include <array>
#include <cstdarg>
#include <string_view>

#include "kernel/boot_arguments.hpp"
#include "kernel/console.hpp"
#include "kernel/format_text.hpp"
#include "kernel/panic.hpp"
#include "kernel/shutdown.hpp"
#include "kernel/task.hpp"
#include "kernel/thread.hpp"

namespace kernel {
namespace selftest {
namespace {

struct Test {
    std::string_view name;
    void (*run)(Verdict& verdict);
};
constexpr std::array tests = {
    Test{"quiesce", quiesce_test},     Test{"absent", absent_test},
    Test{"console", console_test},     Test{"modes", modes_test},
    Test{"hostile", hostile_test},     Test{"scale", scale_test},
    Test{"cost", cost_test},           Test{"speedup", speedup_test},
    Test{"panic", panic_test},         Test{"panic-collector", panic_collector_test},
    Test{"scheduler", scheduler_test}, Test{"admission", admission_test},
    Test{"stress", stress_test},       Test{"injection", injection_test},
    Test{"inversion", inversion_test}, Test{"turnstiles", turnstiles_test},
};

const Test* find(std::string_view name) {
    for (const Test& test : tests)
        if (test.name == name)
            return &test;
    return nullptr;
}

Verdict verdict;

void run(void* argument) {
    const auto& test = *static_cast<const Test*>(argument);
    const auto length = static_cast<int>(test.name.size());
    test.run(verdict);
    if (verdict.failed())
        console::print("TEST %.*s: failed: %s\n", length, test.name.data(), verdict.reason());
    else
        console::print("TEST %.*s: passed\n", length, test.name.data());
    shut_down();
}

}  // namespace

void Verdict::fail(const char* format, ...) {
    if (claimed_.exchange(true, std::memory_order_acq_rel))
        return;
    std::va_list arguments;
    va_start(arguments, format);
    format_to_v(reason_, sizeof(reason_), format, arguments);
    va_end(arguments);
    failed_.store(true, std::memory_order_release);
}

}  // namespace selftest

bool start_selftest() {
    const auto name = boot_arguments().find("test");
    if (!name)
        return false;
    const selftest::Test* const test = selftest::find(*name);
    if (test == nullptr) {
        console::print("TEST %.*s: failed: there is no such test\n", static_cast<int>(name->size()),
                       name->data());
        shut_down();
    }
    start_kernel_thread("selftest", selftest::run, const_cast<selftest::Test*>(test));
    return true;
}

}  // namespace kernel
