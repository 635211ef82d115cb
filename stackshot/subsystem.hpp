#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/result.hpp"
#include "stackshot/publication.hpp"
#include "stackshot/request.hpp"
#include "stackshot/stackshot.hpp"
#include "stackshot/system.hpp"

namespace stackshot {

/// The one entry for requests, from tasks and from the kernel, and what outlives a single one: the
/// lock that admits one ordinary request at a time, statistics, the retained capture and the boot
/// profile. Thread context, interrupts on; everything but the construction may block.
class Subsystem {
  public:
    Subsystem(System& system, const AdmissionPolicy& policy) : system_(system), policy_(policy) {}
    ~Subsystem();
    Subsystem(const Subsystem&) = delete;
    Subsystem& operator=(const Subsystem&) = delete;

    /// XNU's kern_stack_snapshot_internal: checks the request (see validate_request), then, under
    /// the lock, does what it asks for and publishes the result in `map`. `map` is the task's that
    /// makes the request; nullptr: the kernel makes it, and has to save the result.
    ///
    /// Without further flags it takes a capture. STACKSHOT_SAVE_IN_KERNEL_BUFFER retains it here,
    /// and STACKSHOT_RETRIEVE_EXISTING_BUFFER publishes what is retained and lets it go, but only
    /// once it was published. STACKSHOT_GET_BOOT_PROFILE publishes a copy of the boot profile.
    ///
    /// Errors: those of validate_request(), take_stackshot() and Publication::publish();
    /// KERN_MEMORY_PRESENT: a capture is retained already. KERN_NOT_IN_SET: none is, or there is no
    /// boot profile. KERN_FAILURE also: a task's request went well but published nothing.
    kcdata::kern_return snapshot(CallerMap* map, std::uint32_t version,
                                 std::span<const std::byte> config);

    /// XNU's stack_snapshot_from_kernel: takes a capture into `buffer`, which is no longer than the
    /// caller has, and returns its length; the rest of `buffer` is zeroed. One attempt, no flag
    /// combination is checked. STACKSHOT_TRYLOCK: KERN_LOCK_OWNED if another request is under way.
    /// KERN_INVALID_ARGUMENT: no buffer. KERN_INSUFFICIENT_BUFFER_SIZE: it is too small.
    kcdata::Result<std::size_t> snapshot_from_kernel(const Request& request,
                                                     std::span<std::byte> buffer);

    /// Takes the capture that STACKSHOT_GET_BOOT_PROFILE publishes. KERN_MEMORY_PRESENT: there is
    /// one. Otherwise the errors of take_stackshot().
    kcdata::kern_return keep_boot_profile(const Request& request);

    /// Both wait for the request under way.
    SubsystemStatistics statistics();
    /// Of the last capture that succeeded.
    Statistics last_capture();

    const AdmissionPolicy& policy() const { return policy_; }

  private:
    /// A finished capture in whole pages.
    struct Kept {
        std::span<std::byte> pages{};
        std::size_t size = 0;

        bool empty() const { return pages.empty(); }
    };

    kcdata::kern_return perform(const Request& request, Publication& publication);
    kcdata::Result<Kept> take(const Request& request);
    kcdata::kern_return publish_boot_profile(Publication& publication);

    System& system_;
    const AdmissionPolicy policy_;

    // Guarded by the lock.
    SubsystemStatistics statistics_{};
    Statistics last_capture_{};
    Kept retained_{};  ///< XNU's kernel_stackshot_buf
    Kept boot_profile_{};
};

/// XNU's final guard: what a request ended with, given the error it came to. A task's request that
/// nothing was published for is not a success.
kcdata::kern_return conclude_request(kcdata::kern_return error, const Request& request,
                                     const Publication& publication);

}  // namespace stackshot
