#include "tools/capture_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kcdata/format.hpp"
#include "tools/descriptor.hpp"

namespace tools {

namespace {

using Bytes = std::vector<std::byte>;

bool begins_with_magic(std::span<const std::byte> bytes) {
    std::uint32_t magic = 0;
    if (bytes.size() < sizeof(kcdata::ItemHeader))
        return false;
    std::memcpy(&magic, bytes.data(), sizeof(magic));
    switch (magic) {
        case kcdata::KCDATA_BUFFER_BEGIN_STACKSHOT:
        case kcdata::KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT:
        case kcdata::KCDATA_BUFFER_BEGIN_CRASHINFO:
        case kcdata::KCDATA_BUFFER_BEGIN_OS_REASON:
        case kcdata::KCDATA_BUFFER_BEGIN_XNUPOST_CONFIG:
        case kcdata::KCDATA_BUFFER_BEGIN_BTINFO:
        case kcdata::KCDATA_BUFFER_BEGIN_COMPRESSED:
            return true;
        default:
            return false;
    }
}

/// The contents of a gzip file, or nothing if `bytes` are none or a damaged one.
std::optional<Bytes> gunzip(const Bytes& bytes) {
    if (bytes.size() < 2 || bytes[0] != std::byte{0x1f} || bytes[1] != std::byte{0x8b} ||
        bytes.size() > UINT32_MAX)
        return std::nullopt;
    z_stream stream{};
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream, gzip_only) != Z_OK)
        return std::nullopt;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    Bytes out;
    constexpr std::size_t step = 1 << 16;
    int status = Z_OK;
    while (status == Z_OK) {
        const std::size_t old = out.size();
        out.resize(old + step);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + old);
        stream.avail_out = step;
        status = inflate(&stream, Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END)
        return std::nullopt;
    return out;
}

Bytes from_base64(const Bytes& text) {
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Bytes out;
    std::uint32_t bits = 0;
    int count = 0;
    for (const std::byte byte : text) {
        if (byte == std::byte{'='})
            break;
        const std::size_t digit = alphabet.find(static_cast<char>(byte));
        if (digit == std::string_view::npos)
            continue;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out.push_back(static_cast<std::byte>(bits >> count));
        }
    }
    return out;
}

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
    Bytes bytes;
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

Expected<std::vector<std::byte>> read_capture(const std::string& path) {
    auto read = read_file(path);
    if (!read.ok())
        return read.failure();
    Bytes& bytes = read.value();
    if (begins_with_magic(bytes))
        return std::move(bytes);
    if (auto unpacked = gunzip(bytes); unpacked && begins_with_magic(*unpacked))
        return std::move(*unpacked);
    if (auto decoded = from_base64(bytes); begins_with_magic(decoded))
        return decoded;
    return Failure{fmt::format("{}: no kcdata buffer (neither plain nor gzip nor base64)",
                               path == "-" ? "standard input" : path)};
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
