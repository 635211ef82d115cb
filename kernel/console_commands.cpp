#include "kernel/console_commands.hpp"

#include <algorithm>
#include <cstdint>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/absolute_time.hpp"
#include "kernel/boot_arguments.hpp"
#include "kernel/capture_sender.hpp"
#include "kernel/command_executor.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"

namespace kernel {

using namespace kcdata;
using namespace kcdata::serial;
using console::print;

namespace {

/// Noise that pauses for so long is over.
constexpr std::uint64_t pause_milliseconds = 100;

constexpr char backspace = '\b', delete_character = 0x7f, kill_line = 'U' - '@';

void complain(std::string_view key, std::string_view value, const char* why) {
    print("%.*s=%.*s: %s\n", static_cast<int>(key.size()), key.data(),
          static_cast<int>(value.size()), value.data(), why);
}

void print_lines(std::span<const std::byte> text) {
    std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        print("%.*s", static_cast<int>(end), rest.data());
        rest.remove_prefix(end);
    }
}

void print_text(CommandExecutor& executor, Operation operation) {
    const auto text = executor.write_text(operation);
    if (!text.ok())
        return print("%s\n", kern_return_name(text.error()));
    ObjectKind kind;
    print_lines(executor.object(text.value().name, kind));
}

void ps(CommandExecutor& executor, std::string_view) {
    print_text(executor, Operation::tasks);
}

void stats(CommandExecutor& executor, std::string_view) {
    print_text(executor, Operation::statistics);
}

void trace(CommandExecutor& executor, std::string_view) {
    print_text(executor, Operation::trace);
}

void take_stackshot(CommandExecutor& executor, std::string_view words) {
    BootArguments arguments(words, complain);
    StackshotRequest request;
    request.flags =
        arguments.number("flags", STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_LOADINFO |
                                      STACKSHOT_GET_GLOBAL_MEM_STATS | STACKSHOT_THREAD_WAITINFO |
                                      STACKSHOT_DO_COMPRESS);
    if (arguments.find("pid"))
        request.pid = static_cast<std::int32_t>(arguments.number("pid", 0, 0, INT32_MAX));
    request.delta_timestamp = arguments.number("delta", 0);
    arguments.complain_of_unused();
    const auto taken = executor.take_stackshot(request);
    if (!taken.ok())
        return print("stackshot: %s\n", kern_return_name(taken.error()));
    if (taken.value().size == 0)
        return print("stackshot: retained in the kernel\n");
    ObjectKind kind;
    const kern_return sent = send_capture(executor.object(taken.value().name, kind));
    print("stackshot: %08x, %u bytes, taken at %lu: %s\n", taken.value().name, taken.value().size,
          taken.value().time, sent == KERN_SUCCESS ? "sent" : kern_return_name(sent));
}

void run(CommandExecutor& executor, std::string_view words) {
    const kern_return error = executor.run_workload(words);
    if (error != KERN_SUCCESS)
        print("run: %s\n", kern_return_name(error));
}

void stop(CommandExecutor& executor, std::string_view words) {
    const kern_return error = executor.stop_workload(words);
    print("stop: %s\n", kern_return_name(error));
}

void reboot(CommandExecutor& executor, std::string_view) {
    executor.reboot();
}

void off(CommandExecutor& executor, std::string_view) {
    executor.power_off();
}

void help(CommandExecutor&, std::string_view);

struct Command {
    std::string_view name;
    void (*run)(CommandExecutor&, std::string_view words);
    const char* help;
};
constexpr std::array commands = {
    Command{"help", help, "this list"},
    Command{"ps", ps, "the tasks"},
    Command{"stackshot", take_stackshot,
            "take a stackshot and send it [flags=N] [pid=N] [delta=absolute time]"},
    Command{"stats", stats, "what the kernel counts"},
    Command{"trace", trace, "what the last stackshots did, CPU by CPU"},
    Command{"run", run, "start a workload: NAME [tasks=N] [threads=N] [depth=N] [seed=N]"},
    Command{"stop", stop, "stop a workload: NAME"},
    Command{"reboot", reboot, "reset the machine"},
    Command{"off", off, "turn the machine off"},
};

void help(CommandExecutor&, std::string_view) {
    for (const Command& command : commands)
        print("%-10.*s %s\n", static_cast<int>(command.name.size()), command.name.data(),
              command.help);
}

}  // namespace

void ConsoleCommands::type(std::span<const std::byte> bytes) {
    const std::uint64_t now = machine::absolute_time();
    if (noise_ && now - last_time_ > milliseconds_to_absolute_time(pause_milliseconds)) {
        noise_ = false;
        length_ = 0;
    }
    last_time_ = now;
    for (const std::byte byte : bytes)
        type(static_cast<char>(byte));
}

void ConsoleCommands::type(char character) {
    const char last = last_;
    last_ = character;
    if (character == '\r' || character == '\n') {
        // CR LF is one end of a line.
        if (character == '\n' && last == '\r')
            return;
        const std::string_view line(line_.data(), length_);
        const bool noise = noise_;
        length_ = 0;
        noise_ = false;
        if (noise || line.empty())
            return;
        print("\n");
        run(line);
    } else if (noise_) {
        return;
    } else if (character == backspace || character == delete_character) {
        if (length_ != 0) {
            length_--;
            print("\b \b");
        }
    } else if (character == kill_line) {
        for (; length_ != 0; length_--)
            print("\b \b");
    } else if (character < ' ' || character > '~' || length_ == line_.size()) {
        noise_ = true;
    } else {
        line_[length_++] = character;
        print("%c", character);
    }
}

void ConsoleCommands::run(std::string_view line) {
    while (line.starts_with(' '))
        line.remove_prefix(1);
    const std::string_view name = line.substr(0, line.find(' '));
    std::string_view words = line.substr(name.size());
    while (words.starts_with(' '))
        words.remove_prefix(1);
    for (const Command& command : commands)
        if (command.name == name)
            return command.run(executor_, words);
    if (!name.empty())
        print("%.*s: no such command; `help` lists them\n", static_cast<int>(name.size()),
              name.data());
}

}  // namespace kernel
