#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace kcdata {

/// XNU's kern_return_t values that this project uses; names and numbers as in mach/kern_return.h.
enum class [[nodiscard]] kern_return : std::int32_t{
    KERN_SUCCESS = 0,
    KERN_INVALID_ADDRESS = 1,
    KERN_NO_SPACE = 3,
    KERN_INVALID_ARGUMENT = 4,
    KERN_FAILURE = 5,
    KERN_RESOURCE_SHORTAGE = 6,
    KERN_NO_ACCESS = 8,
    KERN_ALREADY_IN_SET = 11,
    KERN_NOT_IN_SET = 12,
    KERN_ABORTED = 14,
    KERN_INVALID_NAME = 15,
    KERN_INVALID_VALUE = 18,
    KERN_INVALID_OBJECT = 29,
    KERN_MEMORY_PRESENT = 23,
    KERN_LOCK_OWNED = 39,
    KERN_NOT_SUPPORTED = 46,
    KERN_OPERATION_TIMED_OUT = 49,
    KERN_INSUFFICIENT_BUFFER_SIZE = 52,
};
using enum kern_return;

/// The name of `code` as in mach/kern_return.h, or "unknown kern_return".
const char* kern_return_name(kern_return code);

/// A value of T, or the kern_return that says why there is none. Never holds KERN_SUCCESS as error.
template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)), error_(KERN_SUCCESS) {}
    Result(kern_return error) : error_(error == KERN_SUCCESS ? KERN_FAILURE : error) {}

    bool ok() const { return value_.has_value(); }
    kern_return error() const { return error_; }
    /// Requires ok().
    T& value() { return *value_; }
    const T& value() const { return *value_; }
    T* operator->() { return &*value_; }

  private:
    std::optional<T> value_;
    kern_return error_;
};

}  // namespace kcdata
