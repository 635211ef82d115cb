#include "tools/snapshot.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "../reference_samples.hpp"
#include "strict_json.hpp"
#include "tools/images.hpp"
#include "tools/input.hpp"

using namespace tools;
using nlohmann::json;

namespace {

/// What libkdd makes of a sample: its stackshot, or null.
json expected_stackshot(std::filesystem::path path) {
    std::ifstream file(path.replace_extension(".expected.json"));
    const json all = json::parse(file);
    return all.value("kcdata_stackshot", all.value("kcdata_delta_stackshot", json()));
}

std::vector<std::uint64_t> addresses(const json& frames) {
    std::vector<std::uint64_t> result;
    for (const json& frame : frames)
        result.push_back(frame.at("lr"));
    return result;
}

void check_thread(const ThreadSnapshot& thread, const json& expected) {
    INFO("thread " << thread.id);
    CHECK(thread.user_stack.has_value() == expected.contains("user_stack_frames"));
    if (thread.user_stack)
        CHECK(*thread.user_stack == addresses(expected["user_stack_frames"]));
    CHECK(thread.kernel_stack.has_value() == expected.contains("kernel_stack_frames"));
    if (thread.kernel_stack)
        CHECK(*thread.kernel_stack == addresses(expected["kernel_stack_frames"]));
    CHECK(thread.dispatch_queue_label == expected.value("dispatch_queue_label", ""));
    const json& record = expected.at("thread_snapshot");
    CHECK(thread.user_time == record.at("ths_user_time").get<std::uint64_t>());
    CHECK(thread.system_time == record.at("ths_sys_time").get<std::uint64_t>());
    if (expected.contains("cpu_times"))
        CHECK(thread.user_usec == expected["cpu_times"].at("user_usec").get<std::uint64_t>());
}

void check_images(const std::vector<LoadInfo>& images, const json& expected) {
    REQUIRE(images.size() == expected.size());
    for (std::size_t i = 0; i < images.size(); ++i) {
        CHECK(images[i].address == expected[i].at("imageLoadAddress").get<std::uint64_t>());
        CHECK(images[i].uuid == expected[i].at("imageUUID").get<std::array<std::uint8_t, 16>>());
    }
}

Snapshot with_images() {
    Snapshot snapshot;
    snapshot.kernel = LoadInfo{0xffff000000080000, {1}};
    snapshot.shared_cache = LoadInfo{0x180000000, {2}};
    TaskSnapshot& task = snapshot.tasks.emplace_back();
    task.pid = 7;
    task.images = {{0x100000000, {3}}, {0x1000, {4}}};
    return snapshot;
}

/// The first byte of the UUID of the image an address lies in; nothing: none.
std::optional<int> user_image(const Snapshot& snapshot, std::uint64_t address) {
    const Images images(snapshot);
    const auto found = images.find_user(snapshot.tasks.front(), address);
    return found ? std::optional<int>(images.all()[*found].info.uuid[0]) : std::nullopt;
}

}  // namespace

TEST_CASE("stacks, times and images of real captures are those that libkdd reads") {
    std::size_t user_stacks = 0, images = 0;
    for_each_reference_sample([&](const std::filesystem::path& path, auto bytes) {
        const json expected = expected_stackshot(path);
        if (!expected.contains("task_snapshots"))
            return;
        const auto input = Input::of({bytes.begin(), bytes.end()}, path.string());
        REQUIRE(input.ok());
        const Snapshot snapshot = read_snapshot(input.value().buffers().front().bytes);
        CHECK(snapshot.tasks.size() == expected["task_snapshots"].size());
        for (const TaskSnapshot& task : snapshot.tasks) {
            const json& known = expected["task_snapshots"].at(std::to_string(task.unique_pid));
            check_images(task.images, known.value("dyld_load_info", json::array()));
            images += task.images.size();
            for (const ThreadSnapshot& thread : task.threads) {
                check_thread(thread, known.at("thread_snapshots").at(std::to_string(thread.id)));
                user_stacks += thread.user_stack.has_value();
            }
        }
    });
    CHECK(user_stacks > 40);
    CHECK(images > 50);
}

TEST_CASE("a shared cache's images are told where it is mapped: at their address plus its slide") {
    for_each_reference_sample([&](const std::filesystem::path& path, auto bytes) {
        const json expected = expected_stackshot(path);
        if (!expected.contains("system_shared_cache_layout"))
            return;
        const Snapshot snapshot = read_snapshot(
            Input::of({bytes.begin(), bytes.end()}, path.string()).value().buffers().front().bytes);
        const json& layout = expected["system_shared_cache_layout"];
        const std::uint64_t slide =
            expected["shared_cache_dyld_load_info"].at("imageLoadAddress").get<std::uint64_t>();
        REQUIRE(snapshot.shared_cache_images.size() == layout.size());
        for (std::size_t i = 0; i < layout.size(); ++i)
            CHECK(snapshot.shared_cache_images[i].address ==
                  layout[i].at("imageLoadAddress").get<std::uint64_t>() + slide);
    });
}

TEST_CASE("an address lies in the image that begins nearest below") {
    const Snapshot snapshot = with_images();
    CHECK(user_image(snapshot, 0xfff) == std::nullopt);
    CHECK(user_image(snapshot, 0x1000) == 4);
    CHECK(user_image(snapshot, 0x100000000) == 3);
    CHECK(user_image(snapshot, 0x17fffffff) == std::nullopt);  // further than any image is large
    CHECK(user_image(snapshot, 0x180000000) == 2);
    CHECK(user_image(snapshot, 0x1f0000000) == 2);
    const Images images(snapshot);
    CHECK(images.find_kernel(0xffff00000007ffff) == std::nullopt);
    CHECK(images.all()[*images.find_kernel(0xffff000000080000)].kind == Images::Kind::kernel);
}

TEST_CASE("a task with a shared cache of its own, or none, is not in the system's") {
    Snapshot snapshot = with_images();
    TaskSnapshot& task = snapshot.tasks.front();
    task.ss_flags = kcdata::kTaskSharedRegionNone;
    CHECK(user_image(snapshot, 0x190000000) == std::nullopt);
    task.ss_flags = kcdata::kTaskSharedRegionOther;
    task.shared_cache = LoadInfo{0x188000000, {9}};
    CHECK(user_image(snapshot, 0x190000000) == 9);
}
