#include "tools/spool.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace tools {

namespace {

/// A mapped page that its file no longer has cannot be read.
void catch_shrinking_files() {
    static const bool once = [] {
        struct sigaction action {};
        action.sa_handler = [](int) {
            constexpr std::string_view text =
                "stackshot: a file became shorter while it was read\n";
            static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
            ::_exit(exit_failure);
        };
        return ::sigaction(SIGBUS, &action, nullptr) == 0;
    }();
    static_cast<void>(once);
}

Expected<Descriptor> open_unnamed() {
    const char* const chosen = std::getenv("TMPDIR");
    std::string path = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
    path += "/stackshot-XXXXXX";
    Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
    if (!file.valid())
        return system_failure("creating a temporary file " + path, errno);
    ::unlink(path.c_str());
    return file;
}

std::optional<Failure> write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t size = ::write(fd, bytes.data(), bytes.size());
        if (size < 0 && errno != EINTR)
            return system_failure("writing a temporary file", errno);
        bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    return std::nullopt;
}

}  // namespace

Expected<HeldBytes> HeldBytes::map(int fd, std::size_t size, const std::string& name) {
    catch_shrinking_files();
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED)
        return system_failure("reading " + name, errno);
    HeldBytes held;
    held.mapping_ = {static_cast<const std::byte*>(address), size};
    return held;
}

HeldBytes::HeldBytes(HeldBytes&& other) noexcept
    : memory_(std::move(other.memory_)),
      mapping_(std::exchange(other.mapping_, {})),
      skipped_(std::exchange(other.skipped_, 0)) {}

HeldBytes& HeldBytes::operator=(HeldBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(mapping_, other.mapping_);
    std::swap(skipped_, other.skipped_);
    return *this;
}

HeldBytes::~HeldBytes() {
    if (!mapping_.empty())
        ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size());
}

std::optional<Failure> Spool::append(std::span<const std::byte> bytes) {
    if (bytes.size() > limit_ - size_)
        return Failure{too_much_};
    size_ += bytes.size();
    if (!file_.valid() && size_ <= memory_size) {
        memory_.insert(memory_.end(), bytes.begin(), bytes.end());
        return std::nullopt;
    }
    if (!file_.valid()) {
        auto file = open_unnamed();
        if (!file.ok())
            return file.failure();
        file_ = std::move(file.value());
        if (auto failure = write_all(file_.get(), memory_))
            return failure;
        memory_ = {};
    }
    return write_all(file_.get(), bytes);
}

Expected<HeldBytes> Spool::take() {
    if (!file_.valid())
        return HeldBytes(std::move(memory_));
    return HeldBytes::map(file_.get(), static_cast<std::size_t>(size_), "a temporary file");
}

}  // namespace tools
