#include "situation.hpp"

#include <cstring>
#include <stdexcept>

#include "kcdata/types.hpp"
#include "kcdata/writer.hpp"

namespace tools_test {

using namespace kcdata;

namespace {

void must(kern_return result) {
    if (result != KERN_SUCCESS)
        throw std::runtime_error(kern_return_name(result));
}

void append_text(Writer& writer, std::uint32_t type, const std::string& text) {
    must(writer.append(type, std::as_bytes(std::span(text.c_str(), text.size() + 1))));
}

/// The first `size` bytes of each record, as an array.
template <typename Record>
void append_records(Writer& writer, std::uint32_t type, const std::vector<Record>& records,
                    std::size_t size) {
    if (records.empty())
        return;
    auto elements = writer.reserve_array(type, size, records.size());
    must(elements.error());
    for (std::size_t i = 0; i < records.size(); ++i)
        std::memcpy(elements.value().data() + i * size, &records[i], size);
}

void append(Writer& writer, const Situation::Thread& thread) {
    must(writer.container_begin(STACKSHOT_KCCONTAINER_THREAD, thread.id));
    thread_snapshot_v4 snapshot{};
    snapshot.ths_thread_id = thread.id;
    snapshot.ths_wait_event = thread.wait_event;
    snapshot.ths_ss_flags = thread.ss_flags;
    snapshot.ths_state = thread.state;
    snapshot.ths_base_priority = thread.base_priority;
    snapshot.ths_sched_priority = thread.sched_priority;
    must(writer.append_value(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, snapshot));
    if (!thread.name.empty()) {
        char name[thread_name_size] = {};
        thread.name.copy(name, sizeof(name) - 1);
        must(writer.append_value(STACKSHOT_KCTYPE_THREAD_NAME, name));
    }
    if (thread.cpu >= 0)
        must(writer.append_uint32_with_description("last_processor",
                                                   static_cast<std::uint32_t>(thread.cpu)));
    must(writer.container_end(thread.id));
}

}  // namespace

Situation& Situation::task(std::int32_t pid, const std::string& name, std::uint64_t ss_flags) {
    tasks_.push_back({pid, name, ss_flags});
    return *this;
}

Situation& Situation::thread(Thread thread) {
    tasks_.back().threads.push_back(std::move(thread));
    return *this;
}

Situation& Situation::running(std::uint64_t id, int cpu) {
    return thread({.id = id, .state = SS_TH_RUN, .ss_flags = kThreadOnCore, .cpu = cpu});
}

Situation& Situation::waits(std::uint64_t id, std::uint8_t type, std::uint64_t owner,
                            std::uint64_t context, std::int16_t label, std::uint32_t flags) {
    return thread({.id = id}).wait_info(id, type, owner, context, label, flags);
}

Situation& Situation::wait_info(std::uint64_t id, std::uint8_t type, std::uint64_t owner,
                                std::uint64_t context, std::int16_t label, std::uint32_t flags) {
    tasks_.back().wait_infos.push_back({owner, id, context, type, label, flags});
    return *this;
}

Situation& Situation::turnstile(std::uint64_t id, std::uint64_t flags, std::uint64_t context,
                                std::uint8_t hops, std::int16_t label) {
    tasks_.back().turnstile_infos.push_back({id, context, 31, hops, flags, label});
    return *this;
}

Situation& Situation::label(Label label) {
    tasks_.back().labels.push_back(std::move(label));
    return *this;
}

Situation& Situation::version_1() {
    version_1_ = true;
    return *this;
}

Bytes Situation::bytes() const {
    std::size_t room = 1024;
    for (const Task& task : tasks_)
        room += 1024 + 512 * task.threads.size() + 64 * task.wait_infos.size() +
                64 * task.turnstile_infos.size() + 512 * task.labels.size();
    std::vector<std::uint64_t> storage(room / 8);
    Writer writer{std::as_writable_bytes(std::span(storage))};
    must(writer.begin(KCDATA_BUFFER_BEGIN_STACKSHOT));
    for (const Task& task : tasks_) {
        const auto unique_pid = static_cast<std::uint64_t>(1000 + (&task - tasks_.data()));
        must(writer.container_begin(STACKSHOT_KCCONTAINER_TASK, unique_pid));
        task_snapshot_v2 snapshot{};
        snapshot.ts_unique_pid = unique_pid;
        snapshot.ts_ss_flags = task.ss_flags;
        snapshot.ts_pid = task.pid;
        task.name.copy(snapshot.ts_p_comm, sizeof(snapshot.ts_p_comm) - 1);
        must(writer.append_value(STACKSHOT_KCTYPE_TASK_SNAPSHOT, snapshot));
        std::vector<thread_delta_snapshot_v3> unchanged;
        for (const Thread& thread : task.threads)
            if (thread.unchanged) {
                thread_delta_snapshot_v3 delta{};
                delta.tds_thread_id = thread.id;
                delta.tds_ss_flags = thread.ss_flags;
                delta.tds_state = thread.state;
                delta.tds_base_priority = thread.base_priority;
                delta.tds_sched_priority = thread.sched_priority;
                unchanged.push_back(delta);
            }
        append_records(writer, STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, unchanged,
                       sizeof(thread_delta_snapshot_v3));
        for (const Thread& thread : task.threads)
            if (!thread.unchanged)
                append(writer, thread);
        append_records(writer, STACKSHOT_KCTYPE_THREAD_WAITINFO, task.wait_infos,
                       version_1_ ? 25 : 31);
        append_records(writer, STACKSHOT_KCTYPE_THREAD_TURNSTILEINFO, task.turnstile_infos,
                       version_1_ ? 26 : 28);
        for (const Label& label : task.labels) {
            const auto id = static_cast<std::uint64_t>(label.id);
            must(writer.container_begin(STACKSHOT_KCCONTAINER_PORTLABEL, id));
            if (!label.name.empty())
                append_text(writer, STACKSHOT_KCTYPE_PORTLABEL_NAME, label.name);
            must(writer.append_value(STACKSHOT_KCTYPE_PORTLABEL,
                                     portlabel_info{label.id, label.flags, 1}));
            must(writer.container_end(id));
        }
        must(writer.container_end(unique_pid));
    }
    must(writer.end());
    const auto written = std::as_bytes(std::span(storage)).first(writer.used());
    return {written.begin(), written.end()};
}

Analyzed::Ids Analyzed::ids(const std::vector<std::size_t>& threads) const {
    Ids ids;
    for (const std::size_t thread : threads)
        ids.push_back(graph.threads[thread].id);
    return ids;
}

std::vector<Analyzed::Ids> Analyzed::deadlocks() const {
    std::vector<Ids> all;
    for (const tools::Diagnosis::Deadlock& deadlock : diagnosis.deadlocks)
        all.push_back(ids(deadlock.threads));
    return all;
}

const tools::WaitGraph::Wait& Analyzed::wait(std::uint64_t id) const {
    const std::size_t thread = graph.find_thread(id);
    if (thread == tools::WaitGraph::none || graph.wait_of(thread) == nullptr)
        throw std::runtime_error("thread " + std::to_string(id) + " has no wait");
    return *graph.wait_of(thread);
}

}  // namespace tools_test
