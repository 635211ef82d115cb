#include "tools/capture_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tools/descriptor.hpp"

namespace tools {

namespace {

std::optional<Failure> write_all(int fd, std::span<const std::byte> bytes,
                                 const std::string& name) {
    while (!bytes.empty()) {
        const ssize_t size = ::write(fd, bytes.data(), bytes.size());
        if (size < 0 && errno != EINTR)
            return system_failure("writing " + name, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    return std::nullopt;
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const std::string& path) {
    Descriptor fd(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const std::string name = path == "-" ? "standard input" : path;
    if (!fd.valid())
        return system_failure("opening " + name, errno);
    std::vector<std::byte> bytes;
    constexpr std::size_t step = 1 << 16;
    for (;;) {
        const std::size_t old = bytes.size();
        bytes.resize(old + step);
        const ssize_t size = ::read(fd.get(), bytes.data() + old, step);
        bytes.resize(old + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        if (size == 0)
            return bytes;
        if (size < 0 && errno != EINTR)
            return system_failure("reading " + name, errno);
    }
}

std::optional<Failure> write_file(const std::string& path, std::span<const std::byte> bytes) {
    if (path == "-")
        return write_all(STDOUT_FILENO, bytes, "standard output");
    // A device or pipe cannot be replaced by a new file.
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!fd.valid())
            return system_failure("opening " + path, errno);
        return write_all(fd.get(), bytes, path);
    }
    std::string temporary = path + ".XXXXXX";
    const Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.valid())
        return system_failure("creating " + path, errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    auto failure = write_all(fd.get(), bytes, path);
    if (!failure && (::fchmod(fd.get(), 0666 & ~mask) != 0 || ::fsync(fd.get()) != 0 ||
                     ::rename(temporary.c_str(), path.c_str()) != 0))
        failure = system_failure("writing " + path, errno);
    if (failure)
        ::unlink(temporary.c_str());
    return failure;
}

}  // namespace tools
