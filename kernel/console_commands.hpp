#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kernel {

class CommandExecutor;

/// Commands that somebody types at the console: lines of text, echoed, with backspace and ^U, each
/// carried out when it ends. Thread context, one thread at a time.
class ConsoleCommands {
  public:
    /// `executor` outlives this.
    explicit ConsoleCommands(CommandExecutor& executor) : executor_(executor) {}

    /// Takes what came over the line besides frames. A line with anything but printable ASCII
    /// characters in it is noise: it is not echoed any further and not carried out. Noise ends with
    /// its line, or when nothing comes for a moment.
    void type(std::span<const std::byte> bytes);

  private:
    static constexpr std::size_t max_length = 120;

    void type(char character);
    void run(std::string_view line);

    CommandExecutor& executor_;
    std::array<char, max_length> line_{};
    std::size_t length_ = 0;
    bool noise_ = false;
    std::uint64_t last_time_ = 0;  ///< when something came last, in absolute time
    char last_ = 0;
};

}  // namespace kernel
