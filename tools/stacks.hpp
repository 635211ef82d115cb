#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/images.hpp"
#include "tools/snapshot.hpp"
#include "tools/symbolizer.hpp"

namespace tools {

/// One function of a stack: an entry of the record, or what it is inlined into.
struct StackFrame {
    std::uint64_t address = 0;
    /// Of the entry in its record; none for what the frame before it is inlined into.
    std::optional<std::size_t> index{};
    std::string function{};  ///< empty: unknown
    std::string file{};      ///< from the root of the source tree; empty: unknown
    unsigned line = 0;       ///< 0: unknown
    bool inlined = false;    ///< inlined into the next frame
    bool user = false;       ///< of the user stack
    /// The function of exception entry: what stands behind it was interrupted.
    bool exception_entry = false;
    /// Where the address lies, as an index into Images::all().
    std::optional<std::size_t> image{};

    /// The function, or the address.
    std::string name() const;
    /// "file:line" as far as known; empty: unknown.
    std::string place() const;
};

/// The stacks of a capture with what is known of their addresses. Snapshot and symbols live longer.
class Stacks {
  public:
    /// `symbols` are the kernel's; nullptr: there are none.
    Stacks(const Snapshot& snapshot, Symbolizer* symbols) : images_(snapshot), symbols_(symbols) {}

    /// Where the thread stands first, then its callers.
    std::vector<StackFrame> kernel_stack(const ThreadSnapshot& thread) const;
    /// `thread` is one of `task`, which is one of the snapshot's.
    std::vector<StackFrame> user_stack(const TaskSnapshot& task,
                                       const ThreadSnapshot& thread) const;
    /// The kernel stack, and behind it the user stack that entered the kernel.
    std::vector<StackFrame> whole_stack(const TaskSnapshot& task,
                                        const ThreadSnapshot& thread) const;

    const Images& images() const { return images_; }

  private:
    bool first_is_exact(const ThreadSnapshot& thread, std::uint64_t pc) const;

    Images images_;
    Symbolizer* symbols_;
};

/// A name as it reads best: which of several unnamed namespaces it is from, the file tells.
std::string short_name(std::string name);

}  // namespace tools
