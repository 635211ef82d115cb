#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "stackshot/bsd.hpp"

namespace kernel {

struct Task;

/// A task's side of the system call, as XNU's libsystem_kernel has it for its callers
/// (stackshot_config_create and so on): a configuration in the task's memory, and the capture it
/// holds. Thread context, one thread at a time.
class StackshotConfig {
  public:
    /// `task` has a map, and outlives this.
    explicit StackshotConfig(Task& task) : task_(task) {}
    ~StackshotConfig();
    StackshotConfig(const StackshotConfig&) = delete;
    StackshotConfig& operator=(const StackshotConfig&) = delete;

    /// Makes the call with pid, flags, size hint, delta timestamp and page table mask of `wanted`.
    /// EINVAL: a capture is still held. ENOMEM: no memory in the task's map. Otherwise the errors
    /// of the call, after which no capture is held.
    [[nodiscard]] stackshot::bsd_errno capture(const kcdata::stackshot_config& wanted);
    /// The capture held; empty if there is none.
    std::span<const std::byte> buffer() const;
    /// Gives up the capture held, if there is one.
    void release();

  private:
    /// What the task's memory holds: the call's argument and where its results go.
    struct Memory {
        kcdata::stackshot_config config;
        std::uint64_t buffer;
        std::uint32_t size;
    };

    Task& task_;
    std::uint64_t memory_ = 0;  ///< address of a Memory
    std::uint64_t buffer_ = 0;
    std::uint32_t size_ = 0;
};

}  // namespace kernel
