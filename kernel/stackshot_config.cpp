#include "kernel/stackshot_config.hpp"

#include "kernel/panic.hpp"
#include "kernel/stackshot_call.hpp"
#include "kernel/task.hpp"
#include "kernel/vm_map.hpp"

namespace kernel {

using namespace kcdata;
using namespace stackshot;

StackshotConfig::~StackshotConfig() {
    release();
    if (memory_ != 0)
        CHECK(task_.map->deallocate(memory_) == KERN_SUCCESS);
}

bsd_errno StackshotConfig::capture(const stackshot_config& wanted) {
    if (buffer_ != 0)
        return BSD_EINVAL;
    VmMap& map = *task_.map;
    if (memory_ == 0) {
        const auto allocated = map.allocate(sizeof(Memory));
        if (!allocated.ok())
            return BSD_ENOMEM;
        memory_ = allocated.value();
    }
    Memory memory{};
    memory.config = wanted;
    memory.config.sc_out_buffer_addr = memory_ + offsetof(Memory, buffer);
    memory.config.sc_out_size_addr = memory_ + offsetof(Memory, size);
    if (map.copy_out(std::as_bytes(std::span(&memory, 1)), memory_) != KERN_SUCCESS)
        return BSD_EFAULT;
    const bsd_errno error = stack_snapshot_with_config(
        task_, STACKSHOT_CONFIG_TYPE, memory_ + offsetof(Memory, config), sizeof(memory.config));
    if (error != BSD_SUCCESS)
        return error;
    if (map.copy_in(memory_, std::as_writable_bytes(std::span(&memory, 1))) != KERN_SUCCESS)
        return BSD_EFAULT;
    buffer_ = memory.buffer;
    size_ = memory.size;
    return BSD_SUCCESS;
}

std::span<const std::byte> StackshotConfig::buffer() const {
    return buffer_ != 0 ? task_.map->view(buffer_, size_) : std::span<const std::byte>{};
}

void StackshotConfig::release() {
    if (buffer_ != 0)
        CHECK(task_.map->deallocate(buffer_) == KERN_SUCCESS);
    buffer_ = 0;
    size_ = 0;
}

}  // namespace kernel
