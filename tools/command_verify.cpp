#include <cstdio>
#include <memory>

#include "tools/commands.hpp"
#include "tools/printable.hpp"
#include "tools/verify.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Checks that a kcdata buffer keeps every rule of its writers";
constexpr const char* details =
    "\nOne line for each violation: offset, index of the item, containers around it, name of the\n"
    "rule, what is wrong. Buffers inside of buffers are checked too; offsets in a compressed one\n"
    "count in the buffer that decompress makes of it.\n\n"
    "XNU's writers told the padding of items in three ways; which one a buffer keeps to is found\n"
    "out, unless --generation says it:\n"
    "  1  not at all: flags are 0, payloads are rounded up\n"
    "  2  as a count in the flags (items of the third generation may be among them)\n"
    "  3  as a count in the flags, marked with 0x80\n"
    "With --strict also those rules are checked that not all releases of XNU keep. Captures of\n"
    "this project keep them all: --generation 3 --strict.\n\n"
    "Exit status 0: nothing is wrong; 1: something is, or the file cannot be read; 2: wrong "
    "usage.\n\n"
    "Rules (* only with --strict):\n";

struct Options {
    InputOptions input{};
    int generation = 0;
    bool strict = false;
    bool quiet = false;
};

class Printer final : public VerifyReport {
  public:
    Printer(const Options& options) : options_(options) {}

    void violation(const Violation& violation) override {
        ++violations_;
        fmt::print("{}: {:#010x}: item {}{}{}: {}: {}\n", options_.input.file, violation.offset,
                   violation.item, violation.where.empty() ? "" : " in ", violation.where,
                   violation.rule.name, printable(violation.what));
    }
    void buffer(const Verified& buffer) override {
        if (!options_.quiet)
            say("{}: buffer at {:#x}: generation {}, {} items", options_.input.file, buffer.offset,
                static_cast<int>(buffer.generation), buffer.items);
    }
    std::uint64_t violations() const { return violations_; }

  private:
    const Options& options_;
    std::uint64_t violations_ = 0;
};

std::string rule_list() {
    std::string text;
    for (const Rule& rule : rules())
        text += fmt::format("  {:<25}{} {}\n", rule.name, rule.strict ? '*' : ' ', rule.text);
    return text;
}

int verify_file(const Options& options) {
    const auto input = Input::open_packed(options.input.file, options.input.max_size);
    if (!input.ok())
        return report_failure(input.failure());
    VerifyOptions wanted;
    wanted.strict = options.strict;
    wanted.max_inflated = options.input.max_size;
    if (options.generation != 0)
        wanted.generation = static_cast<Generation>(options.generation);
    Printer printer(options);
    if (const auto failure = verify(input.value().data(), wanted, printer))
        return report_failure(*failure);
    for (const std::string& problem : input.value().problems())
        say("{}: {}", options.input.file, problem);
    if (printer.violations() == 0 && input.value().problems().empty())
        return exit_complete;
    say("{}: {} violations", options.input.file, printer.violations());
    return exit_failure;
}

}  // namespace

void add_verify_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("verify", summary);
    add_input_options(verb, options->input);
    verb.option("--generation", "N", options->generation, "How the padding must be told: 1, 2 or 3")
        .range(1, 3);
    verb.flag("--strict", options->strict, "Check the rules marked with * too");
    verb.flag("-q,--quiet", options->quiet, "Do not tell what was checked");
    verb.details(details + rule_list() + "\n");
    verb.action([options] { return verify_file(*options); });
}

}  // namespace tools
