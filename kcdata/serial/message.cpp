#include "kcdata/serial/message.hpp"

#include <algorithm>

#include "kcdata/serial/crc32c.hpp"

namespace kcdata::serial {

namespace {

struct WireRequestHead {
    std::uint32_t session;
    std::uint32_t sequence;
    Operation operation;
    std::uint16_t reserved;
};
static_assert(sizeof(WireRequestHead) == 12);

struct WireAnswerHead {
    std::uint32_t session;
    std::uint32_t sequence;
    Operation operation;
    AnswerState state;
    std::uint8_t reserved;
    kern_return result;
};
static_assert(sizeof(WireAnswerHead) == 16);

struct WireReadHead {
    std::uint32_t name;
    std::uint32_t first;
};
static_assert(sizeof(WireReadHead) == 8);
static_assert(max_frame_payload % read_unit == 0 && max_frame_payload / read_unit <= UINT8_MAX);

/// A range in one byte: its distance from the one before above, its length below. Otherwise both
/// follow this byte as numbers.
constexpr std::int64_t largest_short_distance = 14;
constexpr std::int64_t largest_short_length = 15;
constexpr std::uint8_t long_range = 0xf0;

/// LEB128 of at most 33 bits.
constexpr std::size_t max_number_size = 5;

/// Returns the bytes it took.
std::size_t put_number(std::span<std::byte, max_number_size> bytes, std::uint64_t value) {
    std::size_t size = 0;
    do {
        const auto more = value >= 0x80 ? std::byte{0x80} : std::byte{0};
        bytes[size++] = static_cast<std::byte>(value & 0x7f) | more;
        value >>= 7;
    } while (value != 0);
    return size;
}

bool take_number(std::span<const std::byte>& bytes, std::uint64_t& value) {
    value = 0;
    for (std::size_t index = 0; index < std::min(bytes.size(), max_number_size); ++index) {
        value |= std::to_integer<std::uint64_t>(bytes[index] & std::byte{0x7f}) << 7 * index;
        if ((bytes[index] & std::byte{0x80}) == std::byte{0}) {
            bytes = bytes.subspan(index + 1);
            return true;
        }
    }
    return false;
}

constexpr std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace

const char* operation_name(Operation operation) {
    switch (operation) {
        case Operation::hello:
            return "hello";
        case Operation::read:
            return "read";
        case Operation::stackshot:
            return "stackshot";
        case Operation::retained:
            return "retained";
        case Operation::captures:
            return "captures";
        case Operation::release:
            return "release";
        case Operation::tasks:
            return "tasks";
        case Operation::statistics:
            return "statistics";
        case Operation::trace:
            return "trace";
        case Operation::run_workload:
            return "run";
        case Operation::stop_workload:
            return "stop";
        case Operation::baud_rate:
            return "baud";
        case Operation::reboot:
            return "reboot";
        case Operation::power_off:
            return "poweroff";
    }
    return "unknown operation";
}

ObjectDescription describe_object(std::span<const std::byte> bytes, ObjectKind kind,
                                  std::uint64_t time) {
    return {.name = crc32c(bytes),
            .size = static_cast<std::uint32_t>(bytes.size()),
            .kind = kind,
            .reserved = 0,
            .time = time};
}

bool MessageBuffer::append(std::span<const std::byte> bytes) {
    if (bytes.size() > bytes_.size() - size_)
        return false;
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
    return true;
}

bool encode_request(MessageBuffer& message, const RequestHead& head,
                    std::span<const std::byte> body) {
    message.clear();
    return message.append_value(WireRequestHead{.session = head.session,
                                                .sequence = head.sequence,
                                                .operation = head.operation,
                                                .reserved = 0}) &&
           message.append(body);
}

bool encode_answer(MessageBuffer& message, const AnswerHead& head,
                   std::span<const std::byte> body) {
    message.clear();
    return message.append_value(WireAnswerHead{.session = head.session,
                                               .sequence = head.sequence,
                                               .operation = head.operation,
                                               .state = head.state,
                                               .reserved = 0,
                                               .result = head.result}) &&
           message.append(body);
}

bool decode_request(std::span<const std::byte> bytes, Request& request) {
    WireRequestHead head;
    if (bytes.size() > max_message_size || bytes.size() < sizeof(head) ||
        !decode_body(bytes.first(sizeof(head)), head))
        return false;
    request.head = {
        .session = head.session, .sequence = head.sequence, .operation = head.operation};
    request.body = bytes.subspan(sizeof(head));
    return true;
}

bool decode_answer(std::span<const std::byte> bytes, Answer& answer) {
    WireAnswerHead head;
    if (bytes.size() > max_message_size || bytes.size() < sizeof(head) ||
        !decode_body(bytes.first(sizeof(head)), head) || head.state > AnswerState::working)
        return false;
    answer.head = {.session = head.session,
                   .sequence = head.sequence,
                   .operation = head.operation,
                   .state = head.state,
                   .result = head.result};
    answer.body = bytes.subspan(sizeof(head));
    return true;
}

bool decode_text(std::span<const std::byte> body, std::string_view& text) {
    if (body.empty() || body.size() > max_request_text)
        return false;
    const std::string_view characters(reinterpret_cast<const char*>(body.data()), body.size());
    if (!std::all_of(characters.begin(), characters.end(),
                     [](char character) { return character >= ' ' && character <= '~'; }))
        return false;
    text = characters;
    return true;
}

bool decode_list(std::span<const std::byte> body, std::span<ObjectDescription, max_listed> list,
                 std::size_t& count) {
    if (body.size() % sizeof(ObjectDescription) != 0 ||
        body.size() / sizeof(ObjectDescription) > max_listed)
        return false;
    count = body.size() / sizeof(ObjectDescription);
    for (std::size_t index = 0; index < count; ++index)
        std::memcpy(&list[index], body.data() + index * sizeof(ObjectDescription),
                    sizeof(ObjectDescription));
    return true;
}

bool encode_read(MessageBuffer& message, ReadRequest& request, std::size_t size) {
    const std::size_t limit = message.bytes().size() + size;
    if (!message.append_value(WireReadHead{.name = request.name, .first = request.first}) ||
        !message.append_value(static_cast<std::uint8_t>(request.payload / read_unit)) ||
        !message.append_value(request.kept))
        return false;
    std::int64_t end = 0;
    for (std::size_t index = 0; index < request.count; ++index) {
        const Range& range = request.ranges[index];
        const std::int64_t offset = range.offset / read_unit;
        const std::int64_t length = (std::int64_t{range.length} + read_unit - 1) / read_unit;
        const std::int64_t distance = offset - end;
        std::array<std::byte, 1 + 2 * max_number_size> bytes;
        std::size_t used = 1;
        if (distance >= 0 && distance <= largest_short_distance && length <= largest_short_length) {
            bytes[0] = static_cast<std::byte>(distance << 4 | length);
        } else {
            bytes[0] = std::byte{long_range};
            used += put_number(std::span(bytes).subspan<1, max_number_size>(), zigzag(distance));
            used += put_number(std::span(bytes).subspan(used).first<max_number_size>(),
                               static_cast<std::uint64_t>(length));
        }
        if (message.bytes().size() + used > limit ||
            !message.append(std::span(bytes).first(used))) {
            request.count = index;
            break;
        }
        end = offset + length;
    }
    return request.count != 0;
}

bool decode_read(std::span<const std::byte> body, ReadRequest& request) {
    WireReadHead head;
    if (body.size() < sizeof(head) + 2 || !decode_body(body.first(sizeof(head)), head))
        return false;
    body = body.subspan(sizeof(head));
    request.name = head.name;
    request.first = head.first;
    request.payload =
        static_cast<std::uint16_t>(std::to_integer<std::uint32_t>(body[0]) * read_unit);
    request.kept = std::to_integer<std::uint8_t>(body[1]);
    request.count = 0;
    if (request.payload == 0 || request.payload > max_frame_payload)
        return false;
    std::int64_t end = 0;
    for (auto rest = body.subspan(2); !rest.empty();) {
        const auto both = std::to_integer<std::uint8_t>(rest[0]);
        rest = rest.subspan(1);
        std::int64_t distance = both >> 4;
        std::uint64_t length = both & 0xf;
        if (both == long_range) {
            std::uint64_t number = 0;
            if (!take_number(rest, number) || !take_number(rest, length))
                return false;
            distance = unzigzag(number);
        } else if (distance > largest_short_distance) {
            return false;
        }
        const std::int64_t offset = end + distance;
        constexpr std::int64_t most = UINT32_MAX / read_unit;
        if (request.count == ReadRequest::max_ranges || offset < 0 || offset >= most ||
            length == 0 || static_cast<std::int64_t>(length) > most - offset)
            return false;
        end = offset + static_cast<std::int64_t>(length);
        request.ranges[request.count++] = {
            .offset = static_cast<std::uint32_t>(offset) * read_unit,
            .length = static_cast<std::uint32_t>(length) * read_unit};
    }
    return request.count != 0;
}

}  // namespace kcdata::serial
