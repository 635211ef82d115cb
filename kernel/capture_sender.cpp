#include "kernel/capture_sender.hpp"

#include <array>
#include <cstring>

#include "kcdata/serial/sender.hpp"
#include "kernel/console.hpp"

namespace kernel {
namespace {

using namespace kcdata;

/// Gathers one frame, so that it goes out as one unit of the console.
class FrameSink final : public serial::ByteSink {
  public:
    kern_return write(std::span<const std::byte> bytes) override {
        if (bytes.size() > buffer_.size() - size_)
            return KERN_NO_SPACE;
        std::memcpy(buffer_.data() + size_, bytes.data(), bytes.size());
        size_ += bytes.size();
        return KERN_SUCCESS;
    }
    void send() {
        console::write(std::span(buffer_).first(size_));
        size_ = 0;
    }

  private:
    std::array<std::byte, serial::max_frame_size_on_line> buffer_;
    std::size_t size_ = 0;
};

}  // namespace

kern_return send_capture(std::span<const std::byte> capture) {
    FrameSink sink;
    serial::Sender sender(capture, sink);
    while (!sender.done()) {
        if (const kern_return error = sender.send_next(); error != KERN_SUCCESS)
            return error;
        sink.send();
    }
    return KERN_SUCCESS;
}

}  // namespace kernel
