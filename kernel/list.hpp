#pragma once

namespace kernel {

/// What makes a T a member of one List at a time. Null at the ends, so that a reader that trusts
/// nothing walks it with one checked read a step.
template <typename T>
struct ListLink {
    T* next = nullptr;
    T* previous = nullptr;
};

/// A doubly linked list through a member of its elements. Owns none of them; the caller locks.
template <typename T, ListLink<T> T::*link>
class List {
  public:
    T* first() const { return first_; }
    T* last() const { return last_; }
    bool empty() const { return first_ == nullptr; }
    static T* next(const T& element) { return (element.*link).next; }
    static T* previous(const T& element) { return (element.*link).previous; }

    void push_front(T& element) { insert_after(nullptr, element); }
    void push_back(T& element) { insert_after(last_, element); }

    /// Inserts behind `position`, an element of this list; in front of all if it is null.
    void insert_after(T* position, T& element) {
        T* const next = position != nullptr ? (position->*link).next : first_;
        (element.*link) = {next, position};
        (position != nullptr ? (position->*link).next : first_) = &element;
        (next != nullptr ? (next->*link).previous : last_) = &element;
    }

    /// `element` is in this list.
    void remove(T& element) {
        const auto [next, previous] = element.*link;
        (previous != nullptr ? (previous->*link).next : first_) = next;
        (next != nullptr ? (next->*link).previous : last_) = previous;
        element.*link = {};
    }

    /// Null if the list is empty.
    T* pop_front() {
        T* const element = first_;
        if (element != nullptr)
            remove(*element);
        return element;
    }

  private:
    T* first_ = nullptr;
    T* last_ = nullptr;
};

}  // namespace kernel
