#include "kernel/capture_sender.hpp"

#include "kcdata/serial/sender.hpp"
#include "kernel/frame_sink.hpp"

namespace kernel {

using namespace kcdata;

kern_return send_capture(std::span<const std::byte> capture) {
    FrameSink sink;
    serial::Sender sender(capture, sink);
    return sender.send_all();
}

}  // namespace kernel
