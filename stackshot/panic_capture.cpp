#include "stackshot/panic_capture.hpp"

#include <algorithm>
#include <new>

#include "stackshot/assembly.hpp"
#include "stackshot/capture.hpp"
#include "stackshot/estimate.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

constexpr std::size_t piece_alignment = 64;
static_assert(piece_alignment % alignof(Collection) == 0);

/// Cuts `size` bytes off the front of `memory`; none if it has not so many.
std::span<std::byte> cut(std::span<std::byte>& memory, std::size_t size) {
    size = (size + piece_alignment - 1) / piece_alignment * piece_alignment;
    if (memory.size() < size)
        return {};
    const auto piece = memory.first(size);
    memory = memory.subspan(size);
    return piece;
}

/// One attempt in all of `memory`.
Result<AssembledBuffer> attempt(System& system, Quiesced& quiesced, const Request& request,
                                std::span<std::byte> memory, PanicCapture& capture,
                                AssemblyFacts& facts) {
    const auto place = cut(memory, sizeof(Collection));
    std::span<std::byte> zlib_memory;
    std::span<std::byte> compressed;
    const bool compress = request.has(STACKSHOT_DO_COMPRESS);
    if (compress) {
        zlib_memory = cut(memory, compression_memory_size());
        // Captures are made far smaller than that.
        compressed = cut(memory, memory.size() / 4);
    }
    if (place.empty() || (compress && zlib_memory.empty()))
        return KERN_INSUFFICIENT_BUFFER_SIZE;
    auto* const collection = new (place.data())
        Collection(system, request, {}, select_mode(system.facts(), request), memory);
    facts.outer_begin = system.absolute_time();
    collection->cpu_preflight(quiesced.cpu());
    collection->initiator(quiesced);
    const kern_return error = collection->conclude();
    const auto assembled =
        error != KERN_SUCCESS ? error
        : compress ? assemble_compressed(system, *collection, facts, compressed, zlib_memory)
                   : assemble(system, *collection, facts);
    facts.prior_duration += collection->duration();
    capture.tasks = collection->counts().tasks;
    capture.threads = collection->counts().threads;
    collection->~Collection();
    return assembled;
}

}  // namespace

std::size_t panic_memory_size(const SystemFacts& facts) {
    constexpr std::size_t least = std::size_t{1} << 20;
    const auto share = static_cast<std::size_t>(facts.memory_size / 64);
    return std::max(std::min(share, max_tracebuf_size(facts)), least);
}

Result<PanicCapture> take_panic_capture(System& system, Quiesced& quiesced,
                                        std::span<std::byte> memory) {
    constexpr std::uint64_t plain = panic_flags & ~STACKSHOT_DO_COMPRESS;
    PanicCapture capture;
    AssemblyFacts facts;
    kern_return error = KERN_SUCCESS;
    for (const std::uint64_t flags :
         {panic_flags, plain, plain | STACKSHOT_ACTIVE_KERNEL_THREADS_ONLY}) {
        capture.flags = flags;
        facts.tries = ++capture.tries;
        auto assembled =
            attempt(system, quiesced, {Request::all_pids, flags}, memory, capture, facts);
        if (assembled.ok()) {
            capture.data = assembled->buffer.first(assembled->size);
            return capture;
        }
        error = traced(system, assembled.error());
    }
    return error;
}

}  // namespace stackshot
