#include "stackshot/assembly.hpp"

#include <algorithm>
#include <cstring>

#include "kcdata/compressed_writer.hpp"
#include "stackshot/post_trap_producer.hpp"
#include "stackshot/record_system.hpp"
#include "stackshot/record_task_end.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// What takes the records is a Writer or a CompressedWriter.
template <typename Sink>
kern_return append_chain(Sink& sink, const Chunk* head) {
    for (const Chunk* chunk = head; chunk != nullptr; chunk = chunk->next) {
        if (const kern_return error = sink.append_items(chunk->items()); error != KERN_SUCCESS)
            return error;
    }
    return KERN_SUCCESS;
}

/// The first of `items`, which are not empty, that are parts of one task; they are taken off.
std::span<WorkItem> take_task(std::span<WorkItem>& items) {
    std::size_t count = 0;
    for (TaskPart part{.end = ThreadRef{1}}; part.end != ThreadRef::none && count < items.size();)
        part = items[count++].part;
    const auto parts = items.first(count);
    items = items.subspan(count);
    return parts;
}

/// A writer for records that are made here.
Writer& records_writer(Writer& writer) {
    return writer;
}
Writer& records_writer(CompressedWriter& writer) {
    return writer.open_window();
}
kern_return records_written(Writer&) {
    return KERN_SUCCESS;
}
kern_return records_written(CompressedWriter& writer) {
    return writer.close_window();
}

template <typename Sink>
kern_return append_task(Sink& sink, Collection& collection, std::span<const WorkItem> parts) {
    const RecordedTask first = parts.front().recorded;
    if (!first.wanted)
        return KERN_SUCCESS;
    for (const WorkItem& part : parts) {
        if (const kern_return error = append_chain(sink, part.records); error != KERN_SUCCESS)
            return error;
    }
    const kern_return error = record_task_end(records_writer(sink), collection.request(),
                                              collection.port_labels(), [parts](auto visit) {
                                                  for (const WorkItem& part : parts)
                                                      visit(part.recorded);
                                              });
    return error != KERN_SUCCESS ? error : records_written(sink);
}

/// The buffer a parallel collection needs, in whole pages.
std::size_t assembled_size(const System& system, Collection& collection) {
    std::size_t size = 2 * sizeof(ItemHeader) + chain_size(collection.pre_task_records()) +
                       chain_size(collection.post_task_records());
    for (auto items = collection.items(); !items.empty();) {
        TaskEnd end;
        for (const WorkItem& item : take_task(items)) {
            size += chain_size(item.records);
            end.add(item.recorded);
        }
        size += record_task_end_room(end);
    }
    for (PostTrapProducer* producer : system.facts().post_trap_producers)
        size += producer->room(collection.request());
    size += record_post_task_room(system.facts().cpu_count);
    const std::size_t page = std::max<std::size_t>(system.facts().page_size, 1);
    return (size + page - 1) / page * page;
}

template <typename Sink>
kern_return join(Sink& sink, Collection& collection) {
    if (const kern_return error = sink.begin(collection.request().begin_magic());
        error != KERN_SUCCESS)
        return error;
    if (collection.mode() == Mode::single_threaded) {
        const Writer& records = collection.single_writer();
        return sink.append_items(
            records.buffer().first(records.used()).subspan(sizeof(ItemHeader)));
    }
    if (const kern_return error = append_chain(sink, collection.pre_task_records());
        error != KERN_SUCCESS)
        return error;
    for (auto items = collection.items(); !items.empty();) {
        if (const kern_return error = append_task(sink, collection, take_task(items));
            error != KERN_SUCCESS)
            return error;
    }
    return append_chain(sink, collection.post_task_records());
}

/// Appends the records of the services behind the trap. Behind a panic's there is nobody.
kern_return append_post_trap(System& system, Writer& writer, const Request& request) {
    if (request.has(STACKSHOT_FROM_PANIC))
        return KERN_SUCCESS;
    for (PostTrapProducer* producer : system.facts().post_trap_producers) {
        if (const kern_return error = producer->record(writer, request); error != KERN_SUCCESS)
            return error;
    }
    return KERN_SUCCESS;
}

/// Appends the records behind the tasks. The result is the place of the outer duration.
Result<std::span<std::byte>> append_post_task(System& system, Writer& writer,
                                              const Collection& collection,
                                              const AssemblyFacts& facts) {
    if (const kern_return error = record_counts(writer, collection.counts()); error != KERN_SUCCESS)
        return error;
    if (const kern_return error = append_post_trap(system, writer, collection.request());
        error != KERN_SUCCESS)
        return error;
    PostTaskFacts post;
    post.latency = collection.latency();
    post.latencies = collection.latencies();
    post.duration = collection.duration();
    post.prior_duration = facts.prior_duration;
    post.tries = facts.tries;
    return record_post_task(writer, collection.request(), post);
}

/// Appends the records behind the tasks and the end. The size of the whole buffer is the result.
Result<std::size_t> finish(System& system, Writer& writer, const Collection& collection,
                           const AssemblyFacts& facts) {
    auto outer_duration = append_post_task(system, writer, collection, facts);
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

std::size_t compression_memory_size() {
    return CompressedWriter::memory_size(default_zlib_parameters);
}

Result<AssembledBuffer> assemble_compressed(System& system, Collection& collection,
                                            const AssemblyFacts& facts, std::span<std::byte> buffer,
                                            std::span<std::byte> zlib_memory) {
    CompressedWriter writer(buffer, zlib_memory);
    if (const kern_return error = join(writer, collection); error != KERN_SUCCESS)
        return error;
    // The outer duration stays 0, as in XNU: it is compressed before it is known.
    if (const auto outer = append_post_task(system, writer.open_window(), collection, facts);
        !outer.ok())
        return outer.error();
    if (const kern_return error = writer.close_window(); error != KERN_SUCCESS)
        return error;
    if (const kern_return error = writer.end(); error != KERN_SUCCESS)
        return error;
    return AssembledBuffer{buffer, writer.used()};
}

}  // namespace stackshot
