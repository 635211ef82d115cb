#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tools {

/// The strongly connected components of a graph that have a cycle, each with all its nodes:
/// Tarjan's algorithm, without recursion. `successors(node)` returns the nodes that an edge leads
/// to from `node`, one of 0 .. `count` - 1.
template <typename Successors>
std::vector<std::vector<std::size_t>> strongly_connected(std::size_t count,
                                                         const Successors& successors) {
    constexpr std::size_t unseen = SIZE_MAX;
    struct Visit {
        std::size_t node;
        std::vector<std::size_t> successors;
        std::size_t next = 0;
    };
    std::vector<std::vector<std::size_t>> components;
    std::vector<std::size_t> order(count, unseen), lowest(count, 0);
    std::vector<std::size_t> stack;
    std::vector<bool> on_stack(count, false);
    std::vector<Visit> path;
    std::size_t seen = 0;
    const auto enter = [&](std::size_t node) {
        order[node] = lowest[node] = seen++;
        stack.push_back(node);
        on_stack[node] = true;
        path.push_back({node, successors(node)});
    };
    for (std::size_t root = 0; root < count; ++root) {
        if (order[root] != unseen)
            continue;
        enter(root);
        while (!path.empty()) {
            Visit& visit = path.back();
            if (visit.next < visit.successors.size()) {
                const std::size_t next = visit.successors[visit.next++];
                if (order[next] == unseen)
                    enter(next);
                else if (on_stack[next])
                    lowest[visit.node] = std::min(lowest[visit.node], order[next]);
                continue;
            }
            const std::size_t node = visit.node;
            const bool loop = std::find(visit.successors.begin(), visit.successors.end(), node) !=
                              visit.successors.end();
            path.pop_back();
            if (!path.empty())
                lowest[path.back().node] = std::min(lowest[path.back().node], lowest[node]);
            if (lowest[node] != order[node])
                continue;
            std::vector<std::size_t> component;
            std::size_t member = unseen;
            do {
                member = stack.back();
                stack.pop_back();
                on_stack[member] = false;
                component.push_back(member);
            } while (member != node);
            if (component.size() > 1 || loop)
                components.push_back(std::move(component));
        }
    }
    return components;
}

}  // namespace tools
