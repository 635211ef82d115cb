#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#elif __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif

#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace fake_machine {

/// What the sanitizers want to know of a fiber. Nothing without them.
class SanitizerFiber {
  public:
    /// The host thread that calls this, which is a fiber itself.
    void adopt_host_thread() {
#ifdef FIBER_TSAN
        tsan_ = __tsan_get_current_fiber();
#endif
    }
    void create([[maybe_unused]] void* stack, [[maybe_unused]] std::size_t size) {
#ifdef FIBER_TSAN
        tsan_ = __tsan_create_fiber(0);
#endif
#ifdef FIBER_ASAN
        stack_ = stack;
        size_ = size;
#endif
    }
    /// It does not run and never will again.
    void destroy() {
#ifdef FIBER_TSAN
        __tsan_destroy_fiber(tsan_);
#endif
    }
    /// In front of a switch from this to `to`.
    void leave([[maybe_unused]] SanitizerFiber& to) {
#ifdef FIBER_TSAN
        // What one CPU does stays in order over a switch; nothing else is ordered by it.
        __tsan_switch_to_fiber(to.tsan_, 0);
#endif
#ifdef FIBER_ASAN
        __sanitizer_start_switch_fiber(&fake_stack_, to.stack_, to.size_);
#endif
    }
    /// Behind a switch to this; `from` is what was left.
    void arrive([[maybe_unused]] SanitizerFiber& from) {
#ifdef FIBER_ASAN
        const void* stack = nullptr;
        std::size_t size = 0;
        __sanitizer_finish_switch_fiber(fake_stack_, &stack, &size);
        // A host thread's own stack becomes known when it is left.
        from.stack_ = stack;
        from.size_ = size;
#endif
    }

  private:
#ifdef FIBER_TSAN
    void* tsan_ = nullptr;
#endif
#ifdef FIBER_ASAN
    void* fake_stack_ = nullptr;
    const void* stack_ = nullptr;
    std::size_t size_ = 0;
#endif
};

}  // namespace fake_machine
