#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>
#include <variant>

#include "tools/exit_status.hpp"

namespace tools {

/// Why something could not be done, for the person at the terminal: what was being done to which
/// thing, and what was in the way.
struct Failure {
    std::string text;
    ExitStatus status = exit_failure;
};

/// A T, or the Failure that says why there is none.
template <typename T>
class [[nodiscard]] Expected {
  public:
    Expected(T value) : value_(std::move(value)) {}
    Expected(Failure failure) : value_(std::move(failure)) {}

    bool ok() const { return std::holds_alternative<T>(value_); }
    /// Requires ok().
    T& value() { return std::get<T>(value_); }
    const T& value() const { return std::get<T>(value_); }
    /// Requires !ok().
    const Failure& failure() const { return std::get<Failure>(value_); }

  private:
    std::variant<T, Failure> value_;
};

/// Prints a line to standard error, with the program's name in front.
void say(const std::string& text);
template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    say(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Says the failure; returns its exit status.
ExitStatus report_failure(const Failure& failure);

/// "cannot ACTION THING: why" with the text of the errno value `error`.
Failure system_failure(const std::string& what, int error, ExitStatus status = exit_failure);

}  // namespace tools
