#include "kernel/command_executor.hpp"

#include <utility>

#include "kcdata/stackshot_flags.hpp"
#include "kernel/console.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/pl011_driver.hpp"
#include "kernel/shutdown.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/status_text.hpp"
#include "kernel/task.hpp"
#include "kernel/trace.hpp"
#include "kernel/workload/workload.hpp"

namespace kernel {

using namespace kcdata;
using namespace kcdata::serial;
using namespace stackshot;

namespace {

/// What stands behind an error of the system call: the inverse of stackshot::bsd_error(), as far as
/// that tells.
kern_return kern_return_of(bsd_errno error) {
    switch (error) {
        case BSD_SUCCESS:
            return KERN_SUCCESS;
        case BSD_EPERM:
            return KERN_NO_ACCESS;
        case BSD_ENOENT:
            return KERN_NOT_IN_SET;
        case BSD_EINTR:
            return KERN_ABORTED;
        case BSD_ENOMEM:
            return KERN_RESOURCE_SHORTAGE;
        case BSD_EFAULT:
            return KERN_INVALID_ADDRESS;
        case BSD_EBUSY:
            return KERN_FAILURE;
        case BSD_EEXIST:
            return KERN_MEMORY_PRESENT;
        case BSD_EINVAL:
            return KERN_INVALID_ARGUMENT;
        case BSD_ENOSPC:
            return KERN_INSUFFICIENT_BUFFER_SIZE;
        case BSD_ENOTSUP:
            return KERN_NOT_SUPPORTED;
        case BSD_ETIMEDOUT:
            return KERN_OPERATION_TIMED_OUT;
    }
    return KERN_FAILURE;
}

}  // namespace

CommandExecutor::Held::Held() : config(kernel_task()) {}

std::span<const std::byte> CommandExecutor::Held::bytes() const {
    return compressed.pages.empty()
               ? config.buffer()
               : std::span<const std::byte>(compressed.pages).first(compressed.size);
}

void CommandExecutor::Held::release() {
    config.release();
    if (!compressed.pages.empty())
        page_allocator().free(compressed.pages);
    compressed = {};
    description = {};
}

kern_return CommandExecutor::Held::compress() {
    const auto result = compress_capture(config.buffer());
    if (!result.ok())
        return result.error();
    compressed = result.value();
    config.release();
    description = describe_object(bytes(), ObjectKind::capture, description.time);
    return KERN_SUCCESS;
}

bsd_errno CommandExecutor::Held::take(const stackshot_config& wanted) {
    release();
    const bsd_errno error = config.capture(wanted);
    if (error != BSD_SUCCESS)
        return error;
    const bool taken_now = (wanted.sc_flags & STACKSHOT_RETRIEVE_EXISTING_BUFFER) == 0;
    description = describe_object(config.buffer(), ObjectKind::capture,
                                  taken_now ? stackshot_subsystem().statistics().last_start : 0);
    return BSD_SUCCESS;
}

Result<ObjectDescription> CommandExecutor::hold(std::size_t& place,
                                                const stackshot_config& wanted) {
    bsd_errno error = held_[spare_].take(wanted);
    if (error == BSD_ENOMEM && held_[place].description.size != 0) {
        held_[place].release();
        error = held_[spare_].take(wanted);
    }
    if (error != BSD_SUCCESS)
        return kern_return_of(error);
    held_[place].release();
    std::swap(place, spare_);
    return held_[place].description;
}

Result<ObjectDescription> CommandExecutor::take_stackshot(const StackshotRequest& request) {
    stackshot_config wanted{};
    wanted.sc_pid = request.pid;
    wanted.sc_flags = request.flags;
    wanted.sc_delta_timestamp = request.delta_timestamp;
    wanted.sc_pagetable_mask = request.pagetable_mask;
    wanted.sc_size = request.size_hint;
    if ((request.flags & STACKSHOT_SAVE_IN_KERNEL_BUFFER) == 0) {
        constexpr std::uint64_t never_compressed =
            STACKSHOT_COLLECT_DELTA_SNAPSHOT | STACKSHOT_PAGE_TABLES;
        if ((request.flags & STACKSHOT_DO_COMPRESS) == 0 || (request.flags & never_compressed) == 0)
            return hold(taken_, wanted);
        wanted.sc_flags &= ~STACKSHOT_DO_COMPRESS;
        const auto plain = hold(taken_, wanted);
        if (!plain.ok())
            return plain;
        // Without memory for that it stays as it is: better long than lost.
        (void)held_[taken_].compress();
        return held_[taken_].description;
    }
    // Only the kernel itself may ask for that, and it is given nothing.
    const kern_return error = stackshot_subsystem().snapshot(nullptr, STACKSHOT_CONFIG_TYPE,
                                                             std::as_bytes(std::span(&wanted, 1)));
    if (error != KERN_SUCCESS)
        return error;
    return ObjectDescription{};
}

Result<ObjectDescription> CommandExecutor::retrieve_retained() {
    stackshot_config wanted{};
    wanted.sc_pid = -1;
    wanted.sc_flags = STACKSHOT_KCDATA_FORMAT | STACKSHOT_RETRIEVE_EXISTING_BUFFER;
    return hold(retrieved_, wanted);
}

std::size_t CommandExecutor::list_captures(std::span<ObjectDescription, max_listed> list) {
    std::size_t count = 0;
    for (const std::size_t place : {taken_, retrieved_})
        if (held_[place].description.size != 0)
            list[count++] = held_[place].description;
    return count;
}

kern_return CommandExecutor::release(std::uint32_t name) {
    for (Held& held : held_) {
        if (held.holds(name)) {
            held.release();
            return KERN_SUCCESS;
        }
    }
    if (text_description_.size == 0 || text_description_.name != name)
        return KERN_NOT_IN_SET;
    text_.clear();
    text_description_ = {};
    return KERN_SUCCESS;
}

Result<ObjectDescription> CommandExecutor::write_text(Operation operation) {
    text_.clear();
    text_description_ = {};
    if (operation == Operation::tasks)
        write_tasks(text_);
    else if (operation == Operation::statistics)
        write_statistics(text_);
    else if (operation == Operation::trace)
        write_trace(text_);
    else
        return KERN_NOT_SUPPORTED;
    if (!text_.complete()) {
        text_.clear();
        return KERN_RESOURCE_SHORTAGE;
    }
    // There is no object without bytes.
    if (text_.bytes().empty())
        text_.put("\n", 1);
    text_description_ = describe_object(text_.bytes(), ObjectKind::text, machine::absolute_time());
    return text_description_;
}

kern_return CommandExecutor::run_workload(std::string_view name_and_arguments) {
    return kernel::run_workload(name_and_arguments);
}

kern_return CommandExecutor::stop_workload(std::string_view name) {
    return kernel::stop_workload(name);
}

kern_return CommandExecutor::check_baud_rate(std::uint32_t baud_rate) {
    return pl011_driver::supports_baud(baud_rate) ? KERN_SUCCESS : KERN_NOT_SUPPORTED;
}

void CommandExecutor::set_baud_rate(std::uint32_t baud_rate) {
    console::set_baud(baud_rate);
}

void CommandExecutor::reboot() {
    kernel::reboot();
}

void CommandExecutor::power_off() {
    shut_down();
}

std::span<const std::byte> CommandExecutor::object(std::uint32_t name, ObjectKind& kind) {
    for (const Held& held : held_) {
        if (held.holds(name)) {
            kind = ObjectKind::capture;
            return held.bytes();
        }
    }
    if (text_description_.size == 0 || text_description_.name != name)
        return {};
    kind = ObjectKind::text;
    return text_.bytes();
}

}  // namespace kernel
