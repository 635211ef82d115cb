// What code compiled for a hosted program (libc, libfdt, zlib) and the C++ library's headers want
// of their environment. All of it but the guard is for what cannot happen; an exception at that
// place lets the kernel report it with a backtrace.

#include <cstddef>
#include <cstdint>

namespace {

[[noreturn]] void impossible() {
    __builtin_trap();
}

}  // namespace

extern "C" {

std::uintptr_t __stack_chk_guard = 0x595e'9fbd'94fd'a766;

[[noreturn]] void __stack_chk_fail() {
    impossible();
}

[[noreturn]] void abort() {
    impossible();
}

[[noreturn]] void __cxa_pure_virtual() {
    impossible();
}

/// zlib's default allocator: ours gives every stream another one.
void* malloc(std::size_t) {
    impossible();
}
void free(void*) {
    impossible();
}

}  // extern "C"

namespace std {

/// An operator[] outside of its container, with _GLIBCXX_ASSERTIONS.
[[noreturn]] void __glibcxx_assert_fail(const char*, int, const char*, const char*) noexcept {
    impossible();
}

/// An exception that leaves a noexcept function, where GCC 14's headers check for one.
[[noreturn]] void terminate() noexcept {
    impossible();
}

/// string_view::substr() behind the end, and the like.
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...) {
    impossible();
}

}  // namespace std
