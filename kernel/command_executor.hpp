#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kcdata/serial/target.hpp"
#include "kernel/capture_compression.hpp"
#include "kernel/page_text.hpp"
#include "kernel/stackshot_config.hpp"

namespace kernel {

/// Carries out what is asked for over the serial line, be it by a host's requests or typed at the
/// console, on behalf of kernel_task. Holds what there is to be pulled: the capture taken last, the
/// retained one that was retrieved last, and a text. Thread context, one thread at a time.
class CommandExecutor : public kcdata::serial::TargetCommands {
  public:
    CommandExecutor() = default;
    CommandExecutor(const CommandExecutor&) = delete;
    CommandExecutor& operator=(const CommandExecutor&) = delete;

    /// The errors are those of the system call, as kern_return. The capture taken before is given
    /// up when there is a new one, or earlier if there is no memory for both. With
    /// STACKSHOT_SAVE_IN_KERNEL_BUFFER the kernel asks for it and retains it: nothing to pull, and
    /// the size in the description is 0. What the call does not compress, deltas and page
    /// tables, is compressed here if STACKSHOT_DO_COMPRESS asks for it.
    kcdata::Result<kcdata::serial::ObjectDescription> take_stackshot(
        const kcdata::serial::StackshotRequest& request) override;
    kcdata::Result<kcdata::serial::ObjectDescription> retrieve_retained() override;
    std::size_t list_captures(
        std::span<kcdata::serial::ObjectDescription, kcdata::serial::max_listed> list) override;
    kcdata::kern_return release(std::uint32_t name) override;
    /// KERN_NOT_SUPPORTED: not one of the operations. KERN_RESOURCE_SHORTAGE: no memory.
    kcdata::Result<kcdata::serial::ObjectDescription> write_text(
        kcdata::serial::Operation operation) override;
    kcdata::kern_return run_workload(std::string_view name_and_arguments) override;
    kcdata::kern_return stop_workload(std::string_view name) override;
    kcdata::kern_return check_baud_rate(std::uint32_t baud_rate) override;
    void set_baud_rate(std::uint32_t baud_rate) override;
    void reboot() override;
    void power_off() override;
    std::span<const std::byte> object(std::uint32_t name,
                                      kcdata::serial::ObjectKind& kind) override;

  protected:
    ~CommandExecutor() = default;

  private:
    /// A place for a capture to be pulled.
    struct Held {
        StackshotConfig config;
        CompressedCapture compressed{};  ///< instead of what `config` holds, if there is one
        kcdata::serial::ObjectDescription description{};  ///< its size is 0: nothing is held

        Held();
        bool holds(std::uint32_t name) const {
            return description.size != 0 && description.name == name;
        }
        std::span<const std::byte> bytes() const;
        void release();
        /// Has the capture compressed here what it holds.
        kcdata::kern_return compress();
        [[nodiscard]] stackshot::bsd_errno take(const kcdata::stackshot_config& wanted);
    };

    /// Puts what the system call gives into `place`, one of the three indices.
    kcdata::Result<kcdata::serial::ObjectDescription> hold(std::size_t& place,
                                                           const kcdata::stackshot_config& wanted);

    /// One more than needed: what was held is there until the next one is.
    std::array<Held, 3> held_{};
    std::size_t taken_ = 0, retrieved_ = 1, spare_ = 2;
    PageText text_{};
    kcdata::serial::ObjectDescription text_description_{};
};

}  // namespace kernel
