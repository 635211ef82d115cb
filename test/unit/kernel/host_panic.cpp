#include <cstdarg>
#include <cstdio>

#include "kernel/panic.hpp"
#include "test/unit/kernel/host_panic.hpp"

namespace kernel {

void panic(const char* format, ...) {
    char text[512];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    throw Panicked(text);
}

}  // namespace kernel
