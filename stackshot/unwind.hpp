#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stackshot/cfi.hpp"
#include "stackshot/frame_chain.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// `end` in words.
const char* walk_end_text(WalkEnd end);

struct Walk {
    std::size_t count = 0;  ///< entries written
    WalkEnd end = WalkEnd::end_of_stack;

    bool truncated() const { return end != WalkEnd::end_of_stack; }
};

/// Walks the kernel stacks of threads. The first entry is the PC the thread stopped at; then
/// return addresses, as found, caller by caller. Where an exception interrupted the thread further
/// up, the entry behind the exception entry code's is the interrupted PC.
///
/// Callers are found through AAPCS64 frame records (x29 points to {caller's x29, return address}),
/// but from an interrupted PC through the call frame information of the image, as the frame record
/// of the function need not be there yet, or any more. A pc without such information is taken for
/// a leaf's: the return address is in x30.
///
/// One object serves all CPUs of a capture at once; it holds no state of a walk.
class Unwinder {
  public:
    /// Deepest walk that is recorded, as in XNU.
    static constexpr std::size_t max_frames = 1000;

    explicit Unwinder(System& system);

    /// Walks the stack that `stack` tells the start of, into `frames`, as deep as that is long.
    Walk walk(Quiesced& quiesced, const StackFacts& stack, std::span<std::uint64_t> frames) const;

  private:
    System& system_;
    UnwindTables tables_{};
    std::uint64_t exception_entry_low_;
    std::uint64_t exception_entry_high_;

    friend class StackWalk;
};

}  // namespace stackshot
