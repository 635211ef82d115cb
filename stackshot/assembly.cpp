#include "stackshot/assembly.hpp"

#include <algorithm>
#include <cstring>

namespace stackshot {

using namespace kcdata;

namespace {

kern_return append_chain(Writer& writer, const Chunk* head) {
    for (const Chunk* chunk = head; chunk != nullptr; chunk = chunk->next) {
        if (const kern_return error = writer.append_items(chunk->items()); error != KERN_SUCCESS)
            return error;
    }
    return KERN_SUCCESS;
}

/// The buffer a parallel collection needs, in whole pages.
std::size_t assembled_size(const System& system, Collection& collection) {
    std::size_t size = 2 * sizeof(ItemHeader) + chain_size(collection.pre_task_records());
    for (const WorkItem& item : collection.items())
        size += chain_size(item.records);
    size += record_post_task_room(system.facts().cpu_count);
    const std::size_t page = std::max<std::size_t>(system.facts().page_size, 1);
    return (size + page - 1) / page * page;
}

kern_return join(Writer& writer, Collection& collection) {
    if (const kern_return error = writer.begin(collection.request().begin_magic());
        error != KERN_SUCCESS)
        return error;
    if (const kern_return error = append_chain(writer, collection.pre_task_records());
        error != KERN_SUCCESS)
        return error;
    for (const WorkItem& item : collection.items()) {
        if (const kern_return error = append_chain(writer, item.records); error != KERN_SUCCESS)
            return error;
    }
    return KERN_SUCCESS;
}

/// Appends the records behind the tasks and the end. The size of the whole buffer is the result.
Result<std::size_t> finish(System& system, Writer& writer, const Collection& collection,
                           const AssemblyFacts& facts) {
    PostTaskFacts post;
    post.counts = collection.counts();
    post.latencies = collection.latencies();
    post.duration = collection.duration();
    post.prior_duration = facts.prior_duration;
    post.tries = facts.tries;
    auto outer_duration = record_post_task(writer, collection.request(), post);
    if (!outer_duration.ok())
        return outer_duration.error();
    if (const kern_return error = writer.end(); error != KERN_SUCCESS)
        return error;
    const std::uint64_t outer = system.absolute_time() - facts.outer_begin;
    std::memcpy(outer_duration.value().data(), &outer, sizeof(outer));
    return writer.used();
}

}  // namespace

Result<AssembledBuffer> assemble(System& system, Collection& collection,
                                 const AssemblyFacts& facts) {
    if (collection.mode() == Mode::single_threaded) {
        const auto size = finish(system, collection.single_writer(), collection, facts);
        if (!size.ok())
            return size.error();
        return AssembledBuffer{collection.memory(), size.value()};
    }
    const auto buffer = system.allocate(assembled_size(system, collection));
    if (buffer.empty())
        return KERN_RESOURCE_SHORTAGE;
    Writer writer(buffer);
    kern_return error = join(writer, collection);
    if (error == KERN_SUCCESS) {
        const auto size = finish(system, writer, collection, facts);
        if (size.ok())
            return AssembledBuffer{buffer, size.value()};
        error = size.error();
    }
    system.free(buffer);
    return error;
}

}  // namespace stackshot
