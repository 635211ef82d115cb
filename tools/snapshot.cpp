#include "tools/snapshot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kcdata/reader.hpp"
#include "kcdata/records.hpp"
#include "kcdata/types.hpp"
#include "tools/field_value.hpp"

namespace tools {

namespace {

using kcdata::Item;
using kcdata::ItemKind;
using Payload = std::span<const std::byte>;

/// The value at `offset`, unless the payload ends before: older records are shorter.
template <typename T>
std::optional<T> load(Payload payload, std::size_t offset = 0) {
    if (payload.size() < offset + sizeof(T))
        return std::nullopt;
    return tools::load<T>(payload.data() + offset);
}

/// A record of which the payload may be a shorter, older form: what that lacks is zero.
template <typename Record>
Record load_record(Payload payload) {
    Record record{};
    std::memcpy(&record, payload.data(), std::min(payload.size(), sizeof(record)));
    return record;
}

std::string text(Payload payload, std::size_t offset = 0) {
    if (payload.size() <= offset)
        return {};
    return std::string(text_in(payload.subspan(offset)));
}

class SnapshotReader {
  public:
    Snapshot run(Payload buffer) {
        kcdata::Reader reader(buffer);
        Item item;
        for (;;) {
            if (reader.next(item)) {
                take(item);
                continue;
            }
            if (reader.error() == kcdata::ReadError::none)
                break;
            snapshot_.problems.push_back(fmt::format("offset {:#x}: {}", reader.offset(),
                                                     kcdata::read_error_text(reader.error())));
            if (!reader.resume())
                break;
        }
        finish();
        return std::move(snapshot_);
    }

  private:
    /// Where in the nest of containers an item stands.
    enum class Place { global, task, thread, port_label, elsewhere };

    Place place() const { return places_.empty() ? Place::global : places_.back(); }

    void take(const Item& item) {
        switch (item.kind) {
            case ItemKind::begin:
                check_magic(item);
                break;
            case ItemKind::container_begin:
                open(item);
                break;
            case ItemKind::container_end:
                places_.pop_back();
                break;
            case ItemKind::array:
            case ItemKind::plain:
                if (place() == Place::thread)
                    take_thread_item(item);
                else if (place() == Place::task)
                    take_task_item(item);
                else if (place() == Place::global)
                    take_global_item(item);
                else if (place() == Place::port_label)
                    take_port_label_item(item);
                break;
            case ItemKind::end:
                break;
        }
    }

    /// What follows from several records.
    void finish() {
        for (LoadInfo& image : snapshot_.shared_cache_images)
            image.address += shared_cache_slide_;
    }

    void check_magic(const Item& item) {
        if (item.type != kcdata::KCDATA_BUFFER_BEGIN_STACKSHOT &&
            item.type != kcdata::KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT)
            snapshot_.problems.push_back(fmt::format(
                "offset {:#x}: a buffer of kind {:#x} is no stackshot", item.offset, item.type));
        snapshot_.delta = item.type == kcdata::KCDATA_BUFFER_BEGIN_DELTA_STACKSHOT;
    }

    void open(const Item& item) {
        const bool task = item.container_type == kcdata::STACKSHOT_KCCONTAINER_TASK ||
                          item.container_type == kcdata::STACKSHOT_KCCONTAINER_TRANSITIONING_TASK;
        if (task && place() == Place::global) {
            snapshot_.tasks.emplace_back().unique_pid = item.container_id;
            places_.push_back(Place::task);
        } else if (item.container_type == kcdata::STACKSHOT_KCCONTAINER_THREAD &&
                   place() == Place::task) {
            snapshot_.tasks.back().threads.emplace_back().id = item.container_id;
            places_.push_back(Place::thread);
        } else if (item.container_type == kcdata::STACKSHOT_KCCONTAINER_PORTLABEL &&
                   place() == Place::task) {
            snapshot_.tasks.back().port_labels.emplace_back().id =
                static_cast<std::int16_t>(item.container_id);
            places_.push_back(Place::port_label);
        } else {
            places_.push_back(Place::elsewhere);
        }
    }

    void take_global_item(const Item& item) {
        Snapshot& s = snapshot_;
        const Payload payload = item.payload;
        if (item.kind == ItemKind::array) {
            for (std::size_t i = 0; i < item.element_count; ++i)
                take_global_element(item.element_type,
                                    payload.subspan(i * item.element_size, item.element_size));
            return;
        }
        switch (item.type) {
            case kcdata::STACKSHOT_KCTYPE_OSVERSION:
                s.os_version = text(payload);
                break;
            case kcdata::STACKSHOT_KCTYPE_OS_BUILD_VERSION:
                s.os_build_version = text(payload);
                break;
            case kcdata::STACKSHOT_KCTYPE_BOOTARGS:
                s.boot_args = text(payload);
                break;
            case kcdata::STACKSHOT_KCTYPE_KERN_PAGE_SIZE:
                s.page_size = load<std::uint32_t>(payload);
                break;
            case kcdata::KCDATA_TYPE_TIMEBASE: {
                const auto timebase = load<kcdata::mach_timebase_info>(payload);
                if (timebase && timebase->numer != 0 && timebase->denom != 0)
                    s.timebase = Timebase{timebase->numer, timebase->denom};
                break;
            }
            case kcdata::KCDATA_TYPE_MACH_ABSOLUTE_TIME:
                s.absolute_time = load<std::uint64_t>(payload);
                break;
            case kcdata::KCDATA_TYPE_USECS_SINCE_EPOCH:
                s.usecs_since_epoch = load<std::uint64_t>(payload);
                break;
            case kcdata::STACKSHOT_KCTYPE_GLOBAL_MEM_STATS: {
                using Memory = kcdata::mem_and_io_snapshot;
                const auto free = load<std::uint32_t>(payload, offsetof(Memory, free_pages));
                const auto active = load<std::uint32_t>(payload, offsetof(Memory, active_pages));
                const auto wired = load<std::uint32_t>(payload, offsetof(Memory, wired_pages));
                if (free && active && wired)
                    s.memory = MemoryStatistics{*free, *active, *wired};
                break;
            }
            case kcdata::STACKSHOT_KCTYPE_STACKSHOT_DURATION: {
                using Duration = kcdata::stackshot_duration_v2;
                s.duration = load<std::uint64_t>(payload, offsetof(Duration, stackshot_duration));
                s.duration_outer =
                    load<std::uint64_t>(payload, offsetof(Duration, stackshot_duration_outer));
                s.duration_prior =
                    load<std::uint64_t>(payload, offsetof(Duration, stackshot_duration_prior));
                break;
            }
            case kcdata::STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO:
                s.shared_cache = shared_cache(payload);
                shared_cache_slide_ = load<std::uint64_t>(payload).value_or(0);
                break;
            case kcdata::STACKSHOT_KCTYPE_DELTA_SINCE_TIMESTAMP:
                s.delta_since = load<std::uint64_t>(payload);
                break;
            case kcdata::STACKSHOT_KCTYPE_LATENCY_INFO:
                s.latency = load_record<kcdata::stackshot_latency_collection_v2>(payload);
                break;
            default:
                take_described(item);
        }
    }

    void take_global_element(std::uint32_t type, Payload payload) {
        Snapshot& s = snapshot_;
        if (type == kcdata::STACKSHOT_KCTYPE_LATENCY_INFO_CPU) {
            const auto cpu = load<std::int32_t>(payload);
            if (!cpu)
                return;
            s.collecting_cpus.push_back(*cpu);
            s.cpu_latencies.push_back(load_record<kcdata::stackshot_latency_cpu>(payload));
        } else if (type == kcdata::STACKSHOT_KCTYPE_SYS_SHAREDCACHE_LAYOUT) {
            if (const auto image = load_info<std::uint64_t>(payload))
                s.shared_cache_images.push_back(*image);
        }
    }

    /// dyld_uuid_info_32 and _64.
    template <typename Address>
    static std::optional<LoadInfo> load_info(Payload payload) {
        using Uuid = std::array<std::uint8_t, 16>;
        const auto address = load<Address>(payload);
        const auto uuid = load<Uuid>(payload, sizeof(Address));
        if (!address || !uuid)
            return std::nullopt;
        return LoadInfo{*address, *uuid};
    }

    /// A shared cache where it is mapped. Its record begins with the slide; older ones tell no
    /// more.
    std::optional<LoadInfo> shared_cache(Payload payload) const {
        constexpr std::size_t slid_base_offset = 24, slid_first_mapping_offset = 32;
        auto info = load_info<std::uint64_t>(payload);
        const auto base = load<std::uint64_t>(payload, slid_base_offset);
        if (!info || !base || *base == 0)
            return std::nullopt;
        const std::uint64_t slide = info->address;
        info->address = *base;
        // Before there was the second of them, the first was wrong on x86-64 (after XNU's
        // tools/lldbmacros/kcdata.py).
        constexpr std::uint64_t wrong_base = 0x7fff00000000, right_base = 0x7fff20000000;
        const std::uint64_t first =
            load<std::uint64_t>(payload, slid_first_mapping_offset).value_or(0);
        if (first >= *base)
            info->address = first;
        else if (*base - slide == wrong_base && snapshot_.page_size == 4096u &&
                 snapshot_.os_version.value_or("").find("X86_64") != std::string::npos)
            info->address = right_base + slide;
        return info;
    }

    /// The number a *_DESC item carries under `name`, or nothing if it is another item.
    static std::optional<std::uint64_t> described(const Item& item, std::string_view name) {
        const bool narrow = item.type == kcdata::KCDATA_TYPE_UINT32_DESC;
        if ((!narrow && item.type != kcdata::KCDATA_TYPE_UINT64_DESC) ||
            item.payload.size() < kcdata::description_size ||
            text(item.payload.first(kcdata::description_size)) != name)
            return std::nullopt;
        if (narrow)
            return load<std::uint32_t>(item.payload, kcdata::description_size);
        return load<std::uint64_t>(item.payload, kcdata::description_size);
    }

    void take_described(const Item& item) {
        const struct {
            std::string_view name;
            std::optional<std::uint64_t>& target;
        } known[] = {
            {"stackshot_in_flags", snapshot_.in_flags},
            {"stackshot_absent_cpus", snapshot_.absent_cpus},
            {"stackshot_tasks_count", snapshot_.tasks_count},
            {"stackshot_threads_count", snapshot_.threads_count},
            {"stackshot_tries", snapshot_.tries},
        };
        for (const auto& [name, target] : known)
            if (const auto value = described(item, name))
                target = value;
    }

    void take_task_item(const Item& item) {
        TaskSnapshot& task = snapshot_.tasks.back();
        const Payload payload = item.payload;
        if (item.kind == ItemKind::array) {
            for (std::size_t i = 0; i < item.element_count; ++i)
                take_task_element(task, item.element_type,
                                  payload.subspan(i * item.element_size, item.element_size));
            return;
        }
        if (item.type == kcdata::STACKSHOT_KCTYPE_TASK_SNAPSHOT) {
            using Record = kcdata::task_snapshot_v2;
            task.record = load<Record>(payload);
            task.ss_flags = load<std::uint64_t>(payload, offsetof(Record, ts_ss_flags));
            task.pid = load<std::int32_t>(payload, offsetof(Record, ts_pid));
            task.name = text(payload, offsetof(Record, ts_p_comm));
            task.user_time_in_terminated_threads =
                load<std::uint64_t>(payload, offsetof(Record, ts_user_time_in_terminated_threads));
            task.system_time_in_terminated_threads = load<std::uint64_t>(
                payload, offsetof(Record, ts_system_time_in_terminated_threads));
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT) {
            using Record = kcdata::task_delta_snapshot_v2;
            task.unchanged = true;
            task.ss_flags = load<std::uint64_t>(payload, offsetof(Record, tds_ss_flags));
            task.user_time_in_terminated_threads =
                load<std::uint64_t>(payload, offsetof(Record, tds_user_time_in_terminated_threads));
            task.system_time_in_terminated_threads = load<std::uint64_t>(
                payload, offsetof(Record, tds_system_time_in_terminated_threads));
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_TRANSITIONING_TASK_SNAPSHOT) {
            constexpr std::size_t flags_offset = 8, pid_offset = 24, name_offset = 28;
            task.ss_flags = load<std::uint64_t>(payload, flags_offset);
            task.pid = load<std::int32_t>(payload, pid_offset);
            task.name = text(payload, name_offset);
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_KERNELCACHE_LOADINFO) {
            if (const auto info = load_info<std::uint64_t>(payload))
                snapshot_.kernel = info;
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_SHAREDCACHE_LOADINFO) {
            task.shared_cache = shared_cache(payload);
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_LATENCY_INFO_TASK) {
            task.latency = load_record<kcdata::stackshot_latency_task>(payload);
        } else {
            take_task_element(task, item.type, payload);
        }
    }

    /// What a task has any number of: in arrays, or one by one.
    static void take_task_element(TaskSnapshot& task, std::uint32_t type, Payload payload) {
        if (type == kcdata::STACKSHOT_KCTYPE_THREAD_WAITINFO) {
            using Record = kcdata::stackshot_thread_waitinfo_v2;
            const auto waiter = load<std::uint64_t>(payload, offsetof(Record, waiter));
            const auto wait_type = load<std::uint8_t>(payload, offsetof(Record, wait_type));
            if (!waiter || !wait_type)
                return;
            task.wait_infos.push_back(
                {.waiter = *waiter,
                 .owner = load<std::uint64_t>(payload, offsetof(Record, owner)).value_or(0),
                 .context = load<std::uint64_t>(payload, offsetof(Record, context)).value_or(0),
                 .wait_type = *wait_type,
                 .portlabel_id =
                     load<std::int16_t>(payload, offsetof(Record, portlabel_id)).value_or(0),
                 .wait_flags =
                     load<std::uint32_t>(payload, offsetof(Record, wait_flags)).value_or(0)});
        } else if (type == kcdata::STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO) {
            using Record = kcdata::stackshot_thread_turnstileinfo_v2;
            const auto waiter = load<std::uint64_t>(payload, offsetof(Record, waiter));
            const auto context = load<std::uint64_t>(payload, offsetof(Record, turnstile_context));
            const auto flags = load<std::uint64_t>(payload, offsetof(Record, turnstile_flags));
            if (!waiter || !context || !flags)
                return;
            task.turnstile_infos.push_back(
                {.waiter = *waiter,
                 .turnstile_context = *context,
                 .turnstile_priority =
                     load<std::uint8_t>(payload, offsetof(Record, turnstile_priority)).value_or(0),
                 .number_of_hops =
                     load<std::uint8_t>(payload, offsetof(Record, number_of_hops)).value_or(0),
                 .turnstile_flags = *flags,
                 .portlabel_id =
                     load<std::int16_t>(payload, offsetof(Record, portlabel_id)).value_or(0)});
        } else if (type == kcdata::KCDATA_TYPE_LIBRARY_LOADINFO) {
            if (const auto info = load_info<std::uint32_t>(payload))
                task.images.push_back(*info);
        } else if (type == kcdata::KCDATA_TYPE_LIBRARY_LOADINFO64) {
            if (const auto info = load_info<std::uint64_t>(payload))
                task.images.push_back(*info);
        } else if (type == kcdata::STACKSHOT_KCTYPE_LOADINFO64_TEXT_EXEC) {
            if (const auto info = load_info<std::uint64_t>(payload))
                task.text_exec_images.push_back(*info);
        } else if (type == kcdata::STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT) {
            using Record = kcdata::thread_delta_snapshot_v3;
            const auto id = load<std::uint64_t>(payload, offsetof(Record, tds_thread_id));
            if (!id)
                return;
            ThreadSnapshot& thread = task.unchanged_threads.emplace_back();
            thread.id = *id;
            thread.ss_flags = load<std::uint64_t>(payload, offsetof(Record, tds_ss_flags));
            thread.last_made_runnable_time =
                load<std::uint64_t>(payload, offsetof(Record, tds_last_made_runnable_time));
            thread.state = load<std::uint32_t>(payload, offsetof(Record, tds_state));
            thread.base_priority = load<std::int16_t>(payload, offsetof(Record, tds_base_priority));
            thread.sched_priority =
                load<std::int16_t>(payload, offsetof(Record, tds_sched_priority));
        }
    }

    void take_port_label_item(const Item& item) {
        PortLabel& label = snapshot_.tasks.back().port_labels.back();
        if (item.type == kcdata::STACKSHOT_KCTYPE_PORTLABEL_NAME) {
            label.name = text(item.payload);
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_PORTLABEL) {
            using Record = kcdata::portlabel_info;
            label.flags =
                load<std::uint16_t>(item.payload, offsetof(Record, portlabel_flags)).value_or(0);
            label.domain =
                load<std::uint8_t>(item.payload, offsetof(Record, portlabel_domain)).value_or(0);
        }
    }

    void take_thread_item(const Item& item) {
        ThreadSnapshot& thread = snapshot_.tasks.back().threads.back();
        const Payload payload = item.payload;
        if (item.kind == ItemKind::array) {
            take_stack(thread, item);
            return;
        }
        if (item.type == kcdata::STACKSHOT_KCTYPE_THREAD_SNAPSHOT) {
            using Record = kcdata::thread_snapshot_v4;
            thread.wait_event = load<std::uint64_t>(payload, offsetof(Record, ths_wait_event));
            thread.continuation = load<std::uint64_t>(payload, offsetof(Record, ths_continuation));
            thread.effective_qos = load<std::uint8_t>(payload, offsetof(Record, ths_eqos));
            thread.requested_qos = load<std::uint8_t>(payload, offsetof(Record, ths_rqos));
            thread.user_time = load<std::uint64_t>(payload, offsetof(Record, ths_user_time));
            thread.system_time = load<std::uint64_t>(payload, offsetof(Record, ths_sys_time));
            thread.ss_flags = load<std::uint64_t>(payload, offsetof(Record, ths_ss_flags));
            thread.last_run_time =
                load<std::uint64_t>(payload, offsetof(Record, ths_last_run_time));
            thread.last_made_runnable_time =
                load<std::uint64_t>(payload, offsetof(Record, ths_last_made_runnable_time));
            thread.state = load<std::uint32_t>(payload, offsetof(Record, ths_state));
            thread.base_priority = load<std::int16_t>(payload, offsetof(Record, ths_base_priority));
            thread.sched_priority =
                load<std::int16_t>(payload, offsetof(Record, ths_sched_priority));
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_THREAD_NAME) {
            thread.name = text(payload);
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_CPU_TIMES) {
            using Record = kcdata::stackshot_cpu_times_v2;
            thread.user_usec = load<std::uint64_t>(payload, offsetof(Record, user_usec));
            thread.system_usec = load<std::uint64_t>(payload, offsetof(Record, system_usec));
            thread.runnable_usec = load<std::uint64_t>(payload, offsetof(Record, runnable_usec));
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_THREAD_DISPATCH_QUEUE_LABEL) {
            thread.dispatch_queue_label = text(payload);
        } else if (item.type == kcdata::STACKSHOT_KCTYPE_LATENCY_INFO_THREAD) {
            thread.latency = load_record<kcdata::stackshot_latency_thread>(payload);
        } else if (const auto cpu = described(item, "last_processor")) {
            thread.last_processor = static_cast<std::uint32_t>(*cpu);
        } else if (const auto absent = described(item, "on_absent_cpu")) {
            thread.on_absent_cpu = *absent != 0;
        }
    }

    static void take_stack(ThreadSnapshot& thread, const Item& item) {
        switch (item.element_type) {
            case kcdata::STACKSHOT_KCTYPE_KERN_STACKLR:
            case kcdata::STACKSHOT_KCTYPE_KERN_STACKFRAME:
                return append_stack<std::uint32_t>(thread.kernel_stack, item);
            case kcdata::STACKSHOT_KCTYPE_KERN_STACKLR64:
            case kcdata::STACKSHOT_KCTYPE_KERN_STACKFRAME64:
                return append_stack<std::uint64_t>(thread.kernel_stack, item);
            case kcdata::STACKSHOT_KCTYPE_USER_STACKLR:
            case kcdata::STACKSHOT_KCTYPE_USER_STACKFRAME:
                return append_stack<std::uint32_t>(thread.user_stack, item);
            case kcdata::STACKSHOT_KCTYPE_USER_STACKLR64:
            case kcdata::STACKSHOT_KCTYPE_USER_STACKFRAME64:
                return append_stack<std::uint64_t>(thread.user_stack, item);
            default:
                return;
        }
    }

    /// The return addresses that the elements begin with.
    template <typename Address>
    static void append_stack(std::optional<std::vector<std::uint64_t>>& stack, const Item& item) {
        if (!stack)
            stack.emplace();
        for (std::size_t i = 0; i < item.element_count; ++i)
            if (const auto lr = load<Address>(item.payload, i * item.element_size))
                stack->push_back(*lr);
    }

    Snapshot snapshot_{};
    std::uint64_t shared_cache_slide_ = 0;
    std::vector<Place> places_{};
};

}  // namespace

std::optional<double> Snapshot::nanoseconds(std::optional<std::uint64_t> time) const {
    if (!time || !timebase)
        return std::nullopt;
    return static_cast<double>(*time) * timebase->numer / timebase->denom;
}

Snapshot read_snapshot(std::span<const std::byte> buffer) {
    return SnapshotReader().run(buffer);
}

}  // namespace tools
