#include "stackshot/assembly.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "fake_system.hpp"
#include "kcdata/compression.hpp"
#include "stackshot/post_trap_producer.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint32_t service_record = 0x7777;

/// A service outside of the stopped kernel with `count` records.
class Service final : public PostTrapProducer {
  public:
    Service(FakeSystem& system, std::uint64_t id, std::size_t count)
        : system_(system), id_(id), count_(count) {}

    std::size_t room(const Request&) override {
        return room_is_known ? 48 + count_ * (sizeof(ItemHeader) + 16) : 0;
    }
    kern_return record(Writer& writer, const Request&) override {
        ++calls;
        inside_a_trap = inside_a_trap || system_.in_trap() || system_.traps() == 0;
        if (error != KERN_SUCCESS)
            return error;
        if (const kern_return result = writer.container_begin(service_record, id_);
            result != KERN_SUCCESS)
            return result;
        for (std::uint64_t n = 0; n < count_; ++n) {
            if (const kern_return result = writer.append_value(service_record, n);
                result != KERN_SUCCESS)
                return result;
        }
        return writer.container_end(id_);
    }

    bool room_is_known = true;
    kern_return error = KERN_SUCCESS;
    std::size_t calls = 0;
    bool inside_a_trap = false;

  private:
    FakeSystem& system_;
    std::uint64_t id_;
    std::size_t count_;
};

/// The names and types of a capture's outermost items from the tasks' end on.
std::vector<std::string> behind_the_tasks(const Parsed& parsed) {
    std::vector<std::string> names;
    int depth = 0;
    for (const Item& item : parsed.items) {
        if (item.kind == ItemKind::container_begin && depth++ == 0) {
            if (item.container_type == STACKSHOT_KCCONTAINER_TASK)
                names.clear();
            else
                names.push_back("container " + std::to_string(item.container_id));
        } else if (item.kind == ItemKind::container_end) {
            --depth;
        } else if (depth == 0) {
            const bool described =
                item.type == KCDATA_TYPE_UINT64_DESC || item.type == KCDATA_TYPE_UINT32_DESC;
            names.push_back(described ? reinterpret_cast<const char*>(item.payload.data())
                                      : "item");
        }
    }
    return names;
}

void add_tasks(FakeSystem& system) {
    for (int n = 0; n < 10; ++n)
        system.add_task("task" + std::to_string(n), 3, 4);
}

}  // namespace

TEST_CASE("services add their records when the trap is over, behind the counts of tasks") {
    const bool single = GENERATE(false, true);
    FakeSystem system(3);
    system.constant.tunables.single_threaded = single;
    add_tasks(system);
    Service first(system, 1, 2), second(system, 2, 300);
    PostTrapProducer* const services[] = {&first, &second};
    system.constant.post_trap_producers = services;
    const Taken taken(system, {});
    CHECK(taken.statistics().tries == 1);
    CHECK(first.calls == 1);
    CHECK(second.calls == 1);
    CHECK_FALSE(first.inside_a_trap);
    CHECK_FALSE(second.inside_a_trap);
    const auto names = behind_the_tasks(taken.parsed);
    const std::vector<std::string> beginning = {"stackshot_tasks_count", "stackshot_threads_count",
                                                "container 1", "container 2"};
    REQUIRE(names.size() > 6);
    CHECK(std::vector<std::string>(names.begin(), names.begin() + 4) == beginning);
    // The last item is BUFFER_END.
    CHECK(names[names.size() - 2] == "stackshot_out_flags");
    CHECK(system.live_allocations() == 1);
}

TEST_CASE("a service with more records than it said is a new attempt with a larger buffer") {
    const bool single = GENERATE(false, true);
    FakeSystem system(3);
    system.constant.tunables.single_threaded = single;
    system.constant.tunables.max_tracebuf_size = std::size_t{1} << 20;
    add_tasks(system);
    // Of a size that no slack of a page or an estimate hides.
    Service service(system, 1, 4000);
    service.room_is_known = false;
    PostTrapProducer* const services[] = {&service};
    system.constant.post_trap_producers = services;
    auto taken = take_stackshot(system, {});
    if (single) {
        REQUIRE(taken.ok());
        CHECK(taken->statistics.tries > 1);
        CHECK(taken->statistics.tries == service.calls);
        system.free(taken->buffer);
    } else {
        // The buffer is made to measure each time: the measure has to be right.
        CHECK(taken.error() == KERN_RESOURCE_SHORTAGE);
    }
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a service's error is the capture's, and nothing is left behind") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    add_tasks(system);
    Service service(system, 1, 1);
    service.error = KERN_OPERATION_TIMED_OUT;
    PostTrapProducer* const services[] = {&service};
    system.constant.post_trap_producers = services;
    CHECK(take_stackshot(system, {}).error() == KERN_OPERATION_TIMED_OUT);
    CHECK(service.calls == 1);
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a compressed capture has the services' records too") {
    FakeSystem system(2);
    add_tasks(system);
    Service service(system, 5, 100);
    PostTrapProducer* const services[] = {&service};
    Request request;
    request.flags |= STACKSHOT_DO_COMPRESS;
    const auto uncompressed_size = [&] {
        auto taken = take_stackshot(system, request);
        REQUIRE(taken.ok());
        CompressedHead head;
        CHECK(read_compressed_head(taken->data(), head) == CompressionError::none);
        system.free(taken->buffer);
        return head.total_in;
    };
    const std::uint64_t without = uncompressed_size();
    system.constant.post_trap_producers = services;
    const std::uint64_t with = uncompressed_size();
    CHECK(without > 0);
    CHECK(with - without == service.room(request));
}

TEST_CASE("scratch memory is prepared before each trap and released behind it") {
    const bool single = GENERATE(false, true);
    FakeSystem system(2);
    system.constant.tunables.single_threaded = single;
    add_tasks(system);
    std::vector<int> at_trap;
    system.trap_hook = [&] { at_trap.push_back(system.live_scratch()); };

    SECTION("in each attempt") {
        // Too small a first buffer.
        system.constant.tunables.estimate_adj = 0;
        system.trap_hook = [&] {
            at_trap.push_back(system.live_scratch());
            if (at_trap.size() == 1) {
                for (int n = 0; n < 200; ++n)
                    system.add_task("late", 10, 4);
            }
        };
        auto taken = take_stackshot(system, {});
        REQUIRE(taken.ok());
        CHECK(at_trap.size() > 1);
        CHECK(at_trap == std::vector<int>(at_trap.size(), 1));
        system.free(taken->buffer);
    }
    SECTION("not at all when there is none") {
        system.scratch_result = KERN_RESOURCE_SHORTAGE;
        CHECK(take_stackshot(system, {}).error() == KERN_RESOURCE_SHORTAGE);
        CHECK(at_trap.empty());
    }
    SECTION("also when the capture fails") {
        system.tasks[3].facts_result = KERN_FAILURE;
        CHECK(take_stackshot(system, {}).error() == KERN_FAILURE);
        CHECK(at_trap == std::vector<int>{1});
    }
    CHECK(system.live_scratch() == 0);
    CHECK(system.live_allocations() == 0);
}

TEST_CASE("a capture of page tables is collected by one CPU, the others stopped") {
    FakeSystem system(4);
    add_tasks(system);
    Request request;
    request.flags |= STACKSHOT_PAGE_TABLES;
    const Taken taken(system, request);
    CHECK(taken.statistics().workers == 1);
    CHECK(taken.tasks.size() == 10);
}
