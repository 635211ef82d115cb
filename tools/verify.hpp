#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/failure.hpp"

namespace tools {

/// How a writer tells the padding of its items; XNU's did it in these ways, one after the other.
enum class Generation : std::uint8_t {
    unpadded = 1,  ///< not at all: flags 0, payloads rounded up
    counted = 2,   ///< the count alone; the marked items of the next generation may stand between
    marked = 3,    ///< the count, marked with 0x80
};

/// A rule of the format, or of the records of a stackshot.
struct Rule {
    std::string_view name;  ///< stable, for scripts
    std::string_view text;
    /// Kept by the last release of XNU, but not by all of them: checked only if asked for.
    bool strict = false;
};
std::span<const Rule> rules();

struct VerifyOptions {
    /// Nothing: what the buffer itself shows.
    std::optional<Generation> generation{};
    bool strict = false;
    /// Bytes that a compressed buffer, with those inside of it, may have when inflated.
    std::uint64_t max_inflated = std::uint64_t{4} << 30;
};

/// One place where a rule is broken.
struct Violation {
    const Rule& rule;
    std::uint64_t offset;  ///< in the file; within a compressed buffer, in the buffer inflated
    std::uint64_t item;    ///< of the buffer, BEGIN being 0
    std::string where;     ///< "task_snapshots/5/thread_snapshots/100", empty at the top
    std::string what;
};

/// What was checked of a buffer. (The nested and compressed ones count too.)
struct Verified {
    std::uint64_t offset = 0;
    Generation generation = Generation::marked;
    std::uint64_t items = 0;
};

class VerifyReport {
  public:
    virtual ~VerifyReport() = default;
    virtual void violation(const Violation& violation) = 0;
    virtual void buffer(const Verified& buffer) = 0;
};

/// Checks every rule in every buffer of a file. Takes any bytes. What is inflated goes through a
/// Spool; only that can fail.
std::optional<Failure> verify(std::span<const std::byte> bytes, const VerifyOptions& options,
                              VerifyReport& report);

}  // namespace tools
