#include "kernel/deadline_queue.hpp"

#include <utility>

namespace kernel {

void DeadlineQueue::insert(Thread& thread) {
    thread.deadline_links = {};
    root_ = merge(root_, &thread);
}

void DeadlineQueue::remove(Thread& thread) {
    Thread::DeadlineLinks& links = thread.deadline_links;
    Thread* const children = merge_siblings(links.child);
    if (root_ == &thread) {
        root_ = children;
    } else {
        // `previous` is the parent of a first child, the sibling in front of any other.
        Thread::DeadlineLinks& before = links.previous->deadline_links;
        (before.child == &thread ? before.child : before.sibling) = links.sibling;
        if (links.sibling != nullptr)
            links.sibling->deadline_links.previous = links.previous;
        root_ = merge(root_, children);
    }
    links = {};
}

/// Makes the later one of two roots the first child of the other.
Thread* DeadlineQueue::merge(Thread* a, Thread* b) {
    if (a == nullptr || b == nullptr)
        return a != nullptr ? a : b;
    if (b->deadline < a->deadline)
        std::swap(a, b);
    Thread* const child = a->deadline_links.child;
    b->deadline_links.sibling = child;
    b->deadline_links.previous = a;
    if (child != nullptr)
        child->deadline_links.previous = b;
    a->deadline_links.child = b;
    a->deadline_links.sibling = a->deadline_links.previous = nullptr;
    return a;
}

/// Merges pairs from left to right, then the pairs from right to left.
Thread* DeadlineQueue::merge_siblings(Thread* first) {
    Thread* pairs = nullptr;
    while (first != nullptr) {
        Thread* const a = first;
        Thread* const b = a->deadline_links.sibling;
        first = b != nullptr ? b->deadline_links.sibling : nullptr;
        a->deadline_links.sibling = a->deadline_links.previous = nullptr;
        if (b != nullptr)
            b->deadline_links.sibling = b->deadline_links.previous = nullptr;
        Thread* const pair = merge(a, b);
        pair->deadline_links.sibling = pairs;
        pairs = pair;
    }
    Thread* root = nullptr;
    while (pairs != nullptr) {
        Thread* const next = pairs->deadline_links.sibling;
        pairs->deadline_links.sibling = nullptr;
        root = merge(root, pairs);
        pairs = next;
    }
    return root;
}

}  // namespace kernel
