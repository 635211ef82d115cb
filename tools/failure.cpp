#include "tools/failure.hpp"

#include <cstdio>
#include <system_error>

#include "tools/printable.hpp"

namespace tools {

void say(const std::string& text) {
    std::fflush(stdout);
    fmt::print(stderr, "stackshot: {}\n", printable(text));
}

ExitStatus report_failure(const Failure& failure) {
    say(failure.text);
    return failure.status;
}

Failure system_failure(const std::string& what, int error, ExitStatus status) {
    return Failure{fmt::format("{}: {}", what, std::generic_category().message(error)), status};
}

}  // namespace tools
