#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "stackshot/cfi.hpp"

using namespace stackshot;

/// Eight bytes that say where the pc is, relative to the tables, then any bytes as the tables:
/// a lookup ends, reads nothing outside, and answers the same twice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::uint64_t address = 0xffff'0000'0010'0000;
    std::uint64_t offset = 0;
    if (size < sizeof(offset))
        return 0;
    std::memcpy(&offset, data, sizeof(offset));
    const auto bytes = std::as_bytes(std::span(data, size).subspan(sizeof(offset)));
    const UnwindTables tables(bytes, address);
    if (tables.function_count() > bytes.size())
        std::abort();

    FrameRule rule;
    FrameRule again;
    const CfiStatus status = tables.find(address + offset, rule);
    if (tables.find(address + offset, again) != status)
        std::abort();
    if (status == CfiStatus::found && (rule.cfa_offset != again.cfa_offset ||
                                       rule.return_address.saved != again.return_address.saved))
        std::abort();
    // And each function's first instructions.
    for (std::size_t n = 0; n < tables.function_count() && n < 16; ++n) {
        for (std::uint64_t pc = 0; pc < 32; pc += 4)
            (void)tables.find(tables.function_start(n) + pc, rule);
    }
    return 0;
}
