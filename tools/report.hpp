#pragma once

#include <string>

#include "tools/snapshot.hpp"
#include "tools/symbolizer.hpp"

namespace tools {

struct ReportOptions {
    /// One line a thread, without stacks.
    bool brief = false;
    /// Show the address of each frame.
    bool addresses = false;
    /// Mark names by terminal attributes.
    bool color = false;
    /// What the symbols come from, for the header; empty: there are none.
    std::string symbols_from{};
};

/// The capture as text: what was captured, what the CPUs do, and every task with its threads and
/// their stacks. `symbols` may be nullptr: addresses only. What the capture does not tell is shown
/// as unknown.
std::string report(const Snapshot& snapshot, Symbolizer* symbols, const ReportOptions& options);

}  // namespace tools
