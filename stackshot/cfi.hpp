#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stackshot {

/// How the caller of a function is found while the function is at one certain instruction: what
/// call frame information says about the three registers a stack walk needs. AArch64: x29 is the
/// frame pointer, x30 the return address. CFA: the stack pointer's value before the call.
struct FrameRule {
    enum class Base : std::uint8_t { sp, fp };
    enum class Saved : std::uint8_t {
        in_register,  ///< still, or again, in the register
        at_offset,    ///< in memory at CFA + offset
        undefined,    ///< there is none: for the return address, the outermost function
        elsewhere,    ///< in another register or in a form that is not evaluated here
    };
    struct Slot {
        Saved saved = Saved::in_register;
        std::int64_t offset = 0;
    };

    Base cfa_base = Base::sp;
    std::int64_t cfa_offset = 0;
    Slot return_address{};
    Slot frame_pointer{};
};

enum class CfiStatus : std::uint8_t {
    found,
    no_entry,     ///< no function with call frame information covers the pc
    malformed,    ///< the tables contradict themselves or reach out of their bounds
    unsupported,  ///< well-formed, but an operation or encoding that is not evaluated here
};

/// The call frame information of an image: .eh_frame_hdr with its sorted table, and the .eh_frame
/// it points into, as the Linux Standard Base (Core, "Exception Frames") and DWARF 5, section 6.4
/// lay them out. Trusts no byte of them; reads only inside the span; keeps no state between
/// lookups, so that any number of CPUs may use it at once.
class UnwindTables {
  public:
    UnwindTables() = default;
    /// `tables`: .eh_frame_hdr and, behind it, .eh_frame. `address`: where `tables` is linked,
    /// which is what the pcs are relative to. An empty span, or a header that cannot be used, gives
    /// tables whose every lookup answers header_status().
    UnwindTables(std::span<const std::byte> tables, std::uint64_t address);

    /// The rule that holds when the instruction at `pc` is about to be executed.
    CfiStatus find(std::uint64_t pc, FrameRule& rule) const;

    /// no_entry without tables; found if the header can be used.
    CfiStatus header_status() const { return header_status_; }
    /// Functions in the sorted table.
    std::size_t function_count() const { return count_; }
    /// Address of the first instruction of the n-th function, n < function_count().
    std::uint64_t function_start(std::size_t n) const;

  private:
    std::span<const std::byte> tables_{};
    std::uint64_t address_ = 0;
    std::size_t first_entry_ = 0;  ///< offset of the sorted table
    std::size_t count_ = 0;
    CfiStatus header_status_ = CfiStatus::no_entry;
};

}  // namespace stackshot
