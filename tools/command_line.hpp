#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tools/verb_description.hpp"

// CLI11 is large: only command_line.cpp sees it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tools {

/// What the chosen verb does once the whole command line is understood; returns the exit status.
using Action = std::function<int()>;

/// An option of a verb: what there is to say of it besides its names and where its value goes.
class Option {
  public:
    /// It is the last that `verb` describes.
    Option(CLI::Option& option, VerbDescription& verb)
        : option_(&option), verb_(&verb), place_(verb.options.size() - 1) {}

    /// The help shows the value the variable has now.
    Option& show_default();
    /// Refuses a number that is not in lowest..highest.
    Option& range(unsigned lowest, unsigned highest);
    Option& one_of(const std::vector<std::string>& values);
    /// K, M or G may follow the number: powers of 1024.
    Option& size();
    /// The value is a span of time: ms, s or min may follow the number; ms if nothing does. The
    /// variable gets it in milliseconds.
    Option& milliseconds();
    /// Refuses a command line that has `other` too.
    Option& excludes(const Option& other);

  private:
    OptionDescription& description() { return verb_->options[place_]; }

    CLI::Option* option_;
    VerbDescription* verb_;
    std::size_t place_;
};

/// A verb of the command line. What its options write to has to live until its action has run.
class Verb {
  public:
    Verb(CLI::App& app, VerbDescription& description, Action& chosen)
        : app_(&app), description_(&description), chosen_(&chosen) {}

    /// A word that has to be there. `name` stands for it in the help. `values`: all there are.
    void argument(const char* name, std::string& value, const char* help,
                  const std::vector<std::string>& values = {});
    /// Any number of words behind the others, none too. `values`: all the first one can be.
    void words(const char* name, std::vector<std::string>& words, const char* help,
               const std::vector<std::string>& values = {});
    /// `value_name` stands for the value in the help. A vector gets a further value each time the
    /// option is given.
    template <typename T>
    Option option(const char* names, const char* value_name, T& value, const char* help);
    Option flag(const char* names, bool& value, const char* help);
    /// What the help says behind the options; the exit statuses are added.
    void details(const std::string& text);
    void action(Action action);

  private:
    /// Adds the description of an option to that of the verb.
    Option described(CLI::Option& option, const char* value_name, const char* help);

    CLI::App* app_;
    VerbDescription* description_;
    Action* chosen_;
};

/// The program's command line: options of its own (--help, --version), and one verb.
class CommandLine {
  public:
    CommandLine(const char* description, const char* version);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    Verb verb(const char* name, const char* summary);
    /// All verbs there are by now.
    ProgramDescription description() const;
    /// Does what the command line asks for, or says what is wrong with it; returns the exit status.
    int run(int argc, char** argv);

  private:
    std::unique_ptr<CLI::App> app_;
    std::string version_;
    std::string summary_;
    /// What Verb and Option write to: it stays where it is.
    std::list<VerbDescription> verbs_{};
    Action chosen_{};
};

}  // namespace tools
