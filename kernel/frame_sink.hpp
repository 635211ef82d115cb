#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kcdata/serial/frame.hpp"
#include "kernel/console.hpp"

namespace kernel {

/// Sends frames over the console's line, each as one unit of it. Where the console may be used.
class FrameSink final : public kcdata::serial::ByteSink {
  public:
    kcdata::kern_return write(std::span<const std::byte> bytes) override {
        if (!frame_)
            frame_.emplace();
        frame_->send(bytes);
        return kcdata::KERN_SUCCESS;
    }
    kcdata::kern_return end_frame() override {
        frame_.reset();
        return kcdata::KERN_SUCCESS;
    }

  private:
    std::optional<console::Unit> frame_{};
};

}  // namespace kernel
