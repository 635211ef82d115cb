#include "tools/source.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "tools/interruption.hpp"

namespace tools {

namespace {

constexpr std::chrono::seconds connect_timeout{10};
/// How long the other end of a line may take no bytes.
constexpr std::chrono::seconds write_timeout{10};

std::optional<Failure> make_raw(int fd, const std::string& name, unsigned baud);

/// write(), for which an other end that is gone is an error and no signal.
ssize_t write_without_signal(int fd, std::span<const std::byte> bytes) {
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t size = ::write(fd, bytes.data(), bytes.size());
    const int error = errno;
    constexpr timespec no_time{};
    if (size < 0 && error == EPIPE)
        sigtimedwait(&pipe_signal, nullptr, &no_time);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return size;
}

class DescriptorConnection final : public Connection {
  public:
    DescriptorConnection(Descriptor input, Descriptor output, std::string name)
        : descriptor_(std::move(input)), output_(std::move(output)), name_(std::move(name)) {}

    Read read(std::span<std::byte> buffer, std::chrono::milliseconds timeout) override {
        switch (wait_for(descriptor_.get(), POLLIN, timeout)) {
            case Wait::timeout:
                return {State::timeout};
            case Wait::interrupted:
                return {State::interrupted};
            case Wait::failed:
                return failed();
            case Wait::ready:
                break;
        }
        const ssize_t size = ::read(descriptor_.get(), buffer.data(), buffer.size());
        if (size > 0)
            return {State::data, static_cast<std::size_t>(size)};
        // A socket whose other end is gone, and a terminal that hung up, have ended.
        if (size == 0 || errno == ECONNRESET || errno == EIO)
            return {State::end};
        if (errno == EAGAIN || errno == EINTR)
            return {State::timeout};
        return failed();
    }
    const std::string& name() const override { return name_; }
    int descriptor() const override { return descriptor_.get(); }

    std::optional<Failure> write(std::span<const std::byte> bytes) override {
        const int fd = output_.valid() ? output_.get() : descriptor_.get();
        while (!bytes.empty()) {
            switch (wait_for(fd, POLLOUT, write_timeout)) {
                case Wait::timeout:
                    return Failure{fmt::format("{} takes nothing", name_), exit_no_target};
                case Wait::interrupted:
                    return Failure{"interrupted", exit_interrupted};
                case Wait::failed:
                    return system_failure("writing to " + name_, errno);
                case Wait::ready:
                    break;
            }
            const ssize_t size = write_without_signal(fd, bytes);
            if (size >= 0)
                bytes = bytes.subspan(static_cast<std::size_t>(size));
            else if (errno != EAGAIN && errno != EINTR)
                return system_failure("writing to " + name_, errno, exit_no_target);
        }
        return std::nullopt;
    }
    bool set_baud(unsigned baud) override {
        const int fd = descriptor_.get();
        if (isatty(fd) == 0)
            return true;
        // What has been written goes out at the old rate.
        return tcdrain(fd) == 0 && !make_raw(fd, name_, baud);
    }

  private:
    Read failed() const {
        return {State::failed, 0, system_failure("reading " + name_, errno).text};
    }

    Descriptor descriptor_;
    Descriptor output_;
    std::string name_;
};

class GzipSource final : public Source {
  public:
    GzipSource(gzFile file, std::string name) : file_(file), name_(std::move(name)) {}
    GzipSource(const GzipSource&) = delete;
    GzipSource& operator=(const GzipSource&) = delete;
    ~GzipSource() override { gzclose(file_); }

    Read read(std::span<std::byte> buffer, std::chrono::milliseconds) override {
        const int size = gzread(file_, buffer.data(), static_cast<unsigned>(buffer.size()));
        if (size > 0)
            return {State::data, static_cast<std::size_t>(size)};
        int error = Z_OK;
        const char* text = gzerror(file_, &error);
        if (size == 0 && error == Z_OK)
            return {State::end};
        if (error == Z_ERRNO)
            return {State::failed, 0, system_failure("reading " + name_, errno).text};
        return {State::failed, 0, fmt::format("reading {}: {}", name_, text)};
    }
    const std::string& name() const override { return name_; }

  private:
    gzFile file_;
    std::string name_;
};

std::optional<speed_t> speed_of(unsigned baud) {
    switch (baud) {
        case 9600:
            return B9600;
        case 19200:
            return B19200;
        case 38400:
            return B38400;
        case 57600:
            return B57600;
        case 115200:
            return B115200;
        case 230400:
            return B230400;
        case 460800:
            return B460800;
        case 921600:
            return B921600;
        case 1000000:
            return B1000000;
        case 1500000:
            return B1500000;
        case 2000000:
            return B2000000;
        case 3000000:
            return B3000000;
        case 4000000:
            return B4000000;
        default:
            return std::nullopt;
    }
}

std::optional<Failure> make_raw(int fd, const std::string& name, unsigned baud) {
    const auto speed = speed_of(baud);
    if (!speed)
        return Failure{fmt::format("{} baud is not a speed this system knows", baud), exit_usage};
    termios settings{};
    if (tcgetattr(fd, &settings) != 0)
        return system_failure("reading the settings of " + name, errno);
    cfmakeraw(&settings);
    settings.c_cflag &= ~static_cast<tcflag_t>(CSTOPB | CRTSCTS);
    settings.c_cflag |= CLOCAL | CREAD;
    settings.c_iflag &= ~static_cast<tcflag_t>(IXOFF);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    if (cfsetispeed(&settings, *speed) != 0 || cfsetospeed(&settings, *speed) != 0 ||
        tcsetattr(fd, TCSANOW, &settings) != 0)
        return system_failure(fmt::format("setting {} to raw {} baud", name, baud), errno);
    return std::nullopt;
}

/// A place that is open, and what it is.
struct Opened {
    Descriptor descriptor;
    std::string name;
};

Expected<Opened> open_terminal_or_pipe(const std::string& path, unsigned baud, int access) {
    Descriptor fd(::open(path.c_str(), access | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid())
        return system_failure("opening " + path, errno, exit_no_target);
    if (isatty(fd.get()) != 0) {
        if (auto failure = make_raw(fd.get(), path, baud))
            return *failure;
    }
    if (access == O_RDWR && isatty(fd.get()) == 0)
        return Failure{fmt::format("{} is neither a terminal device nor a socket: there is no way "
                                   "back to the unikernel",
                                   path),
                       exit_usage};
    return Opened{std::move(fd), path};
}

Expected<Opened> open_unix_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        return Failure{fmt::format("{}: longer than the path of a Unix socket may be", path),
                       exit_usage};
    path.copy(address.sun_path, path.size());
    Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid() ||
        ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
        return system_failure("connecting to " + path, errno, exit_no_target);
    return Opened{std::move(fd), path};
}

/// 0, or the errno value of the connection that could not be made.
int connect_to(int fd, const addrinfo& address) {
    if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    switch (wait_for(fd, POLLOUT, connect_timeout)) {
        case Wait::timeout:
            return ETIMEDOUT;
        case Wait::interrupted:
            return EINTR;
        case Wait::failed:
            return errno;
        case Wait::ready:
            break;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Expected<Opened> open_tcp(const std::string& place) {
    const std::size_t colon = place.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == place.size())
        return Failure{fmt::format("tcp:{}: not HOST:PORT", place), exit_usage};
    std::string host = place.substr(0, colon);
    const std::string port = place.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
        return Failure{fmt::format("looking up tcp:{}: {}", place, gai_strerror(error)),
                       exit_no_target};
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
    int error = ECONNREFUSED;
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        Descriptor fd(::socket(address->ai_family,
                               address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                               address->ai_protocol));
        error = fd.valid() ? connect_to(fd.get(), *address) : errno;
        if (error == 0)
            return Opened{std::move(fd), "tcp:" + place};
        if (error == EINTR)
            return Failure{"interrupted", exit_interrupted};
    }
    return system_failure("connecting to tcp:" + place, error, exit_no_target);
}

bool remove_prefix(std::string& text, std::string_view prefix) {
    if (!text.starts_with(prefix))
        return false;
    text.erase(0, prefix.size());
    return true;
}

/// `access`: O_RDONLY or O_RDWR.
Expected<Opened> open_place(const std::string& place, unsigned baud, int access) {
    std::string rest = place;
    if (remove_prefix(rest, "unix:"))
        return open_unix_socket(rest);
    if (remove_prefix(rest, "tcp:"))
        return open_tcp(rest);
    struct stat status {};
    if (::stat(place.c_str(), &status) != 0)
        return system_failure("opening " + place, errno, exit_no_target);
    if (S_ISSOCK(status.st_mode))
        return open_unix_socket(place);
    if (S_ISREG(status.st_mode))
        return Failure{
            fmt::format("{} is a file: `stackshot extract` takes captures out of a log", place),
            exit_usage};
    return open_terminal_or_pipe(place, baud, access);
}

}  // namespace

std::unique_ptr<Source> source_of(Descriptor descriptor, std::string name) {
    return connection_of(std::move(descriptor), Descriptor(), std::move(name));
}

std::unique_ptr<Connection> connection_of(Descriptor input, Descriptor output, std::string name) {
    return std::make_unique<DescriptorConnection>(std::move(input), std::move(output),
                                                  std::move(name));
}

Expected<std::unique_ptr<Source>> open_line(const std::string& place, unsigned baud) {
    if (place == "-") {
        Descriptor fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
        if (!fd.valid())
            return system_failure("opening standard input", errno, exit_no_target);
        return source_of(std::move(fd), "standard input");
    }
    auto opened = open_place(place, baud, O_RDONLY);
    if (!opened.ok())
        return opened.failure();
    return source_of(std::move(opened.value().descriptor), std::move(opened.value().name));
}

Expected<std::unique_ptr<Connection>> open_connection(const std::string& place, unsigned baud) {
    if (place == "-")
        return Failure{"standard input has no way back to the unikernel", exit_usage};
    auto opened = open_place(place, baud, O_RDWR);
    if (!opened.ok())
        return opened.failure();
    return connection_of(std::move(opened.value().descriptor), Descriptor(),
                         std::move(opened.value().name));
}

Expected<std::unique_ptr<Source>> open_log(const std::string& path) {
    const bool standard_input = path == "-";
    const std::string name = standard_input ? "standard input" : path;
    Descriptor fd(standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid())
        return system_failure("opening " + name, errno);
    // A folder opens, but does not read.
    struct stat status {};
    if (fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode))
        return system_failure("opening " + name, EISDIR);
    gzFile file = gzdopen(fd.get(), "rb");
    if (file == nullptr)
        return system_failure("opening " + name, ENOMEM);
    fd.release();  // The gzFile closes it.
    return std::unique_ptr<Source>(std::make_unique<GzipSource>(file, name));
}

}  // namespace tools
