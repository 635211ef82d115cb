#pragma once

#include <string>
#include <string_view>

#include "tools/analyze.hpp"

namespace tools {

/// The wait graph as a digraph in the DOT language of Graphviz: threads (boxes, grouped by task),
/// what they wait for (ellipses), tasks and work queues; only what waits or is waited for. What is
/// in a deadlock is red, a semaphore's task is joined by a dashed line. `name` is the graph's.
std::string wait_graph_dot(const WaitGraph& graph, const Diagnosis& diagnosis,
                           std::string_view name);

}  // namespace tools
