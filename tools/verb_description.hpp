#pragma once

#include <string>
#include <vector>

namespace tools {

/// What there is to know of an option, for the manual and for completion in a shell.
struct OptionDescription {
    std::vector<std::string> names{};   ///< "-o", "--output"
    std::string value{};                ///< stands for the value: "FILE"; empty: a flag
    std::string help{};                 ///< begins with a capital letter, without a full stop
    std::string default_value{};        ///< empty: none, or the help tells
    std::vector<std::string> values{};  ///< all there are; empty: any
    bool repeatable = false;            ///< may be given several times
};

/// A word that has to be there.
struct ArgumentDescription {
    std::string name{};  ///< "FILE"
    std::string help{};
    std::vector<std::string> values{};  ///< all there are; empty: any
};

struct VerbDescription {
    std::string name{};
    std::string summary{};  ///< without a full stop
    std::string details{};  ///< what its help says behind the options; laid out with spaces
    std::vector<ArgumentDescription> arguments{};
    std::vector<OptionDescription> options{};  ///< without --help
};

struct ProgramDescription {
    std::string version{};  ///< "stackshot 1.2.3"
    std::string summary{};  ///< laid out with spaces
    std::vector<VerbDescription> verbs{};
};

/// Whether a value of that name is a file's.
bool is_file_value(const std::string& name);

}  // namespace tools
