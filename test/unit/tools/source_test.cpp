#include "tools/source.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>
#include <zlib.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <thread>

#include "temporary_folder.hpp"
#include "tools/interruption.hpp"

using namespace tools;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tools_test::TemporaryFolder;

namespace {

/// Every byte value, as a line must carry it.
std::string all_bytes() {
    std::string text;
    for (int c = 0; c < 256; ++c)
        text += static_cast<char>(c);
    return text;
}

/// Reads until `size` bytes are there or the source has nothing more.
std::string read_some(Source& source, std::size_t size) {
    std::string text;
    std::byte buffer[100];
    while (text.size() < size) {
        const auto read = source.read(buffer, seconds(20));
        if (read.state != Source::State::data)
            break;
        text.append(reinterpret_cast<const char*>(buffer), read.size);
    }
    return text;
}

std::unique_ptr<Source> opened(Expected<std::unique_ptr<Source>> source) {
    if (!source.ok())
        FAIL(source.failure().text);
    return std::move(source.value());
}

/// The master side of a new pseudoterminal. Skips the case where there are none (no devpts).
Descriptor pseudoterminal() {
    Descriptor master(posix_openpt(O_RDWR | O_NOCTTY));
    if (!master.valid() || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
        ::access(ptsname(master.get()), R_OK | W_OK) != 0)
        SKIP("this system gives no pseudoterminals");
    return master;
}

}  // namespace

TEST_CASE("a terminal device carries every byte unchanged") {
    const Descriptor master = pseudoterminal();
    const auto source = opened(open_line(ptsname(master.get()), 921600));
    const std::string sent = all_bytes();
    REQUIRE(write(master.get(), sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
    CHECK(read_some(*source, sent.size()) == sent);
    termios settings{};
    REQUIRE(tcgetattr(master.get(), &settings) == 0);
    CHECK(cfgetospeed(&settings) == B921600);
    std::byte buffer[10];
    CHECK(source->read(buffer, milliseconds(10)).state == Source::State::timeout);
}

TEST_CASE("a speed that does not exist is wrong usage") {
    const Descriptor master = pseudoterminal();
    const auto source = open_line(ptsname(master.get()), 12345);
    REQUIRE_FALSE(source.ok());
    CHECK(source.failure().status == exit_usage);
}

TEST_CASE("a Unix socket is a line, by its path or with unix: in front") {
    const TemporaryFolder folder;
    const std::string path = folder / "socket";
    const Descriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(listener.get(), 2) == 0);
    for (const std::string& place : {path, "unix:" + path}) {
        const auto source = opened(open_line(place, 115200));
        const Descriptor peer(accept(listener.get(), nullptr, nullptr));
        const std::string sent = all_bytes();
        REQUIRE(write(peer.get(), sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
        CHECK(read_some(*source, sent.size()) == sent);
        shutdown(peer.get(), SHUT_RDWR);
        std::byte buffer[10];
        CHECK(source->read(buffer, seconds(20)).state == Source::State::end);
    }
}

TEST_CASE("a TCP port is a line; a port nobody listens at is no target") {
    const Descriptor listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const std::string place = fmt::format("tcp:127.0.0.1:{}", ntohs(address.sin_port));

    const auto refused = open_line(place, 0);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.failure().status == exit_no_target);

    REQUIRE(listen(listener.get(), 1) == 0);
    const auto source = opened(open_line(place, 0));
    const Descriptor peer(accept(listener.get(), nullptr, nullptr));
    const std::string sent = all_bytes();
    REQUIRE(write(peer.get(), sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
    CHECK(read_some(*source, sent.size()) == sent);
}

TEST_CASE("a pipe with a name is a line") {
    const TemporaryFolder folder;
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    const auto source = opened(open_line(folder / "pipe", 115200));
    std::byte buffer[10];
    CHECK(source->read(buffer, milliseconds(10)).state == Source::State::timeout);
    tools_test::write_text(folder / "pipe", "hello");
    CHECK(read_some(*source, 5) == "hello");
    CHECK(source->read(buffer, seconds(20)).state == Source::State::end);
}

TEST_CASE("what is no line is refused with the right status") {
    const TemporaryFolder folder;
    tools_test::write_text(folder / "file", "text");
    const struct {
        std::string place;
        ExitStatus status;
    } cases[] = {
        {folder / "nothing", exit_no_target},
        {folder / "file", exit_usage},
        {"tcp:nowhere", exit_usage},
        {"tcp::80", exit_usage},
        {"tcp:localhost:", exit_usage},
        {"unix:" + (folder / "nothing"), exit_no_target},
        {"unix:" + std::string(200, 'x'), exit_usage},
    };
    for (const auto& [place, status] : cases) {
        INFO(place);
        const auto source = open_line(place, 115200);
        REQUIRE_FALSE(source.ok());
        CHECK(source.failure().status == status);
    }
}

TEST_CASE("a log is read whether it is compressed or not") {
    const TemporaryFolder folder;
    const std::string text = all_bytes() + all_bytes();
    tools_test::write_text(folder / "plain", text);
    gzFile file = gzopen((folder / "packed.gz").c_str(), "wb");
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
            static_cast<int>(text.size()));
    REQUIRE(gzclose(file) == Z_OK);
    for (const char* name : {"plain", "packed.gz"}) {
        const auto source = opened(open_log(folder / name));
        CHECK(read_some(*source, SIZE_MAX) == text);
    }
}

TEST_CASE("a compressed log that was cut ends in a failure, not as if it were whole") {
    const TemporaryFolder folder;
    std::string text;
    for (unsigned i = 0; i < 100000; ++i)
        text += static_cast<char>(i * i % 251);
    gzFile file = gzopen((folder / "a.gz").c_str(), "wb");
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0);
    REQUIRE(gzclose(file) == Z_OK);
    auto packed = tools_test::read_bytes(folder / "a.gz");
    packed.resize(packed.size() / 2);
    tools_test::write_bytes(folder / "a.gz", packed);
    const auto source = opened(open_log(folder / "a.gz"));
    std::byte buffer[4096];
    Source::Read read;
    do {
        read = source->read(buffer, {});
    } while (read.state == Source::State::data);
    CHECK(read.state == Source::State::failed);
    CHECK(read.failure.find("a.gz") != std::string::npos);
}

TEST_CASE("a signal ends a wait, also one that came just before it") {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const Descriptor writer(ends[1]);
    const auto source = source_of(Descriptor(ends[0]), "a pipe");
    const Interruption interruption;
    std::byte buffer[10];
    CHECK(source->read(buffer, milliseconds(1)).state == Source::State::timeout);
    raise(SIGINT);
    CHECK(source->read(buffer, seconds(20)).state == Source::State::interrupted);
    CHECK(Interruption::requested());
}
