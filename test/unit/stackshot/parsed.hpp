#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kcdata/reader.hpp"
#include "kcdata/records.hpp"

/// The items of a buffer, and whether it was sound from BEGIN to BUFFER_END.
struct Parsed {
    std::vector<kcdata::Item> items{};
    kcdata::ReadError error = kcdata::ReadError::none;
    std::size_t end = 0;  ///< offset behind BUFFER_END
};

inline Parsed parse(std::span<const std::byte> buffer) {
    Parsed parsed;
    kcdata::Reader reader(buffer);
    for (kcdata::Item item; reader.next(item);)
        parsed.items.push_back(item);
    parsed.error = reader.error();
    parsed.end = reader.offset();
    return parsed;
}

template <typename T>
T payload_as(const kcdata::Item& item) {
    REQUIRE(item.payload.size() == sizeof(T));
    T value;
    std::memcpy(&value, item.payload.data(), sizeof(T));
    return value;
}

/// All bytes of a record, so that no field of it goes unchecked.
template <typename Record>
std::vector<std::uint8_t> bytes_of(const Record& record) {
    std::vector<std::uint8_t> bytes(sizeof(record));
    std::memcpy(bytes.data(), &record, sizeof(record));
    return bytes;
}

inline bool is_container(const kcdata::Item& item, std::uint32_t type) {
    return item.kind == kcdata::ItemKind::container_begin && item.container_type == type;
}

/// The value of the described u32 or u64 called `name`, anywhere in the buffer.
inline std::optional<std::uint64_t> described(const Parsed& parsed, const std::string& name) {
    for (const kcdata::Item& item : parsed.items) {
        if (item.type != kcdata::KCDATA_TYPE_UINT32_DESC &&
            item.type != kcdata::KCDATA_TYPE_UINT64_DESC)
            continue;
        if (name != reinterpret_cast<const char*>(item.payload.data()))
            continue;
        std::uint64_t value = 0;
        std::memcpy(&value, item.payload.data() + kcdata::description_size,
                    item.payload.size() - kcdata::description_size);
        return value;
    }
    return std::nullopt;
}

inline std::size_t count_of(const Parsed& parsed, std::uint32_t type) {
    std::size_t count = 0;
    for (const kcdata::Item& item : parsed.items)
        count += item.type == type ? 1 : 0;
    return count;
}

inline const kcdata::Item* find(const Parsed& parsed, std::uint32_t type) {
    for (const kcdata::Item& item : parsed.items) {
        if (item.type == type)
            return &item;
    }
    return nullptr;
}

/// One thread's records, by what they say.
struct ParsedThread {
    std::uint64_t id = 0;
    std::optional<kcdata::thread_snapshot_v4> snapshot{};
    std::optional<std::string> name{};
    std::size_t name_size = 0;
    std::optional<kcdata::stackshot_cpu_times_v2> times{};
    std::vector<std::uint64_t> frames{};
    std::optional<kcdata::stackshot_latency_thread> latency{};
    std::optional<std::string> dispatch_queue_label{};
    std::size_t dispatch_queue_label_size = 0;
    std::optional<std::uint64_t> thread_group{};
    std::optional<kcdata::io_stats_snapshot> io{};
    std::optional<kcdata::instrs_cycles_snapshot> counters{};
    std::optional<std::uint32_t> stack_high_water{};
    std::optional<std::uint32_t> last_processor{};
    bool on_absent_cpu = false;
};
struct ParsedPortLabel {
    std::uint64_t id = 0;
    std::optional<std::string> name{};
    std::size_t name_size = 0;
    std::optional<kcdata::portlabel_info> info{};
};
struct ParsedTask {
    std::uint64_t id = 0;
    std::optional<kcdata::task_snapshot_v2> snapshot{};
    std::optional<kcdata::transitioning_task_snapshot> transition{};
    std::optional<kcdata::task_delta_snapshot_v2> delta{};
    std::vector<kcdata::thread_delta_snapshot_v3> unchanged{};
    std::optional<kcdata::dyld_uuid_info_64> kernel_image{};
    std::vector<ParsedThread> threads{};
    std::vector<kcdata::stackshot_thread_waitinfo_v2> wait_infos{};
    std::vector<kcdata::stackshot_thread_turnstileinfo_v2> turnstile_infos{};
    std::vector<ParsedPortLabel> port_labels{};
    std::vector<std::int32_t> donating_pids{};
    std::optional<std::uint64_t> coalition{};
    std::optional<kcdata::io_stats_snapshot> io{};
    std::optional<kcdata::instrs_cycles_snapshot_v2> counters{};
};

/// The elements of an array item, which is the only one of them.
template <typename Element>
void read_array(const kcdata::Item& item, std::vector<Element>& elements) {
    REQUIRE(elements.empty());
    REQUIRE(item.element_size == sizeof(Element));
    elements.resize(item.element_count);
    std::memcpy(elements.data(), item.payload.data(), item.payload.size());
}

inline std::vector<ParsedTask> tasks_of(const Parsed& parsed) {
    using namespace kcdata;
    std::vector<ParsedTask> tasks;
    bool in_task = false;
    bool in_thread = false;
    bool in_label = false;
    for (const Item& item : parsed.items) {
        if (is_container(item, STACKSHOT_KCCONTAINER_TASK) ||
            is_container(item, STACKSHOT_KCCONTAINER_TRANSITIONING_TASK)) {
            REQUIRE_FALSE(in_task);
            in_task = true;
            tasks.emplace_back().id = item.container_id;
        } else if (is_container(item, STACKSHOT_KCCONTAINER_THREAD)) {
            REQUIRE(in_task);
            REQUIRE_FALSE(in_thread);
            in_thread = true;
            tasks.back().threads.emplace_back().id = item.container_id;
        } else if (is_container(item, STACKSHOT_KCCONTAINER_PORTLABEL)) {
            REQUIRE((in_task && !in_thread && !in_label));
            in_label = true;
            tasks.back().port_labels.emplace_back().id = item.container_id;
        } else if (item.kind == ItemKind::container_end) {
            (in_label ? in_label : in_thread ? in_thread : in_task) = false;
        } else if (in_label) {
            ParsedPortLabel& label = tasks.back().port_labels.back();
            if (item.type == STACKSHOT_KCTYPE_PORTLABEL_NAME) {
                label.name = reinterpret_cast<const char*>(item.payload.data());
                label.name_size = item.payload.size();
            }
            if (item.type == STACKSHOT_KCTYPE_PORTLABEL)
                label.info = payload_as<portlabel_info>(item);
        } else if (in_thread) {
            ParsedThread& thread = tasks.back().threads.back();
            if (item.type == STACKSHOT_KCTYPE_THREAD_SNAPSHOT)
                thread.snapshot = payload_as<thread_snapshot_v4>(item);
            if (item.type == STACKSHOT_KCTYPE_THREAD_NAME) {
                thread.name = reinterpret_cast<const char*>(item.payload.data());
                thread.name_size = item.payload.size();
            }
            if (item.type == STACKSHOT_KCTYPE_LATENCY_INFO_THREAD)
                thread.latency = payload_as<stackshot_latency_thread>(item);
            if (item.type == STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL) {
                thread.dispatch_queue_label = reinterpret_cast<const char*>(item.payload.data());
                thread.dispatch_queue_label_size = item.payload.size();
            }
            if (item.type == STACKSHOT_KCTYPE_THREAD_GROUP)
                thread.thread_group = payload_as<std::uint64_t>(item);
            if (item.type == STACKSHOT_KCTYPE_IOSTATS)
                thread.io = payload_as<io_stats_snapshot>(item);
            if (item.type == STACKSHOT_KCTYPE_INSTRS_CYCLES)
                thread.counters = payload_as<instrs_cycles_snapshot>(item);
            if (item.type == STACKSHOT_KCTYPE_CPU_TIMES)
                thread.times = payload_as<stackshot_cpu_times_v2>(item);
            if (item.kind == ItemKind::array &&
                item.element_type == STACKSHOT_KCTYPE_KERN_STACKLR64) {
                REQUIRE(item.element_size == 8);
                thread.frames.resize(item.element_count);
                std::memcpy(thread.frames.data(), item.payload.data(), item.payload.size());
            }
            if (item.type == KCDATA_TYPE_UINT32_DESC) {
                const std::string name = reinterpret_cast<const char*>(item.payload.data());
                std::uint32_t value = 0;
                std::memcpy(&value, item.payload.data() + description_size, sizeof(value));
                if (name == "last_processor")
                    thread.last_processor = value;
                if (name == "stack_high_water")
                    thread.stack_high_water = value;
                if (name == "on_absent_cpu")
                    thread.on_absent_cpu = value != 0;
            }
        } else if (in_task) {
            if (item.type == STACKSHOT_KCTYPE_TASK_SNAPSHOT)
                tasks.back().snapshot = payload_as<task_snapshot_v2>(item);
            if (item.type == STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT)
                tasks.back().transition = payload_as<transitioning_task_snapshot>(item);
            if (item.type == STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT)
                tasks.back().delta = payload_as<task_delta_snapshot_v2>(item);
            if (item.kind == ItemKind::array &&
                item.element_type == STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT)
                read_array(item, tasks.back().unchanged);
            if (item.kind == ItemKind::array &&
                item.element_type == STACKSHOT_KCTYPE_THREAD_WAITINFO)
                read_array(item, tasks.back().wait_infos);
            if (item.kind == ItemKind::array &&
                item.element_type == STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO)
                read_array(item, tasks.back().turnstile_infos);
            if (item.kind == ItemKind::array && item.element_type == STACKSHOT_KCTYPE_DONATING_PIDS)
                read_array(item, tasks.back().donating_pids);
            if (item.type == STACKSHOT_KCTYPE_JETSAM_COALITION)
                tasks.back().coalition = payload_as<std::uint64_t>(item);
            if (item.type == STACKSHOT_KCTYPE_IOSTATS)
                tasks.back().io = payload_as<io_stats_snapshot>(item);
            if (item.type == STACKSHOT_KCTYPE_INSTRS_CYCLES)
                tasks.back().counters = payload_as<instrs_cycles_snapshot_v2>(item);
            if (item.type == STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO)
                tasks.back().kernel_image = payload_as<dyld_uuid_info_64>(item);
        }
    }
    return tasks;
}
