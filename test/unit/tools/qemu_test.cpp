#include "tools/qemu.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "temporary_folder.hpp"

using namespace tools;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// The word behind `option`.
std::string value_of(const std::vector<std::string>& command, const std::string& option) {
    const auto place = std::find(command.begin(), command.end(), option);
    return place == command.end() ? "no " + option : *(place + 1);
}

}  // namespace

TEST_CASE("vCPUs take turns on one thread only if there are more of them than host CPUs") {
    CHECK(value_of(qemu_command({.smp = 4}, 4), "-accel") == "tcg,thread=multi");
    CHECK(value_of(qemu_command({.smp = 5}, 4), "-accel") == "tcg,thread=single");
    CHECK(value_of(qemu_command({.smp = 1, .icount = 0}, 4), "-accel") == "tcg,thread=single");
    CHECK(value_of(qemu_command({.smp = 1, .icount = 3}, 4), "-icount") == "shift=3");
}

TEST_CASE("the machine is as the options say") {
    const auto command = qemu_command({.image = "a b.img",
                                       .smp = 17,
                                       .el = 2,
                                       .cpu = "max",
                                       .memory = "128M",
                                       .boot_arguments = "workload=x",
                                       .extra = {"-s"}},
                                      2);
    CHECK(command.front() == "qemu-system-aarch64");
    CHECK(value_of(command, "-machine") == "virt,gic-version=3,virtualization=on");
    CHECK(value_of(qemu_command({.el = 1}, 2), "-machine") ==
          "virt,gic-version=3,virtualization=off");
    CHECK(value_of(command, "-smp") == "17");
    CHECK(value_of(command, "-cpu") == "max");
    CHECK(value_of(command, "-m") == "128M");
    CHECK(value_of(command, "-kernel") == "a b.img");
    CHECK(value_of(command, "-append") == "workload=x");
    CHECK(command.back() == "-s");
}

TEST_CASE("a shell takes the printed command apart into the same words") {
    const std::vector<std::string> words = {"/bin/qemu", "a b", "", "don't", "$HOME", "x=1,y"};
    CHECK(shell_line(words) == "/bin/qemu 'a b' '' 'don'\\''t' '$HOME' x=1,y");
}

TEST_CASE("a program that is not there is named") {
    const Interruption interruption;
    const auto started = Qemu::start({"/nonexistent/qemu"}, interruption);
    REQUIRE_FALSE(started.ok());
    CHECK(started.failure().status == exit_no_target);
    CHECK(started.failure().text.find("/nonexistent/qemu") != std::string::npos);
}

TEST_CASE("everything a program writes arrives, and then its status") {
    const Interruption interruption;
    auto started = Qemu::start({"/bin/sh", "-c", "head -c 300000 /dev/zero; exit 7"}, interruption);
    REQUIRE(started.ok());
    Qemu& qemu = *started.value();
    std::vector<std::byte> buffer(1 << 16);
    std::size_t size = 0;
    Source::Read read;
    while ((read = qemu.uart().read(buffer, seconds(20))).state == Source::State::data)
        size += read.size;
    CHECK(read.state == Source::State::end);
    CHECK(size == 300000);
    const auto status = qemu.wait(seconds(20));
    REQUIRE(status);
    CHECK(WIFEXITED(*status));
    CHECK(WEXITSTATUS(*status) == 7);
}

TEST_CASE("a program that does not end is killed with the object") {
    const Interruption interruption;
    auto started = Qemu::start({"/bin/sh", "-c", "echo $$; exec sleep 1000"}, interruption);
    REQUIRE(started.ok());
    std::vector<std::byte> buffer(64);
    const auto read = started.value()->uart().read(buffer, seconds(20));
    REQUIRE(read.state == Source::State::data);
    const pid_t pid =
        std::stoi(std::string(reinterpret_cast<const char*>(buffer.data()), read.size));
    CHECK_FALSE(started.value()->wait(milliseconds(20)));
    CHECK(kill(pid, 0) == 0);
    started.value().reset();
    CHECK(kill(pid, 0) != 0);
}
