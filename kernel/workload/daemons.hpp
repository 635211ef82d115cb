#pragma once

#include <cstdint>

#include "kernel/workload/workload.hpp"

/// The tasks of the default workload. Each checks its own books: a lock that does not exclude or a
/// wake-up that is lost ends in a CHECK or in a standstill that the stackshot shows.
namespace kernel::workload {

/// Money that moves between accounts, each with a mutex; an auditor that holds them all at once.
void start_ledgerd(std::uint32_t threads);
/// A crawler that walks a tree, a bounded queue, and threads that index what comes out of it.
void start_indexd(std::uint32_t threads, std::uint32_t depth);
/// Decoders that work in step with a clock, and stand still while the player is paused.
void start_mediad(std::uint32_t threads);
/// Searches that recurse deep and rarely block.
void start_solverd(std::uint32_t threads, std::uint32_t depth);
/// Tasks that come, work a little in threads of their own and go; `jobs` at a time.
void start_crond(std::uint32_t jobs);

}  // namespace kernel::workload
