#include "platform/arm64/mmu/checked_read.hpp"

#include <algorithm>
#include <span>

#include "platform/arm64/exception/esr.hpp"
#include "platform/arm64/image.hpp"

namespace platform::mmu {

extern "C" {
// boot/image.ld
extern const char checked_reads[];
extern const char checked_reads_end[];
}

namespace {

/// See CHECKED_LOAD().
struct CheckedLoad {
    std::int32_t load_offset;
    std::int32_t faulted_offset;

    std::uint64_t load() const { return target(load_offset); }
    std::uint64_t faulted() const { return target(faulted_offset); }

  private:
    static std::uint64_t target(const std::int32_t& offset) {
        return reinterpret_cast<std::uint64_t>(&offset) +
               static_cast<std::uint64_t>(std::int64_t{offset});
    }
};

std::span<const CheckedLoad> checked_loads() {
    return {reinterpret_cast<const CheckedLoad*>(checked_reads),
            reinterpret_cast<const CheckedLoad*>(checked_reads_end)};
}

}  // namespace

bool fix_up_checked_read(ExceptionFrame& frame) {
    if (ESR_EL1::EC(frame.esr) != ESR_EL1::EC_data_abort_same_el)
        return false;
    for (const CheckedLoad& entry : checked_loads()) {
        if (entry.load() == frame.elr) {
            frame.elr = entry.faulted();
            return true;
        }
    }
    return false;
}

bool checked_read_intact() {
    const CodeRange text = image::text();
    return !checked_loads().empty() &&
           std::ranges::all_of(checked_loads(), [&text](const CheckedLoad& entry) {
               return text.contains(entry.load()) && text.contains(entry.faulted());
           });
}

}  // namespace platform::mmu
