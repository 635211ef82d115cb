#include "stackshot/attempt.hpp"

#include <new>

namespace stackshot {

using namespace kcdata;

Attempt::~Attempt() {
    if (scratch_ready_)
        system_.release_scratch();
    if (collection_ != nullptr)
        collection_->~Collection();
    if (!collection_memory_.empty())
        system_.free(collection_memory_);
    for (const auto memory : {memory_, compressed_, zlib_memory_}) {
        if (!memory.empty())
            system_.free(memory);
    }
}

kern_return Attempt::prepare(const Request& request, const Estimate& estimate, std::size_t size,
                             Mode mode) {
    memory_ = system_.allocate(size);
    collection_memory_ = system_.allocate(sizeof(Collection));
    if (memory_.size() < size || collection_memory_.size() < sizeof(Collection))
        return KERN_RESOURCE_SHORTAGE;
    peak_memory_ = memory_.size() + collection_memory_.size();
    if (request.has(STACKSHOT_DO_COMPRESS)) {
        compressed_ = system_.allocate(size);
        zlib_memory_ = system_.allocate(compression_memory_size());
        if (compressed_.size() < size || zlib_memory_.size() < compression_memory_size())
            return KERN_RESOURCE_SHORTAGE;
        peak_memory_ += compressed_.size() + zlib_memory_.size();
    }
    if (const kern_return error = system_.prepare_scratch(); error != KERN_SUCCESS)
        return error;
    scratch_ready_ = true;
    collection_ =
        new (collection_memory_.data()) Collection(system_, request, estimate, mode, memory_);
    return KERN_SUCCESS;
}

Result<AssembledBuffer> Attempt::assemble(const AssemblyFacts& facts) {
    if (const kern_return error = collection_->conclude(); error != KERN_SUCCESS)
        return error;
    if (!compressed_.empty()) {
        const auto compressed =
            assemble_compressed(system_, *collection_, facts, compressed_, zlib_memory_);
        if (compressed.ok())
            compressed_ = {};
        return compressed;
    }
    auto assembled = stackshot::assemble(system_, *collection_, facts);
    if (assembled.ok() && assembled->buffer.data() == memory_.data())
        memory_ = {};
    else if (assembled.ok())
        peak_memory_ += assembled->buffer.size();
    return assembled;
}

}  // namespace stackshot
