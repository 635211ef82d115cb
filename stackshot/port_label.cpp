#include "stackshot/port_label.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "kcdata/format.hpp"

namespace stackshot {

using namespace kcdata;

namespace {

/// Bucket of a label: labels are aligned, and lie within objects of some hundred bytes.
std::size_t bucket_of(PortLabelRef ref, std::size_t bucket_count) {
    const auto address = static_cast<std::uint64_t>(ref);
    return (address >> 5 ^ address >> 13) % bucket_count;
}

std::size_t stored_size(const char (&name)[sizeof(PortLabelFacts::name)]) {
    std::size_t length = 0;
    while (length < sizeof(name) && name[length] != '\0')
        ++length;
    return std::min(length + 1, sizeof(name));
}

kern_return append_label(Writer& writer, const PortLabel& label, std::int16_t id) {
    const auto container = static_cast<std::uint64_t>(id);
    if (const kern_return error =
            writer.container_begin(STACKSHOT_KCCONTAINER_PORTLABEL, container);
        error != KERN_SUCCESS)
        return error;
    if (label.facts.readable) {
        const std::span<const char> name(label.facts.name, stored_size(label.facts.name));
        if (const kern_return error =
                writer.append(STACKSHOT_KCTYPE_PORTLABEL_NAME, std::as_bytes(name));
            error != KERN_SUCCESS)
            return error;
    }
    const portlabel_info info{
        .portlabel_id = id,
        .portlabel_flags = label.facts.readable ? std::uint16_t{0} : STACKSHOT_PORTLABEL_READFAILED,
        .portlabel_domain = label.facts.domain,
    };
    if (const kern_return error = writer.append_value(STACKSHOT_KCTYPE_PORTLABEL, info);
        error != KERN_SUCCESS)
        return error;
    return writer.container_end(container);
}

}  // namespace

const PortLabel* PortLabelLog::find(System& system, Quiesced& quiesced, PortLabelRef ref) {
    if (buckets_ == nullptr) {
        const auto room = memory_.allocate(sizeof(Buckets));
        if (room.size() < sizeof(Buckets))
            return nullptr;
        buckets_ = new (room.data()) Buckets{};
    }
    const PortLabel*& first = (*buckets_)[bucket_of(ref, bucket_count)];
    for (const PortLabel* label = first; label != nullptr; label = label->next)
        if (label->ref == ref)
            return label;
    const auto room = memory_.allocate(sizeof(PortLabel));
    if (room.size() < sizeof(PortLabel))
        return nullptr;
    auto* const label = new (room.data()) PortLabel{.ref = ref, .next = first};
    system.port_label_facts(quiesced, ref, label->facts);
    return first = label;
}

void PortLabelTable::begin_task() {
    mentioned_ = 0;
    if (++generation_ != 0)
        return;
    for (Entry& entry : entries_)
        entry.generation = 0;
    generation_ = 1;
}

std::int16_t PortLabelTable::mention(const PortLabel* label) {
    if (label == nullptr)
        return STACKSHOT_PORTLABELID_NONE;
    std::uint16_t& first = buckets_[bucket_of(label->ref, bucket_count)];
    std::uint16_t id = first;
    while (id != 0 && entries_[id - 1U].label->ref != label->ref)
        id = entries_[id - 1U].next;
    if (id == 0) {
        if (count_ == capacity)
            return STACKSHOT_PORTLABELID_MISSING;
        id = ++count_;
        entries_[id - 1U] = {.label = label, .next = first};
        first = id;
    }
    Entry& entry = entries_[id - 1U];
    if (entry.generation != generation_) {
        entry.generation = generation_;
        ++mentioned_;
    }
    return static_cast<std::int16_t>(id);
}

kern_return PortLabelTable::append_mentioned(Writer& writer) const {
    std::size_t left = mentioned_;
    for (std::size_t index = 0; left != 0; ++index) {
        const Entry& entry = entries_[index];
        if (entry.generation != generation_)
            continue;
        --left;
        if (const kern_return error =
                append_label(writer, *entry.label, static_cast<std::int16_t>(index + 1));
            error != KERN_SUCCESS)
            return error;
    }
    return KERN_SUCCESS;
}

std::size_t PortLabelTable::room(std::size_t mentions) {
    constexpr std::size_t each = item_size(sizeof(std::uint32_t)) + item_size(0) +
                                 item_size(sizeof(PortLabelFacts::name)) +
                                 item_size(sizeof(portlabel_info));
    return std::min(mentions, capacity) * each;
}

}  // namespace stackshot
