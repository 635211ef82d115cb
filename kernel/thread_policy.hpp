#pragma once

#include <cstdint>

namespace kernel {

struct Thread;

/// XNU's quality-of-service classes and their numbers.
enum class ThreadQos : std::uint8_t {
    UNSPECIFIED = 0,
    MAINTENANCE = 1,
    BACKGROUND = 2,
    UTILITY = 3,
    LEGACY = 4,
    USER_INITIATED = 5,
    USER_INTERACTIVE = 6,
};

/// What is asked of the kernel for a thread.
struct ThreadPolicy {
    ThreadQos qos = ThreadQos::UNSPECIFIED;
    bool darwin_background = false;
    bool io_passive = false;  ///< its I/O throttles nobody else's
};

/// A word of thread_requested_policy or thread_effective_policy: XNU's bit-fields of version 7
/// (osfmk/kern/task_policy), from the lowest bit on.
class PolicyWord {
  public:
    struct Field {
        unsigned shift, width;
    };
    constexpr explicit PolicyWord(std::uint64_t value = 0) : value_(value) {}
    constexpr std::uint64_t value() const { return value_; }
    constexpr std::uint8_t get(Field field) const {
        return static_cast<std::uint8_t>(value_ >> field.shift & ((1U << field.width) - 1));
    }
    constexpr PolicyWord with(Field field, unsigned value) const {
        return PolicyWord(value_ | std::uint64_t{value} << field.shift);
    }

  private:
    std::uint64_t value_;
};
inline constexpr PolicyWord::Field thrp_int_darwinbg{0, 1};
inline constexpr PolicyWord::Field thrp_int_iopassive{6, 1};
inline constexpr PolicyWord::Field thrp_qos{15, 3};
inline constexpr PolicyWord::Field thrp_qos_override{22, 3};
inline constexpr PolicyWord::Field thep_darwinbg{0, 1};
inline constexpr PolicyWord::Field thep_io_tier{1, 2};
inline constexpr PolicyWord::Field thep_io_passive{3, 1};
inline constexpr PolicyWord::Field thep_qos{13, 3};

/// The words of a policy. What is effective: background threads are of the class BACKGROUND at
/// most, and each class has an I/O tier.
PolicyWord requested_policy(const ThreadPolicy& policy);
PolicyWord effective_policy(const ThreadPolicy& policy);
/// The base priority of threads of a class; `unspecified` for UNSPECIFIED.
int base_priority(const ThreadPolicy& policy, int unspecified);

}  // namespace kernel
