#include "kernel/capture_sender.hpp"

#include <array>
#include <string_view>

#include "kcdata/serial/sender.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/frame_sink.hpp"

namespace kernel {

using namespace kcdata;

namespace {

constinit serial::SenderOptions options;

}  // namespace

void configure_capture_sender(BootArguments& arguments) {
    constexpr std::array<std::string_view, 2> encodings = {"binary", "text"};
    options.encoding =
        static_cast<serial::Encoding>(arguments.choice("stackshot.encoding", encodings, 0));
    options.parity_percent =
        static_cast<std::uint32_t>(arguments.number("stackshot.parity", 0, 0, 100));
    options.repeats = static_cast<std::uint32_t>(arguments.number("stackshot.repeats", 1, 1, 100));
    const bool parity = options.parity_percent != 0;
    options.payload = arguments.number(
        "stackshot.payload", parity ? serial::lossy_line.payload : serial::max_frame_payload, 1,
        parity ? serial::max_parity_payload : serial::max_frame_payload);
}

kern_return send_capture(std::span<const std::byte> capture) {
    FrameSink sink;
    serial::Sender sender(capture, sink, options);
    return sender.send_all();
}

}  // namespace kernel
