#pragma once

#include <stdexcept>

namespace kernel {

/// What kernel::panic() throws in unit tests: what() is its message. Outside of a test case's own
/// thread it ends the program.
struct Panicked : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace kernel
