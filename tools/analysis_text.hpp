#pragma once

#include <string>
#include <vector>

#include "tools/analyze.hpp"

namespace tools {

/// A diagnosis in words: deadlocks and cycles that are none yet, the heads of chains, priority
/// inversions, and what could not be known.
std::string analysis_text(const WaitGraph& graph, const Diagnosis& diagnosis);

/// "DEADLOCK: 2 threads wait for each other; 1 more behind them"
std::string deadlock_heading(const Diagnosis::Deadlock& deadlock);
/// "thread 12 ... waits for mutex 0x1000 held by thread 13 ...", for each of its threads.
std::vector<std::string> deadlock_lines(const WaitGraph& graph,
                                        const Diagnosis::Deadlock& deadlock);

/// What the capture does not tell of who waits for whom, and where it contradicts itself.
std::vector<std::string> unknown_lines(const WaitGraph& graph);

}  // namespace tools
