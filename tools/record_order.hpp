#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tools {

/// Where the records of a stackshot stand.
enum class Scope : std::uint8_t {
    other,  ///< a container we know nothing of
    top,
    shared_cache,
    task,
    thread,
    port_label,
    exclaves,
    exclave_scresult,
    exclave_ipcstackentry,
    exclave_addressspace,
    exclave_textlayout,
};

/// What is inside of a container of the type.
Scope scope_of(std::uint32_t container_type);

/// How records are called here: by their description, or else by XNU's name of the type; empty if
/// it has none.
std::string_view record_name(std::uint32_t type, std::string_view description);

/// The place of a record or container in the order that the last release writes them in
/// (osfmk/kern/kern_stackshot.c); nothing: it is none of the scope's.
std::optional<int> rank_in(Scope scope, std::string_view name);

/// Whether the record is of some scope, so that it is misplaced in another.
bool belongs_elsewhere(std::string_view name);

/// One of these is in every scope of its kind; unused ones are empty.
struct Required {
    Scope scope;
    std::uint32_t container;  ///< the type of the container, 0 at the top
    std::array<std::string_view, 2> one_of;
};
std::span<const Required> required_records();

/// Only in delta stackshots; only in full ones.
bool is_of_delta(std::uint32_t type);
bool is_of_full(std::uint32_t type);

/// Whether every writer puts the type into arrays.
bool comes_in_numbers(std::uint32_t type);

/// The field that a record of a task or thread begins with, if that is the id of its container.
std::string_view id_field(std::uint32_t type);

/// The item type of what is described so at the top, in the last release; 0: not known.
std::uint32_t type_of_described(std::string_view description);

}  // namespace tools
