#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "kcdata/compressed_writer.hpp"
#include "kcdata/inflater.hpp"

using namespace kcdata;

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

}  // namespace

/// Two bytes of buffer size; one of parameters; then operations: a byte whose low two bits choose
/// append, append in a window, the same byte many times, or noise, and whose others are the length
/// in 16 bytes. Whatever fits in which order: what was taken comes out again, all else was refused
/// by name, and nothing outside of the buffer was written (it is an allocation of its own).
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3)
        return 0;
    std::vector<std::byte> buffer(static_cast<std::size_t>(data[0] | data[1] << 8) % 8192);
    const ZlibParameters parameters{
        .level = data[2] % 10,
        .window_bits = 9 + data[2] / 10 % 7,
        .mem_level = 1 + data[2] / 70,
        .flush_each = (data[2] & 1) != 0,
    };
    std::vector<std::byte> memory(CompressedWriter::memory_size(parameters));
    CompressedWriter writer(buffer, memory, parameters);
    const kern_return begun = writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT);
    if (begun != KERN_SUCCESS) {
        check(begun == KERN_INSUFFICIENT_BUFFER_SIZE);
        check(writer.end() == KERN_INVALID_ARGUMENT);
        return 0;
    }

    std::vector<std::byte> taken;
    std::uint32_t noise = 1;
    for (std::size_t at = 3; at < size; ++at) {
        std::vector<std::byte> items(std::size_t{16} * (data[at] >> 2));
        const unsigned kind = data[at] & 3;
        for (std::byte& byte : items) {
            noise = noise * 1664525 + 1013904223;
            byte = static_cast<std::byte>(kind == 2 ? at : noise >> 24);
        }
        kern_return error = KERN_SUCCESS;
        if (kind == 1) {
            error = writer.open_window().append_items(items);
            const kern_return closed = writer.close_window();
            if (error == KERN_SUCCESS)
                error = closed;
        } else {
            error = writer.append_items(items);
        }
        check(error == KERN_SUCCESS || error == KERN_INSUFFICIENT_BUFFER_SIZE);
        if (error == KERN_SUCCESS)
            taken.insert(taken.end(), items.begin(), items.end());
    }
    check(writer.end() == KERN_SUCCESS);
    check(writer.used() <= buffer.size());
    check(writer.uncompressed() == taken.size());

    CompressedHead head;
    check(read_compressed_head(buffer, head) == CompressionError::none);
    check(head.end_offset == writer.used());
    std::vector<std::byte> inflater_memory(Inflater::memory_size);
    Inflater inflater(head, inflater_memory);
    std::vector<std::byte> out(taken.size() + 1);
    check(inflater.read(out) == taken.size());
    check(inflater.error() == CompressionError::none);
    out.pop_back();
    check(out == taken);
    return 0;
}
