#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kcdata/format.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/stackshot_flags.hpp"
#include "kernel/console.hpp"
#include "kernel/page_allocator.hpp"
#include "kernel/selftest/forwarding_system.hpp"
#include "kernel/selftest/selftest.hpp"
#include "kernel/sleep.hpp"
#include "kernel/stackshot_system.hpp"
#include "kernel/vm_map.hpp"
#include "stackshot/subsystem.hpp"

// Everything a request needs fails once: the n-th allocation, the n-th read of the stopped system,
// the mapping and the n-th copy-out, for each n there is. The request ends with the right error,
// nothing is lost, and the next one goes well.
namespace kernel::selftest {
namespace {

using namespace kcdata;
using namespace stackshot;

/// Counts down to the one that fails.
class Countdown {
  public:
    /// The n-th from now on fails, counted from 1; 0: none does.
    void set(std::size_t n) { left_.store(n, std::memory_order_relaxed); }
    /// Any CPU.
    bool fails() {
        std::size_t left = left_.load(std::memory_order_relaxed);
        while (left != 0 &&
               !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
        }
        return left == 1;
    }
    /// Whether there were fewer.
    bool armed() const { return left_.load(std::memory_order_relaxed) != 0; }

  private:
    std::atomic<std::size_t> left_{0};
};

/// The kernel, with failures.
class FailingSystem final : public ForwardingSystem {
  public:
    FailingSystem() : facts_(real().facts()) {}

    SystemFacts& changeable_facts() { return facts_; }
    std::size_t live_bytes() const { return live_bytes_; }
    /// Scratch memory prepared and not released.
    int scratch() const { return scratch_; }
    std::size_t peak_bytes() const { return peak_bytes_; }
    void forget_peak() { peak_bytes_ = live_bytes_; }
    /// So many bytes are somebody else's now.
    void hand_over(std::size_t size) { live_bytes_ -= size; }

    Countdown allocations{};
    Countdown reads{};  ///< of tasks and threads: a capture cannot go on without
    Countdown words{};  ///< of stacks: a capture goes on without

    const SystemFacts& facts() const override { return facts_; }
    std::span<std::byte> allocate(std::size_t size) override {
        if (allocations.fails())
            return {};
        const auto memory = real().allocate(size);
        live_bytes_ += memory.size();
        peak_bytes_ = std::max(peak_bytes_, live_bytes_);
        return memory;
    }
    void free(std::span<std::byte> memory) override {
        live_bytes_ -= memory.size();
        real().free(memory);
    }
    kern_return prepare_scratch() override {
        if (allocations.fails())
            return KERN_RESOURCE_SHORTAGE;
        const kern_return error = real().prepare_scratch();
        if (error == KERN_SUCCESS)
            scratch_++;
        return error;
    }
    void release_scratch() override {
        scratch_--;
        real().release_scratch();
    }
    Result<TaskRef> next_task(Quiesced& quiesced, TaskRef previous) override {
        if (reads.fails())
            return KERN_FAILURE;
        return real().next_task(quiesced, previous);
    }
    Result<ThreadRef> skip_threads(Quiesced& quiesced, TaskRef task, ThreadRef previous,
                                   std::size_t count) override {
        if (reads.fails())
            return KERN_FAILURE;
        return real().skip_threads(quiesced, task, previous, count);
    }
    Result<std::size_t> task_thread_count(Quiesced& quiesced, TaskRef task) override {
        if (reads.fails())
            return KERN_FAILURE;
        return real().task_thread_count(quiesced, task);
    }
    kern_return task_facts(Quiesced& quiesced, TaskRef task, TaskFacts& facts) override {
        return reads.fails() ? KERN_FAILURE : real().task_facts(quiesced, task, facts);
    }
    kern_return thread_facts(Quiesced& quiesced, ThreadRef thread, ThreadFacts& facts) override {
        return reads.fails() ? KERN_FAILURE : real().thread_facts(quiesced, thread, facts);
    }
    bool read_words(Quiesced& quiesced, std::uint64_t address,
                    std::span<std::uint64_t> read) override {
        return !words.fails() && real().read_words(quiesced, address, read);
    }
    /// With the portable function, so that each read of a stack is one that may fail.
    Followed follow_frame_records(Quiesced& quiesced, FrameChain& chain,
                                  std::span<std::uint64_t> return_addresses) override {
        return stackshot::follow_frame_records(
            chain, return_addresses,
            [&](std::uint64_t address, std::uint64_t& first, std::uint64_t& second) {
                std::uint64_t pair[2];
                if (!read_words(quiesced, address, pair))
                    return false;
                first = pair[0];
                second = pair[1];
                return true;
            });
    }
    bool interrupted_registers(Quiesced& quiesced, std::uint64_t return_address,
                               std::uint64_t frame_pointer, Registers& registers) override {
        return !words.fails() &&
               real().interrupted_registers(quiesced, return_address, frame_pointer, registers);
    }

  private:
    SystemFacts facts_;
    int scratch_ = 0;
    std::size_t live_bytes_ = 0;
    std::size_t peak_bytes_ = 0;
};

/// A caller's map, with failures.
class FailingMap final : public CallerMap {
  public:
    explicit FailingMap(FailingSystem& system) : system_(system) {}

    Countdown maps{};
    Countdown copies_out{};
    VmMap real{};

    kern_return copy_in(std::uint64_t address, std::span<std::byte> to) override {
        return real.copy_in(address, to);
    }
    kern_return copy_out(std::span<const std::byte> from, std::uint64_t address) override {
        return copies_out.fails() ? KERN_INVALID_ADDRESS : real.copy_out(from, address);
    }
    Result<std::uint64_t> map(std::span<std::byte> pages) override {
        if (maps.fails())
            return KERN_NO_SPACE;
        size_ = pages.size();
        return real.map(pages);
    }
    void unmap(std::uint64_t address) override { real.unmap(address); }
    void adopt(std::uint64_t address) override {
        real.adopt(address);
        system_.hand_over(size_);
    }

  private:
    FailingSystem& system_;
    std::size_t size_ = 0;  ///< of what was mapped last
};

constexpr std::uint64_t format = STACKSHOT_KCDATA_FORMAT;
constexpr std::uint64_t save = STACKSHOT_KCDATA_FORMAT | STACKSHOT_SAVE_IN_KERNEL_BUFFER;
constexpr std::uint64_t retrieve = STACKSHOT_RETRIEVE_EXISTING_BUFFER;
constexpr std::uint64_t boot_profile = STACKSHOT_KCDATA_FORMAT | STACKSHOT_GET_BOOT_PROFILE;

/// A subsystem whose requests can be made to fail, and a caller.
class Bench {
  public:
    explicit Bench(Verdict& verdict) : verdict_(verdict) {
        const auto cells = map_.real.allocate(page_size);
        if (cells.ok())
            cells_ = cells.value();
        else
            verdict.fail("no memory for the caller");
    }

    /// A request of the task, or of the kernel if it is to be saved.
    kern_return ask(std::uint64_t flags) {
        stackshot_config config{};
        config.sc_pid = -1;
        config.sc_flags = flags;
        config.sc_out_buffer_addr = cells_;
        config.sc_out_size_addr = cells_ + sizeof(std::uint64_t);
        if ((flags & STACKSHOT_COLLECT_DELTA_SNAPSHOT) != 0)
            config.sc_delta_timestamp = stackshot_system().absolute_time();
        CallerMap* const map = (flags & STACKSHOT_SAVE_IN_KERNEL_BUFFER) != 0 ? nullptr : &map_;
        return subsystem_.snapshot(map, STACKSHOT_CONFIG_TYPE,
                                   std::as_bytes(std::span(&config, 1)));
    }
    /// Looks at what was published, and lets it go.
    void consume(const char* what) {
        std::uint64_t address = 0;
        std::uint32_t size = 0;
        if (map_.real.copy_in(cells_, std::as_writable_bytes(std::span(&address, 1))) !=
                KERN_SUCCESS ||
            map_.real.copy_in(cells_ + sizeof(address),
                              std::as_writable_bytes(std::span(&size, 1))) != KERN_SUCCESS)
            verdict_.fail("%s: the caller cannot read its memory", what);
        Reader reader(map_.real.view(address, size));
        std::size_t items = 0;
        bool compressed = false;
        for (Item item; !compressed && reader.next(item); items++)
            // Items behind it are for who decompresses.
            compressed = items == 0 && item.type == KCDATA_BUFFER_BEGIN_COMPRESSED;
        if (!compressed && (reader.error() != ReadError::none || items < 5))
            verdict_.fail("%s: not a capture: %zu items, %s", what, items,
                          read_error_text(reader.error()));
        if (map_.real.deallocate(address) != KERN_SUCCESS)
            verdict_.fail("%s: it is not the caller's", what);
    }
    void expect(const char* what, std::uint64_t flags, kern_return wanted) {
        if (const kern_return got = ask(flags); got != wanted)
            verdict_.fail("%s: %s, not %s", what, kern_return_name(got), kern_return_name(wanted));
        else if (got == KERN_SUCCESS && (flags & STACKSHOT_SAVE_IN_KERNEL_BUFFER) == 0)
            consume(what);
    }
    /// Notes what is in use, for check_unchanged().
    void note() {
        live_bytes_ = system_.live_bytes();
        free_pages_ = page_allocator().free_pages();
    }
    void check_unchanged(const char* what, std::size_t n) {
        if (system_.live_bytes() != live_bytes_)
            verdict_.fail("%s %zu: %zu bytes are allocated, not %zu", what, n, system_.live_bytes(),
                          live_bytes_);
        if (page_allocator().free_pages() != free_pages_)
            verdict_.fail("%s %zu: %zu pages are free, not %zu", what, n,
                          page_allocator().free_pages(), free_pages_);
        if (system_.scratch() != 0)
            verdict_.fail("%s %zu: scratch memory is not released", what, n);
        if (map_.real.mappings() != 1)
            verdict_.fail("%s %zu: the caller has %zu mappings", what, n, map_.real.mappings());
        if (!system_.try_lock())
            return verdict_.fail("%s %zu: the subsystem is locked", what, n);
        system_.unlock();
    }
    /// Lets the request fail in each way there is. The result is how many there are.
    std::size_t fail_each(const char* what, Countdown& countdown, std::uint64_t flags,
                          kern_return wanted) {
        note();
        std::size_t n = 1;
        for (; !verdict_.failed(); n++) {
            countdown.set(n);
            const kern_return got = ask(flags);
            const bool fewer = countdown.armed();
            countdown.set(0);
            if (const kern_return expected = fewer ? KERN_SUCCESS : wanted; got != expected)
                verdict_.fail("%s %zu: %s, not %s", what, n, kern_return_name(got),
                              kern_return_name(expected));
            if (got == KERN_SUCCESS)
                consume(what);
            if (fewer)
                break;
            check_unchanged(what, n);
        }
        return n - 1;
    }
    void fail_everything(const char* mode);
    void fail_publication();
    void check_limits();

    FailingSystem& system() { return system_; }

  private:
    Verdict& verdict_;
    FailingSystem system_{};
    FailingMap map_{system_};
    Subsystem subsystem_{system_, {}};
    std::uint64_t cells_ = 0;  ///< where address and length go
    std::size_t live_bytes_ = 0;
    std::size_t free_pages_ = 0;
};

void Bench::fail_everything(const char* mode) {
    const std::size_t allocations =
        fail_each("allocation", system_.allocations, format, KERN_RESOURCE_SHORTAGE);
    const std::size_t compressed =
        fail_each("allocation, compressed", system_.allocations, format | STACKSHOT_DO_COMPRESS,
                  KERN_RESOURCE_SHORTAGE);
    const std::size_t reads = fail_each("read", system_.reads, format, KERN_FAILURE);
    const std::size_t delta_reads = fail_each(
        "read, delta", system_.reads, format | STACKSHOT_COLLECT_DELTA_SNAPSHOT, KERN_FAILURE);
    // A stack that cannot be read to its end is marked, and no more than that.
    const std::size_t words = fail_each("word", system_.words, format, KERN_SUCCESS);
    // Each task is found and read, each thread is read, and the list is found to end.
    const std::size_t least_reads = 2 * system_.task_count() + system_.thread_count() + 1;
    if (!verdict_.failed() && (allocations < 2 || compressed < 4 || reads < least_reads ||
                               delta_reads < reads || words < 10))
        verdict_.fail("%s: %zu, %zu, %zu, %zu and %zu failures are too few", mode, allocations,
                      compressed, reads, delta_reads, words);
    console::print(
        "injection: %s: failed %zu allocations, %zu with compression, %zu reads, %zu of a delta, "
        "%zu of stacks\n",
        mode, allocations, compressed, reads, delta_reads, words);
}

void Bench::fail_publication() {
    const auto fail_steps = [&](const char* what, std::uint64_t flags) {
        if (const std::size_t maps = fail_each(what, map_.maps, flags, KERN_NO_SPACE); maps != 1)
            verdict_.fail("%s: mapped %zu times", what, maps);
    };
    const auto fail_copies = [&](const char* what, std::uint64_t flags) {
        if (const std::size_t copies =
                fail_each(what, map_.copies_out, flags, KERN_INVALID_ADDRESS);
            copies != 2)
            verdict_.fail("%s: copied out %zu times", what, copies);
    };
    fail_steps("mapping", format);
    fail_copies("copying out", format);
    // What failed leaves the capture where it was; what went well takes it away.
    expect("keeping", save, KERN_SUCCESS);
    fail_steps("mapping, retained", retrieve);
    expect("retrieved already", retrieve, KERN_NOT_IN_SET);
    expect("keeping", save, KERN_SUCCESS);
    fail_copies("copying out, retained", retrieve);
    expect("retrieved already", retrieve, KERN_NOT_IN_SET);

    if (subsystem_.keep_boot_profile({}) != KERN_SUCCESS)
        verdict_.fail("no boot profile");
    fail_steps("mapping, boot profile", boot_profile);
    fail_copies("copying out, boot profile", boot_profile);
    if (fail_each("allocation, boot profile", system_.allocations, boot_profile,
                  KERN_RESOURCE_SHORTAGE) != 1)
        verdict_.fail("publishing the boot profile allocates more than its copy");
}

void Bench::check_limits() {
    note();
    for (const std::uint64_t flags : {format, format | STACKSHOT_DO_COMPRESS}) {
        system_.forget_peak();
        const std::size_t before = system_.live_bytes();
        expect("peak", flags, KERN_SUCCESS);
        if (const std::size_t told = subsystem_.last_capture().peak_memory;
            told != system_.peak_bytes() - before)
            verdict_.fail("a peak of %zu bytes is told, not %zu", told,
                          system_.peak_bytes() - before);
    }
    Tunables& tunables = system_.changeable_facts().tunables;
    const Tunables usual = tunables;
    tunables.max_tracebuf_size = 2 * page_size;
    expect("maximum", format, KERN_RESOURCE_SHORTAGE);
    check_unchanged("maximum", tunables.max_tracebuf_size);
    tunables = usual;
    expect("behind the maximum", format, KERN_SUCCESS);
    check_unchanged("behind the maximum", 0);
}

}  // namespace

void injection_test(Verdict& verdict) {
    // The thread that started this one is taken apart meanwhile.
    sleep_milliseconds(200);
    Bench bench(verdict);
    bench.expect("first", format, KERN_SUCCESS);
    for (const bool single : {true, false}) {
        bench.system().changeable_facts().tunables.single_threaded = single;
        bench.fail_everything(single ? "single-threaded" : "parallel");
    }
    bench.check_limits();
    bench.fail_publication();
}

}  // namespace kernel::selftest
