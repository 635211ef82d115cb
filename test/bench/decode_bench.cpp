// How fast captures are read and decoded, and how much memory that takes.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kcdata/reader.hpp"
#include "test/bench/figure.hpp"
#include "test/bench/large_capture.hpp"
#include "tools/decode.hpp"

namespace {

constexpr std::size_t capture_size = 64 << 20;

std::size_t item_count(std::span<const std::byte> buffer) {
    kcdata::Reader reader(buffer);
    kcdata::Item item;
    std::size_t count = 0;
    while (reader.next(item))
        count += item.payload.empty() ? 1u : 2u;
    if (reader.error() != kcdata::ReadError::none)
        throw std::runtime_error("the capture is not sound");
    return count;
}

void decode_whole(std::span<const std::byte> buffer) {
    tools::CountingSink sink;
    tools::JsonEmitter json(sink, 0);
    if (tools::decode(buffer, json).problem_count != 0 || sink.size() < buffer.size())
        throw std::runtime_error("the capture was not decoded");
}

/// KiB of anonymous memory the process has; 0 if it is gone.
std::size_t anonymous_kib(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("RssAnon:"))
            return std::stoul(line.substr(std::strlen("RssAnon:")));
    return 0;
}

/// Peak of the memory that `stackshot decode` of the file has beyond the mapping, in MiB: the
/// larger of two measures. Its peak resident size less the file, which is all resident at the end,
/// counts the program and its libraries too; anonymous memory, looked at every millisecond, holds
/// if pages of the file were taken away meanwhile.
double peak_extra_mib(const std::string& path) {
    const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
    const pid_t child = ::fork();
    if (child == 0) {
        const int nowhere = ::open("/dev/null", O_WRONLY);
        ::dup2(nowhere, STDOUT_FILENO);
        ::execl(STACKSHOT_PROGRAM, "stackshot", "decode", "--compact", path.c_str(), nullptr);
        ::_exit(127);
    }
    std::size_t anonymous = 0;
    int status = 0;
    rusage usage{};
    while (::wait4(child, &status, WNOHANG, &usage) == 0) {
        anonymous = std::max(anonymous, anonymous_kib(child));
        ::usleep(1000);
    }
    if (status != 0)
        throw std::runtime_error("stackshot decode failed");
    const auto peak = static_cast<double>(usage.ru_maxrss);
    return std::max(static_cast<double>(anonymous), peak - static_cast<double>(size) / 1024) / 1024;
}

std::string write_temporary(std::span<const std::byte> bytes) {
    const char* const folder = std::getenv("TMPDIR");
    std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/bench-XXXXXX";
    const int fd = ::mkstemp(path.data());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    ::close(fd);
    if (!file)
        throw std::runtime_error("cannot write " + path);
    return path;
}

/// Returns the path of a file with the capture, for a process of its own.
std::string measure_speed() {
    const std::vector<std::byte> capture = bench::large_capture(capture_size);
    const std::span<const std::byte> buffer(capture);
    const auto speed = [&buffer](const char* name, auto work) {
        bench::figure(name, bench::megabytes_per_second(buffer.size(), work), "MB/s");
    };
    {
        std::vector<std::byte> copy(capture.size());
        speed("decode.memcpy_mb_s", [&] {
            std::memcpy(copy.data(), capture.data(), capture.size());
            asm volatile("" : : "r"(copy.data()) : "memory");
        });
    }
    std::size_t items = 0;
    speed("decode.iterate_mb_s", [&] { items = item_count(buffer); });
    if (items < 100'000)
        throw std::runtime_error("the capture has few items");
    speed("decode.json_mb_s", [&] { decode_whole(buffer); });
    return write_temporary(buffer);
}

}  // namespace

int main() {
    const std::string path = measure_speed();
    // A new process starts with the resident size of the one it comes from as its peak: by now
    // that is small.
    const double extra = peak_extra_mib(path);
    ::unlink(path.c_str());
    bench::figure("decode.peak_extra_mib", extra, "MiB");
}
