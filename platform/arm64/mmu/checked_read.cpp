#include "platform/arm64/mmu/checked_read.hpp"

#include "platform/arm64/exception/esr.hpp"
#include "platform/arm64/mmu/mmu.hpp"

namespace platform::mmu {

extern "C" {
bool checked_read_word(std::uint64_t address, std::uint64_t& value);
extern const char checked_read_load[];
extern const char checked_read_load_end[];
extern const char checked_read_faulted[];
}

namespace {
std::uint64_t address_of(const char* symbol) {
    return reinterpret_cast<std::uint64_t>(symbol);
}
}  // namespace

bool checked_read(std::uint64_t address, std::uint64_t& value) {
    // Not left to the MMU: an aligned word cannot be half readable, and a read of a device register
    // can do something to the device.
    return address % sizeof(value) == 0 && !(address >= device_base && address < device_end) &&
           checked_read_word(address, value);
}

bool fix_up_checked_read(ExceptionFrame& frame) {
    const CodeRange load{address_of(checked_read_load), address_of(checked_read_load_end)};
    if (!load.contains(frame.elr) || ESR_EL1::EC(frame.esr) != ESR_EL1::EC_data_abort_same_el)
        return false;
    frame.elr = address_of(checked_read_faulted);
    return true;
}

bool checked_read_intact() {
    return address_of(checked_read_load) == reinterpret_cast<std::uint64_t>(checked_read_word) &&
           address_of(checked_read_load_end) == address_of(checked_read_load) + 4 &&
           address_of(checked_read_faulted) > address_of(checked_read_load);
}

}  // namespace platform::mmu
