// What symbolizer_test looks at: prints addresses in itself, and the lines that are right for them.

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace target {

int table[4] = {1, 2, 3, 4};

[[gnu::noinline]] std::uintptr_t return_address() {
    return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}

template <typename T>
[[gnu::always_inline]] inline std::uintptr_t inlined(T& line) {
    line = __LINE__ + 1;
    const std::uintptr_t address = return_address();
    asm volatile("" : : : "memory");
    return address;
}

namespace {

struct Caller {
    [[gnu::noinline]] static std::uintptr_t outer(int& inner_line, int& outer_line) {
        outer_line = __LINE__ + 1;
        const std::uintptr_t address = inlined(inner_line);
        asm volatile("" : : : "memory");
        return address;
    }
};

}  // namespace

}  // namespace target

int main() {
    int inner_line = 0, outer_line = 0;
    const std::uintptr_t address = target::Caller::outer(inner_line, outer_line);
    std::printf("%" PRIxPTR " %d %d %" PRIxPTR " %" PRIxPTR "\n", address, inner_line, outer_line,
                reinterpret_cast<std::uintptr_t>(&target::return_address),
                reinterpret_cast<std::uintptr_t>(&target::table[1]));
}
