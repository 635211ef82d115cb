#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands.hpp"
#include "tools/json_emitter.hpp"
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
    bool json = false;
};

/// Counts what is found, and tells it.
class Findings : public VerifyReport {
  public:
    explicit Findings(const Options& options) : options_(options) {}

    void violation(const Violation& violation) final {
        ++violations_;
        tell(violation);
    }
    void buffer(const Verified& buffer) override {
        if (!options_.quiet)
            say("{}: buffer at {:#x}: generation {}, {} items", options_.input.file, buffer.offset,
                static_cast<int>(buffer.generation), buffer.items);
    }
    std::uint64_t violations() const { return violations_; }

  protected:
    virtual void tell(const Violation& violation) = 0;

    const Options& options_;

  private:
    std::uint64_t violations_ = 0;
};

class Lines final : public Findings {
  public:
    using Findings::Findings;

  private:
    void tell(const Violation& violation) override {
        fmt::print("{}: {:#010x}: item {}{}{}: {}: {}\n", options_.input.file, violation.offset,
                   violation.item, violation.where.empty() ? "" : " in ", violation.where,
                   violation.rule.name, printable(violation.what));
    }
};

class Document final : public Findings {
  public:
    explicit Document(const Options& options) : Findings(options), json_(sink_) {
        json_.begin_object();
        json_.text("file", options.input.file);
        json_.key("violations");
        json_.begin_array();
    }

    void buffer(const Verified& buffer) override {
        Findings::buffer(buffer);
        buffers_.push_back(buffer);
    }

    void finish(const std::vector<std::string>& problems) {
        json_.end_array();
        json_.key("buffers");
        json_.begin_array();
        for (const Verified& buffer : buffers_) {
            json_.begin_object();
            json_.number("offset", buffer.offset);
            json_.number("generation", static_cast<std::uint64_t>(buffer.generation));
            json_.number("items", buffer.items);
            json_.end_object();
        }
        json_.end_array();
        json_.key("problems");
        json_.begin_array();
        for (const std::string& problem : problems)
            json_.value(problem);
        json_.end_array();
        json_.end_object();
        json_.line_feed();
    }

  private:
    void tell(const Violation& violation) override {
        json_.begin_object();
        json_.number("offset", violation.offset);
        json_.number("item", violation.item);
        json_.text("where", violation.where);
        json_.text("rule", violation.rule.name);
        json_.text("what", violation.what);
        json_.end_object();
    }

    FileSink sink_{stdout};
    JsonEmitter json_;
    std::vector<Verified> buffers_{};
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
    const auto run = [&](Findings& findings) {
        return verify(input.value().data(), wanted, findings);
    };
    const std::vector<std::string>& problems = input.value().problems();
    for (const std::string& problem : problems)
        say("{}: {}", options.input.file, problem);
    std::optional<Failure> failure;
    std::uint64_t violations = 0;
    if (options.json) {
        Document document(options);
        failure = run(document);
        document.finish(problems);
        violations = document.violations();
    } else {
        Lines lines(options);
        failure = run(lines);
        violations = lines.violations();
    }
    if (failure)
        return report_failure(*failure);
    if (violations == 0 && problems.empty())
        return exit_complete;
    say("{}: {} violations", options.input.file, violations);
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
    verb.flag("--json", options->json,
              "For programs: a JSON document with the lists violations and buffers");
    verb.flag("-q,--quiet", options->quiet, "Do not tell what was checked");
    verb.details(details + rule_list() + "\n");
    verb.action([options] { return verify_file(*options); });
}

}  // namespace tools
