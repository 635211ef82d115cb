#include "stackshot/subsystem.hpp"

#include <cstring>

namespace stackshot {

using namespace kcdata;

namespace {

/// Holds the lock that serializes ordinary requests.
class SubsystemLock {
  public:
    enum class Wait : bool { no, yes };

    explicit SubsystemLock(System& system, Wait wait = Wait::yes) : system_(system) {
        if (wait == Wait::yes)
            system_.lock();
        held_ = wait == Wait::yes || system_.try_lock();
    }
    ~SubsystemLock() {
        if (held_)
            system_.unlock();
    }
    SubsystemLock(const SubsystemLock&) = delete;
    SubsystemLock& operator=(const SubsystemLock&) = delete;

    bool held() const { return held_; }

  private:
    System& system_;
    bool held_ = false;
};

}  // namespace

kern_return conclude_request(kern_return error, const Request& request,
                             const Publication& publication) {
    if (error == KERN_SUCCESS && !request.has(STACKSHOT_SAVE_IN_KERNEL_BUFFER) &&
        !publication.done())
        return KERN_FAILURE;
    return error;
}

Subsystem::~Subsystem() {
    for (Kept* kept : {&retained_, &boot_profile_}) {
        if (!kept->empty())
            system_.free(kept->pages);
    }
}

kern_return Subsystem::snapshot(CallerMap* map, std::uint32_t version,
                                std::span<const std::byte> config) {
    const auto request =
        validate_request(map != nullptr ? Origin::user : Origin::kernel, policy_, version, config);
    if (!request.ok())
        return request.error();
    Publication publication(map, request.value().out_buffer_address,
                            request.value().out_size_address);
    const SubsystemLock lock(system_);
    const kern_return error = perform(request.value(), publication);
    return conclude_request(error, request.value(), publication);
}

kern_return Subsystem::perform(const Request& request, Publication& publication) {
    const bool save = request.has(STACKSHOT_SAVE_IN_KERNEL_BUFFER);
    if (save && !retained_.empty())
        return KERN_MEMORY_PRESENT;
    if (!save && request.has(STACKSHOT_RETRIEVE_EXISTING_BUFFER)) {
        if (retained_.empty())
            return KERN_NOT_IN_SET;
        const kern_return error = publication.publish(retained_.pages, retained_.size);
        if (error == KERN_SUCCESS)
            retained_ = {};
        return error;
    }
    if (request.has(STACKSHOT_GET_BOOT_PROFILE))
        return publish_boot_profile(publication);

    auto taken = take(request);
    if (!taken.ok())
        return taken.error();
    if (save) {
        retained_ = taken.value();
        return KERN_SUCCESS;
    }
    const kern_return error = publication.publish(taken->pages, taken->size);
    if (error != KERN_SUCCESS)
        system_.free(taken->pages);
    return error;
}

Result<Subsystem::Kept> Subsystem::take(const Request& request) {
    auto taken = take_stackshot(system_, request, &statistics_);
    if (!taken.ok())
        return taken.error();
    last_capture_ = taken->statistics;
    return Kept{taken->buffer, taken->size};
}

kern_return Subsystem::publish_boot_profile(Publication& publication) {
    if (boot_profile_.empty())
        return KERN_NOT_IN_SET;
    // A copy: what is published belongs to the caller, and the next one asks for the same.
    const auto copy = system_.allocate(boot_profile_.pages.size());
    if (copy.empty())
        return KERN_RESOURCE_SHORTAGE;
    std::memcpy(copy.data(), boot_profile_.pages.data(), boot_profile_.pages.size());
    const kern_return error = publication.publish(copy, boot_profile_.size);
    if (error != KERN_SUCCESS)
        system_.free(copy);
    return error;
}

Result<std::size_t> Subsystem::snapshot_from_kernel(const Request& request,
                                                    std::span<std::byte> buffer) {
    if (buffer.empty())
        return KERN_INVALID_ARGUMENT;
    const SubsystemLock lock(system_, request.has(STACKSHOT_TRYLOCK) ? SubsystemLock::Wait::no
                                                                     : SubsystemLock::Wait::yes);
    if (!lock.held())
        return KERN_LOCK_OWNED;
    auto taken = try_stackshot(system_, request, buffer.size(), &statistics_);
    if (!taken.ok())
        return taken.error();
    last_capture_ = taken->statistics;
    const std::size_t size = taken->size;
    const bool fits = size <= buffer.size();
    if (fits) {
        std::memcpy(buffer.data(), taken->buffer.data(), size);
        std::memset(buffer.data() + size, 0, buffer.size() - size);
    }
    system_.free(taken->buffer);
    if (!fits)
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    return size;
}

kern_return Subsystem::keep_boot_profile(const Request& request) {
    const SubsystemLock lock(system_);
    if (!boot_profile_.empty())
        return KERN_MEMORY_PRESENT;
    auto taken = take(request);
    if (!taken.ok())
        return taken.error();
    boot_profile_ = taken.value();
    return KERN_SUCCESS;
}

SubsystemStatistics Subsystem::statistics() {
    const SubsystemLock lock(system_);
    return statistics_;
}

Statistics Subsystem::last_capture() {
    const SubsystemLock lock(system_);
    return last_capture_;
}

}  // namespace stackshot
