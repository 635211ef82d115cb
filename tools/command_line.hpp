#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
    explicit Option(CLI::Option& option) : option_(&option) {}

    /// The help shows the value the variable has now.
    Option& show_default();
    /// Refuses a number that is not in lowest..highest.
    Option& range(unsigned lowest, unsigned highest);
    Option& one_of(const std::vector<std::string>& values);
    /// K, M or G may follow the number: powers of 1024.
    Option& size();
    /// Refuses a command line that has `other` too.
    Option& excludes(const Option& other);

  private:
    CLI::Option* option_;
};

/// A verb of the command line. What its options write to has to live until its action has run.
class Verb {
  public:
    explicit Verb(CLI::App& app, Action& chosen) : app_(&app), chosen_(&chosen) {}

    /// A word that has to be there. `name` stands for it in the help.
    void argument(const char* name, std::string& value, const char* help);
    /// `value_name` stands for the value in the help. A vector gets a further value each time the
    /// option is given.
    template <typename T>
    Option option(const char* names, const char* value_name, T& value, const char* help);
    Option flag(const char* names, bool& value, const char* help);
    /// What the help says behind the options; the exit statuses are added.
    void details(const std::string& text);
    void action(Action action);

  private:
    CLI::App* app_;
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
    /// Does what the command line asks for, or says what is wrong with it; returns the exit status.
    int run(int argc, char** argv);

  private:
    std::unique_ptr<CLI::App> app_;
    Action chosen_{};
};

}  // namespace tools
