#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kernel {

/// The arguments the boot loader passed in /chosen/bootargs: words separated by blanks, each `key`,
/// `key=value` or `key="a value"`. A later word overrides an earlier one with the same key.
///
/// Owns nothing; the text must outlive it. A value that is not what its reader asked for is handed
/// to the Complaint by name, and the fallback is used.
class BootArguments {
  public:
    /// Told of one word that could not be used, and why.
    using Complaint = void (*)(std::string_view key, std::string_view value, const char* why);

    BootArguments() = default;
    explicit BootArguments(std::string_view text, Complaint complaint = nullptr)
        : text_(text), complaint_(complaint) {}

    /// The value of `key` (empty for a bare word), or nothing if it is not there.
    std::optional<std::string_view> find(std::string_view key);
    /// Decimal or 0x hexadecimal, with an optional suffix K, M or G (powers of 1024); within
    /// [low, high].
    std::uint64_t number(std::string_view key, std::uint64_t fallback, std::uint64_t low = 0,
                         std::uint64_t high = UINT64_MAX);
    /// A bare word, 1/0, on/off, yes/no, true/false.
    bool flag(std::string_view key, bool fallback);
    /// The index of the value among `names`.
    std::size_t choice(std::string_view key, std::span<const std::string_view> names,
                       std::size_t fallback);
    /// The entry of `table` whose `name` is the value; the first one if there is no value.
    template <typename Entry, std::size_t size>
    const Entry& entry(std::string_view key, const std::array<Entry, size>& table) {
        std::array<std::string_view, size> names;
        for (std::size_t index = 0; index < size; index++)
            names[index] = table[index].name;
        return table[choice(key, names, 0)];
    }

    /// Complains of every word no reader has asked for: a mistyped key does nothing silently.
    void complain_of_unused();

  private:
    struct Word {
        std::string_view key, value;
        std::size_t index;
    };
    bool next(std::size_t& position, std::size_t& index, Word& word) const;
    void complain(std::string_view key, std::string_view value, const char* why) const;

    /// Words beyond this many are read, but never reported as unused.
    static constexpr std::size_t max_tracked = 64;

    std::string_view text_{};
    Complaint complaint_ = nullptr;
    std::uint64_t used_ = 0;
};

/// The kernel's boot arguments.
BootArguments& boot_arguments();

}  // namespace kernel
