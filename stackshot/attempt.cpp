#include "stackshot/attempt.hpp"

#include <new>

namespace stackshot {

using namespace kcdata;

Attempt::~Attempt() {
    if (collection_ != nullptr)
        collection_->~Collection();
    if (!collection_memory_.empty())
        system_.free(collection_memory_);
    if (!memory_.empty())
        system_.free(memory_);
}

kern_return Attempt::prepare(const Request& request, const Estimate& estimate, std::size_t size,
                             Mode mode) {
    memory_ = system_.allocate(size);
    collection_memory_ = system_.allocate(sizeof(Collection));
    if (memory_.size() < size || collection_memory_.size() < sizeof(Collection))
        return KERN_RESOURCE_SHORTAGE;
    peak_memory_ = memory_.size() + collection_memory_.size();
    collection_ =
        new (collection_memory_.data()) Collection(system_, request, estimate, mode, memory_);
    return KERN_SUCCESS;
}

Result<AssembledBuffer> Attempt::assemble(const AssemblyFacts& facts) {
    if (const kern_return error = collection_->conclude(); error != KERN_SUCCESS)
        return error;
    auto assembled = stackshot::assemble(system_, *collection_, facts);
    if (assembled.ok() && assembled->buffer.data() == memory_.data())
        memory_ = {};
    else if (assembled.ok())
        peak_memory_ += assembled->buffer.size();
    return assembled;
}

}  // namespace stackshot
