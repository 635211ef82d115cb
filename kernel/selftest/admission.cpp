#include <cstdint>
#include <span>

#include "kcdata/reader.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kernel/console.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/stackshot_config.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/task.hpp"
#include "kernel/vm_map.hpp"
#include "stackshot/bsd.hpp"
#include "stackshot/subsystem.hpp"

// Every check a request goes through, made by a task and by the kernel; then retention and the boot
// profile. Memory is the same afterwards.
namespace kernel::selftest {
namespace {

using namespace kcdata;
using namespace stackshot;

constexpr std::uint64_t format = STACKSHOT_KCDATA_FORMAT;
constexpr std::uint64_t save = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_IN_KERNEL_BUFFER;

/// How a request differs from a sound one, besides its flags.
struct Variation {
    bool buffer_address = true;
    bool size_address = true;
    std::uint64_t delta_timestamp = 0;
    std::uint32_t version = STACKSHOT_CONFIG_TYPE;
    std::size_t size = sizeof(stackshot_config);
    AdmissionPolicy policy{};
};
/// A request that one check refuses.
struct Row {
    const char* check;
    Origin origin;
    std::uint64_t flags;
    kern_return wanted;
    Variation with{};
};
constexpr AdmissionPolicy overridden{.feature_override = true};
constexpr AdmissionPolicy release{.development = false};
constexpr Row rows[] = {
    {"2: feature override", Origin::user, format, KERN_NOT_SUPPORTED, {.policy = overridden}},
    {"2: feature override, kernel",
     Origin::kernel,
     save,
     KERN_NOT_SUPPORTED,
     {.policy = overridden}},
    {"3: version 0", Origin::user, format, KERN_NOT_SUPPORTED, {.version = 0}},
    {"3: version 2", Origin::kernel, save, KERN_NOT_SUPPORTED, {.version = 2}},
    {"4: size 63", Origin::user, format, KERN_INVALID_ARGUMENT, {.size = 63}},
    {"4: size 63, kernel", Origin::kernel, save, KERN_INVALID_ARGUMENT, {.size = 63}},
    {"6: TRYLOCK", Origin::user, format | STACKSHOT_TRYLOCK, KERN_NO_ACCESS},
    {"6: SAVE_IN_KERNEL_BUFFER", Origin::user, save, KERN_NO_ACCESS},
    {"6: FROM_PANIC", Origin::user, format | STACKSHOT_FROM_PANIC, KERN_NO_ACCESS},
    {"7: DO_COMPRESS",
     Origin::user,
     format | STACKSHOT_DO_COMPRESS,
     KERN_NO_ACCESS,
     {.policy = release}},
    {"8: not saved", Origin::kernel, format, KERN_NOT_SUPPORTED},
    {"9: no format", Origin::user, 0, KERN_NOT_SUPPORTED},
    {"9: no format, saved", Origin::kernel, STACKSHOT_SAVE_IN_KERNEL_BUFFER, KERN_NOT_SUPPORTED},
    {"10: compressed delta", Origin::user,
     format | STACKSHOT_DO_COMPRESS | STACKSHOT_COLLECT_DELTA_SNAPSHOT, KERN_NOT_SUPPORTED},
    {"10: compressed page tables", Origin::user,
     format | STACKSHOT_DO_COMPRESS | STACKSHOT_PAGE_TABLES, KERN_NOT_SUPPORTED},
    {"11: no buffer address",
     Origin::user,
     format,
     KERN_INVALID_ARGUMENT,
     {.buffer_address = false}},
    {"11: no size address", Origin::user, format, KERN_INVALID_ARGUMENT, {.size_address = false}},
    {"12: timestamp", Origin::user, format, KERN_INVALID_ARGUMENT, {.delta_timestamp = 1}},
    {"13: exclaves", Origin::user, format | STACKSHOT_EXCLAVES | STACKSHOT_SKIP_EXCLAVES,
     KERN_INVALID_ARGUMENT},
    {"15: nothing kept", Origin::user, STACKSHOT_RETRIEVE_EXISTING_BUFFER, KERN_NOT_IN_SET},
    {"16: no boot profile", Origin::user, format | STACKSHOT_GET_BOOT_PROFILE, KERN_NOT_IN_SET},
};

/// The map of the task that asks, and its memory.
class Caller {
  public:
    explicit Caller(Verdict& verdict) : verdict_(verdict) {
        const auto allocated = map.allocate(page_size);
        if (allocated.ok())
            config_address = allocated.value();
        else
            verdict.fail("no memory for the caller");
    }

    std::uint64_t buffer_cell() const { return config_address + 1024; }
    std::uint64_t size_cell() const { return config_address + 2048; }
    template <typename T>
    void put(std::uint64_t address, const T& value) {
        if (map.copy_out(std::as_bytes(std::span(&value, 1)), address) != KERN_SUCCESS)
            verdict_.fail("the caller cannot write its memory");
    }
    template <typename T>
    T get(std::uint64_t address) {
        T value{};
        if (map.copy_in(address, std::as_writable_bytes(std::span(&value, 1))) != KERN_SUCCESS)
            verdict_.fail("the caller cannot read its memory");
        return value;
    }
    stackshot_config config(std::uint64_t flags) const {
        stackshot_config config{};
        config.sc_pid = -1;
        config.sc_flags = flags;
        config.sc_out_buffer_addr = buffer_cell();
        config.sc_out_size_addr = size_cell();
        return config;
    }
    bsd_errno call(Subsystem& subsystem, const Credential& credential, std::uint64_t flags) {
        put(config_address, config(flags));
        return stackshot::stack_snapshot_with_config(subsystem, {credential, map},
                                                     STACKSHOT_CONFIG_TYPE, config_address,
                                                     sizeof(stackshot_config));
    }
    /// Looks at what was published, and lets it go.
    void consume(const char* what) {
        const auto address = get<std::uint64_t>(buffer_cell());
        const auto bytes = map.view(address, get<std::uint32_t>(size_cell()));
        Reader reader(bytes);
        std::size_t items = 0;
        for (Item item; reader.next(item);)
            items++;
        if (reader.error() != ReadError::none || items < 10)
            verdict_.fail("%s: not a capture: %s", what, read_error_text(reader.error()));
        if (map.deallocate(address) != KERN_SUCCESS)
            verdict_.fail("%s: it is not the caller's", what);
    }

    VmMap map{};
    std::uint64_t config_address = 0;

  private:
    Verdict& verdict_;
};

constexpr Credential root{0, entitlement_stackshot};

void check_row(Verdict& verdict, Caller& caller, const Row& row) {
    Subsystem subsystem(stackshot_system(), row.with.policy);
    stackshot_config config = caller.config(row.flags);
    config.sc_delta_timestamp = row.with.delta_timestamp;
    if (!row.with.buffer_address)
        config.sc_out_buffer_addr = 0;
    if (!row.with.size_address)
        config.sc_out_size_addr = 0;
    VmMap* const map = row.origin == Origin::user ? &caller.map : nullptr;
    const auto bytes = std::as_bytes(std::span(&config, 1)).first(row.with.size);
    if (const auto got = subsystem.snapshot(map, row.with.version, bytes); got != row.wanted)
        verdict.fail("check %s: %s, not %s", row.check, kern_return_name(got),
                     kern_return_name(row.wanted));
    if (map == nullptr)
        return;
    caller.put(caller.config_address, config);
    const bsd_errno got = stackshot::stack_snapshot_with_config(
        subsystem, {root, caller.map}, row.with.version, caller.config_address, row.with.size);
    if (got != bsd_error(row.wanted))
        verdict.fail("check %s: %s, not %s", row.check, bsd_errno_name(got),
                     bsd_errno_name(bsd_error(row.wanted)));
    if (subsystem.statistics().count != 0)
        verdict.fail("check %s: a capture was taken", row.check);
}

void check_call(Verdict& verdict, const char* what, bsd_errno got, bsd_errno wanted) {
    if (got != wanted)
        verdict.fail("%s: %s, not %s", what, bsd_errno_name(got), bsd_errno_name(wanted));
}

void check_caller(Verdict& verdict, Caller& caller) {
    AdmissionPolicy policy;
    policy.entitlement = EntitlementPolicy::refuse;
    Subsystem refusing(stackshot_system(), policy);
    check_call(verdict, "not the superuser",
               caller.call(refusing, {501, entitlement_stackshot}, format), BSD_EPERM);
    check_call(verdict, "not entitled", caller.call(refusing, {0, 0}, format), BSD_EPERM);
    Subsystem reporting(stackshot_system(), {});
    check_call(verdict, "reported", caller.call(reporting, {0, 0}, format), BSD_SUCCESS);
    caller.consume("reported");
    check_call(
        verdict, "check 1: no config",
        stackshot::stack_snapshot_with_config(refusing, {root, caller.map}, STACKSHOT_CONFIG_TYPE,
                                              0, sizeof(stackshot_config)),
        BSD_EINVAL);
    check_call(
        verdict, "a config that cannot be read",
        stackshot::stack_snapshot_with_config(refusing, {root, caller.map}, STACKSHOT_CONFIG_TYPE,
                                              4096, sizeof(stackshot_config)),
        BSD_EFAULT);
    if (refusing.snapshot(nullptr, STACKSHOT_CONFIG_TYPE, {}) != KERN_INVALID_ARGUMENT)
        verdict.fail("check 1: no config, kernel");
    if (refusing.statistics().count != 0)
        verdict.fail("a refused request took a capture");
}

void check_retention(Verdict& verdict, Caller& caller) {
    Subsystem subsystem(stackshot_system(), {});
    const stackshot_config config = caller.config(save);
    const auto keep = [&] {
        return subsystem.snapshot(nullptr, STACKSHOT_CONFIG_TYPE,
                                  std::as_bytes(std::span(&config, 1)));
    };
    const auto retrieve = [&] {
        return caller.call(subsystem, root, STACKSHOT_RETRIEVE_EXISTING_BUFFER);
    };
    if (const kern_return error = keep(); error != KERN_SUCCESS)
        verdict.fail("keeping: %s", kern_return_name(error));
    if (const kern_return error = keep(); error != KERN_MEMORY_PRESENT)
        verdict.fail("check 14: keeping a second one: %s", kern_return_name(error));
    check_call(verdict, "retrieving", retrieve(), BSD_SUCCESS);
    caller.consume("retrieved");
    check_call(verdict, "check 15: retrieving again", retrieve(), BSD_ENOENT);

    if (const kern_return error = subsystem.keep_boot_profile({}); error != KERN_SUCCESS)
        verdict.fail("boot profile: %s", kern_return_name(error));
    for (int turn = 0; turn < 2; turn++) {
        check_call(verdict, "boot profile",
                   caller.call(subsystem, root, format | STACKSHOT_GET_BOOT_PROFILE), BSD_SUCCESS);
        caller.consume("boot profile");
    }
    SubsystemStatistics statistics;
    check_call(verdict, "statistics of nobody",
               stackshot_stats(subsystem, {501, 0}, false, statistics), BSD_EPERM);
    check_call(verdict, "statistics written", stackshot_stats(subsystem, root, true, statistics),
               BSD_EPERM);
    check_call(verdict, "statistics", stackshot_stats(subsystem, root, false, statistics),
               BSD_SUCCESS);
    if (statistics.count != 2 || statistics.last_start >= statistics.last_end ||
        statistics.duration == 0)
        verdict.fail("statistics: %lu traps, the last from %lu to %lu", statistics.count,
                     statistics.last_start, statistics.last_end);
}

/// Through the kernel's own subsystem, as tasks get to it.
void check_task(Verdict& verdict) {
    auto created = task_create("asker");
    if (!created.ok())
        return verdict.fail("no task");
    Task& task = *created.value();
    VmMap map;
    task.map = &map;
    {
        StackshotConfig config(task);
        stackshot_config wanted{};
        wanted.sc_pid = task.pid;
        wanted.sc_flags = format;
        check_call(verdict, "a task that is nobody's", config.capture(wanted), BSD_EPERM);
        task.credential = root;
        check_call(verdict, "a task of the superuser's", config.capture(wanted), BSD_SUCCESS);
        if (config.buffer().empty())
            verdict.fail("the task has no capture");
        check_call(verdict, "a second capture into the same configuration", config.capture(wanted),
                   BSD_EINVAL);
        config.release();
        wanted.sc_flags = 0;
        check_call(verdict, "a capture that fails", config.capture(wanted), BSD_ENOTSUP);
        if (!config.buffer().empty())
            verdict.fail("a capture that failed is held");
    }
    if (map.mappings() != 0)
        verdict.fail("%zu mappings are left", map.mappings());
    task_release(task);
}

void check_everything(Verdict& verdict) {
    Caller caller(verdict);
    for (const Row& row : rows)
        check_row(verdict, caller, row);
    check_caller(verdict, caller);
    check_retention(verdict, caller);
    check_task(verdict);
    if (caller.map.mappings() != 1)
        verdict.fail("%zu mappings are left", caller.map.mappings());
}

}  // namespace

void admission_test(Verdict& verdict) {
    // Once for the heap to get its pages.
    check_everything(verdict);
    const std::size_t free_pages = page_allocator().free_pages();
    check_everything(verdict);
    if (page_allocator().free_pages() != free_pages)
        verdict.fail("%zu pages are free, not %zu", page_allocator().free_pages(), free_pages);
    console::print("admission: %zu requests refused\n", std::size(rows));
}

}  // namespace kernel::selftest
