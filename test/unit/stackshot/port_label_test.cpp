// The labels of ports that waiting threads mention.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <set>
#include <string>

#include "comparison.hpp"
#include "fake_system.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "stackshot/assembly.hpp"
#include "stackshot/attempt.hpp"
#include "taken.hpp"

using namespace kcdata;
using namespace stackshot;

namespace {

constexpr std::uint64_t flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_THREAD_WAITINFO;

PortLabelRef add_label(FakeSystem& system, const std::string& name, std::uint8_t domain = 1) {
    const PortLabelRef ref{0xffff'0000'4000'0000 + 0x60 * system.port_labels.size()};
    PortLabelFacts& facts = system.port_labels[ref];
    facts.readable = true;
    facts.domain = domain;
    std::copy_n(name.data(), std::min(name.size(), sizeof(facts.name)), facts.name);
    return ref;
}

/// A task whose threads wait at ports with these labels, and whose turnstiles lead to those.
FakeSystem::Task& add_task(FakeSystem& system,
                           const std::vector<std::pair<PortLabelRef, PortLabelRef>>& labels) {
    FakeSystem::Task& task = system.add_task("task", labels.size(), 3);
    for (std::size_t n = 0; n < labels.size(); ++n) {
        task.threads[n].facts.state = SS_TH_WAIT;
        task.threads[n].wait = WaitFacts{.wait_type = kThreadWaitPortReceive,
                                         .port_label = labels[n].first,
                                         .turnstile_port_label = labels[n].second};
    }
    return task;
}

std::vector<std::int16_t> wait_ids(const ParsedTask& task) {
    std::vector<std::int16_t> ids;
    for (const auto& info : task.wait_infos)
        ids.push_back(std::int16_t{info.portlabel_id});
    return ids;
}
std::vector<std::int16_t> turnstile_ids(const ParsedTask& task) {
    std::vector<std::int16_t> ids;
    for (const auto& info : task.turnstile_infos)
        ids.push_back(std::int16_t{info.portlabel_id});
    return ids;
}

using Ids = std::vector<std::int16_t>;

}  // namespace

TEST_CASE("a task has the labels its waits mention, by ids given out in their order") {
    const bool single = GENERATE(false, true);
    FakeSystem system(single ? 1 : 4);
    system.constant.tunables.single_threaded = single;
    const auto a = add_label(system, "com.example.a", 1);
    const auto b = add_label(system, "com.example.b", 7);
    const auto c = add_label(system, "com.example.c", 3);
    constexpr auto none = PortLabelRef::none;
    add_task(system, {{none, c}, {none, none}});
    add_task(system, {{none, none}});
    add_task(system, {{b, b}, {none, c}, {b, a}});
    add_task(system, {{a, a}});
    Taken taken(system, {Request::all_pids, flags});
    REQUIRE(taken.tasks.size() == 4);
    CHECK(wait_ids(taken.tasks[0]) == Ids{0, 0});
    CHECK(turnstile_ids(taken.tasks[0]) == Ids{1, 0});
    CHECK(taken.tasks[1].port_labels.empty());
    CHECK(wait_ids(taken.tasks[2]) == Ids{2, 0, 2});
    CHECK(turnstile_ids(taken.tasks[2]) == Ids{2, 1, 3});
    CHECK(wait_ids(taken.tasks[3]) == Ids{3});
    const std::vector<std::vector<std::uint64_t>> mentioned = {{1}, {}, {1, 2, 3}, {3}};
    const std::string names[] = {"com.example.c", "com.example.b", "com.example.a"};
    const std::uint8_t domains[] = {3, 7, 1};
    for (std::size_t t = 0; t < mentioned.size(); ++t) {
        REQUIRE(taken.tasks[t].port_labels.size() == mentioned[t].size());
        for (std::size_t n = 0; n < mentioned[t].size(); ++n) {
            const ParsedPortLabel& label = taken.tasks[t].port_labels[n];
            const std::uint64_t id = mentioned[t][n];
            CHECK(label.id == id);
            CHECK(label.name == names[id - 1]);
            CHECK(label.name_size == names[id - 1].size() + 1);
            REQUIRE(label.info);
            CHECK(std::int16_t{label.info->portlabel_id} == static_cast<std::int16_t>(id));
            CHECK(std::uint16_t{label.info->portlabel_flags} == 0);
            CHECK(std::uint8_t{label.info->portlabel_domain} == domains[id - 1]);
        }
    }
}

TEST_CASE("a label that cannot be read is there without a name, and says so") {
    FakeSystem system(2);
    const PortLabelRef hostile{0x1234};
    add_task(system, {{hostile, PortLabelRef::none}});
    Taken taken(system, {Request::all_pids, flags});
    REQUIRE(taken.tasks[0].port_labels.size() == 1);
    const ParsedPortLabel& label = taken.tasks[0].port_labels[0];
    CHECK(label.id == 1);
    CHECK_FALSE(label.name);
    REQUIRE(label.info);
    CHECK(std::uint16_t{label.info->portlabel_flags} == STACKSHOT_PORTLABEL_READFAILED);
    CHECK(std::uint8_t{label.info->portlabel_domain} == 0);
}

TEST_CASE("a label as long as it can be has no NUL, and stands behind wait and turnstile infos") {
    FakeSystem system(1);
    const auto label = add_label(system, std::string(64, 'x'));
    add_task(system, {{label, label}});
    Taken taken(system, {Request::all_pids, flags});
    REQUIRE(taken.tasks[0].port_labels.size() == 1);
    CHECK(taken.tasks[0].port_labels[0].name_size == 64);
    std::vector<std::uint32_t> order;
    for (const Item& item : taken.parsed.items)
        if (item.kind == ItemKind::array || is_container(item, STACKSHOT_KCCONTAINER_PORTLABEL) ||
            item.type == STACKSHOT_KCTYPE_PORTLABEL_NAME ||
            item.type == STACKSHOT_KCTYPE_PORTLABEL ||
            item.type == STACKSHOT_KCTYPE_LATENCY_INFO_TASK)
            order.push_back(item.kind == ItemKind::array             ? item.element_type
                            : item.kind == ItemKind::container_begin ? item.container_type
                                                                     : item.type);
    const std::vector<std::uint32_t> expected = {
        STACKSHOT_KCTYPE_THREAD_WAITINFO, STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO,
        STACKSHOT_KCCONTAINER_PORTLABEL,  STACKSHOT_KCTYPE_PORTLABEL_NAME,
        STACKSHOT_KCTYPE_PORTLABEL,       STACKSHOT_KCTYPE_LATENCY_INFO_TASK};
    CHECK(std::search(order.begin(), order.end(), expected.begin(), expected.end()) != order.end());
}

TEST_CASE("of more labels than there are ids the later ones are missing") {
    const bool single = GENERATE(false, true);
    FakeSystem system(4);
    system.constant.tunables.single_threaded = single;
    std::vector<std::pair<PortLabelRef, PortLabelRef>> labels;
    for (int n = 0; n < 300; ++n)
        labels.emplace_back(add_label(system, "label" + std::to_string(n)), PortLabelRef::none);
    for (std::size_t t = 0; t < 100; ++t)
        add_task(system, {labels[3 * t], labels[3 * t + 1], labels[3 * t + 2]});
    Taken taken(system, {Request::all_pids, flags});
    std::int16_t next = 0;
    for (const ParsedTask& task : taken.tasks) {
        std::size_t known = 0;
        for (const std::int16_t id : wait_ids(task)) {
            ++next;
            CHECK(id == (next <= 256 ? next : STACKSHOT_PORTLABELID_MISSING));
            known += next <= 256;
        }
        CHECK(task.port_labels.size() == known);
    }
    CHECK(next == 300);
}

TEST_CASE("a label is the task's that mentions it, however many tasks lie between") {
    // More tasks than there are generations.
    FakeSystem system(2);
    const auto label = add_label(system, "rare");
    for (int n = 0; n < 600; ++n)
        add_task(system, {{n % 256 == 0 ? label : PortLabelRef::none, PortLabelRef::none}});
    Taken taken(system, {Request::all_pids, flags});
    for (std::size_t t = 0; t < taken.tasks.size(); ++t)
        CHECK(taken.tasks[t].port_labels.size() == (t % 256 == 0 ? 1 : 0));
}

TEST_CASE("each CPU reads a label once") {
    FakeSystem system(1);
    const auto label = add_label(system, "busy");
    for (int n = 0; n < 20; ++n)
        add_task(system, {{label, label}, {label, label}});
    Taken taken(system, {Request::all_pids, flags});
    CHECK(taken.tasks.back().port_labels.size() == 1);
    CHECK(system.port_labels_read == 1);
}

TEST_CASE("labels have the same ids whoever finds them") {
    FakeSystem system(8);
    std::vector<PortLabelRef> labels;
    for (int n = 0; n < 40; ++n)
        labels.push_back(add_label(system, "label" + std::to_string(n)));
    std::vector<std::pair<PortLabelRef, PortLabelRef>> large;
    for (std::size_t n = 0; n < 1200; ++n)
        large.emplace_back(labels[n * 7 % 40], labels[n * 11 % 40]);
    for (std::size_t t = 0; t < 30; ++t)
        add_task(system, {{labels[t], labels[39 - t]}});
    add_task(system, large);
    system.constant.tunables.single_threaded = true;
    const auto size = Request{Request::all_pids, flags, 2'000'000};
    Taken single(system, size);
    const auto wanted = comparable(single.data());
    system.constant.tunables.single_threaded = false;
    for (int round = 0; round < 5; ++round) {
        Taken parallel(system, size);
        CHECK(comparable(parallel.data()) == wanted);
    }
}

TEST_CASE("labels without memory for them enlarge the capture's buffer") {
    FakeSystem system(2);
    for (int t = 0; t < 200; ++t)
        add_task(system, {{add_label(system, "label"), PortLabelRef::none}});
    system.constant.tunables.estimate_adj = 0;
    Taken taken(system, {Request::all_pids, flags});
    CHECK(taken.tasks.back().port_labels.size() == 1);
    CHECK(system.live_scratch() == 0);
}
