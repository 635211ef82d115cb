#include "tools/qemu.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <thread>

namespace tools {

namespace {

std::string socket_backend(const std::string& path) {
    std::string escaped;
    for (const char c : path)
        escaped += c == ',' ? std::string(",,") : std::string(1, c);
    return fmt::format("unix:{},server=on,wait=off", escaped);
}

}  // namespace

std::vector<std::string> qemu_command(const QemuOptions& options, unsigned host_cpus) {
    const bool one_thread = options.icount || options.smp > host_cpus;
    std::vector<std::string> command{
        options.program,
        "-machine",
        fmt::format("virt,gic-version=3,virtualization={}", options.el == 2 ? "on" : "off"),
        "-accel",
        fmt::format("tcg,thread={}", one_thread ? "single" : "multi"),
        "-cpu",
        options.cpu,
        "-smp",
        fmt::format("{}", options.smp),
        "-m",
        options.memory,
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-serial",
        options.socket.empty() ? "stdio" : socket_backend(options.socket),
        "-kernel",
        options.image,
    };
    if (options.icount) {
        command.push_back("-icount");
        command.push_back(fmt::format("shift={}", *options.icount));
    }
    if (!options.boot_arguments.empty()) {
        command.push_back("-append");
        command.push_back(options.boot_arguments);
    }
    command.insert(command.end(), options.extra.begin(), options.extra.end());
    return command;
}

std::string shell_line(const std::vector<std::string>& command) {
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=,./:+@%";
    std::string line;
    for (const std::string& word : command) {
        if (!line.empty())
            line += ' ';
        if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (const char c : word) {
            if (c == '\'')
                line += "'\\''";
            else
                line += c;
        }
        line += '\'';
    }
    return line;
}

Expected<std::unique_ptr<Qemu>> Qemu::start(const std::vector<std::string>& command,
                                            const Interruption& interruption) {
    // Pipes: the UART writes byte by byte, of which a socket holds but a few hundred.
    int from_uart[2], to_uart[2], ends[2];
    if (pipe2(from_uart, O_CLOEXEC) != 0)
        return system_failure("making a pipe to QEMU", errno);
    Descriptor output(from_uart[0]);
    Descriptor uart_output(from_uart[1]);
    if (pipe2(to_uart, O_CLOEXEC) != 0)
        return system_failure("making a pipe to QEMU", errno);
    Descriptor uart_input(to_uart[0]);
    Descriptor input(to_uart[1]);
    // Closed by a successful exec, told the errno value by a failed one.
    if (pipe2(ends, O_CLOEXEC) != 0)
        return system_failure("making a pipe to QEMU", errno);
    const Descriptor outcome(ends[0]);
    Descriptor report(ends[1]);

    std::vector<char*> arguments;
    for (const std::string& word : command)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);

    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return system_failure("starting " + command[0], errno);
    if (pid == 0) {
        // From here to exec only what is safe after fork.
        int error = 0;
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        sigprocmask(SIG_SETMASK, &interruption.previous_mask(), nullptr);
        if (dup2(uart_input.get(), STDIN_FILENO) >= 0 &&
            dup2(uart_output.get(), STDOUT_FILENO) >= 0)
            execvp(arguments[0], arguments.data());
        error = errno;
        [[maybe_unused]] const ssize_t told = write(report.get(), &error, sizeof(error));
        _exit(127);
    }
    report.reset();
    uart_output.reset();
    uart_input.reset();
    int error = 0;
    ssize_t size = 0;
    do {
        size = read(outcome.get(), &error, sizeof(error));
    } while (size < 0 && errno == EINTR);
    if (size == sizeof(error)) {
        waitpid(pid, nullptr, 0);
        if (error == ENOENT)
            return Failure{fmt::format("{} is not there: install QEMU 9 or later for Arm (Debian: "
                                       "qemu-system-arm), or name it with --qemu",
                                       command[0]),
                           exit_no_target};
        return system_failure("starting " + command[0], error, exit_no_target);
    }
    return std::unique_ptr<Qemu>(
        new Qemu(pid, connection_of(std::move(output), std::move(input), "QEMU's UART")));
}

Qemu::~Qemu() {
    kill();
}

std::optional<int> Qemu::wait(std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!status_) {
        int status = 0;
        const pid_t ended = waitpid(pid_, &status, WNOHANG);
        if (ended == pid_) {
            status_ = status;
        } else if (std::chrono::steady_clock::now() >= deadline) {
            break;
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    return status_;
}

void Qemu::kill() {
    if (status_)
        return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
}

}  // namespace tools
