#pragma once

#include <string>

#include "tools/wait_graph.hpp"

namespace tools {

/// Parts of a wait graph in words. Names are made printable().

/// thread 12 "name" (task "x" [pid 5])
std::string thread_text(const WaitGraph& graph, std::size_t thread);
/// task "x" [pid 5]
std::string task_text(const WaitGraph& graph, std::size_t task);
/// mutex 0x1000, port 0x2000 {label}
std::string object_text(const WaitGraph& graph, std::size_t object);

/// waits for mutex 0x1000 held by thread 12 "name" (task "x" [pid 5])
std::string wait_text(const WaitGraph& graph, const WaitGraph::Wait& wait);
/// What a thread is at: its wait, or "is running on CPU 2".
std::string activity_text(const WaitGraph& graph, std::size_t thread);
/// wait_text(), and what the thread waited for waits for: ", which waits for ..., which is running
/// on CPU 2". What comes after a few threads is counted.
std::string chain_text(const WaitGraph& graph, const WaitGraph::Wait& wait);

}  // namespace tools
