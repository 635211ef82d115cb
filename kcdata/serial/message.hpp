#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "kcdata/result.hpp"
#include "kcdata/serial/data_frame.hpp"

/// What host and unikernel say to each other over the line: the bodies of request and answer
/// frames. One codec for both ends. All numbers are little-endian, no struct has padding.
///
/// The host asks, the unikernel answers. A request carries a session, which the host draws at
/// random and opens with Operation::hello, and a sequence number, which grows by one with each new
/// request of the session. A request that comes again (the same session and sequence) gets the
/// answer the first one got and is not carried out again: at most once, however often the host has
/// to ask. All that is sent to a session is encoded as its last request was. Operation::read stands
/// outside of that: it changes nothing and may be repeated as it is.
///
/// What is too long for one frame is an *object*: a capture, or a long answer. An answer describes
/// it, and the host pulls it in ranges of bytes (see ReadRequest); what the line lost is pulled
/// again, by the same host program or another one.
namespace kcdata::serial {

inline constexpr std::uint32_t protocol_version = 1;

/// Longest body of a request and of an answer, heads included.
inline constexpr std::size_t max_message_size = 256;

enum class Operation : std::uint16_t {
    hello = 1,       ///< HelloRequest -> HelloAnswer; opens the session, also asks "still there?"
    read = 2,        ///< ReadRequest -> data frames; an Answer only if it is refused
    stackshot = 3,   ///< StackshotRequest -> ObjectDescription of the capture
    retained = 4,    ///< -> ObjectDescription of the capture the kernel retains
    captures = 5,    ///< -> ObjectDescription[], newest first, at most max_listed
    release = 6,     ///< ReleaseRequest ->
    tasks = 7,       ///< -> ObjectDescription of a text
    statistics = 8,  ///< -> ObjectDescription of a text
    trace = 9,       ///< -> ObjectDescription of a text: the CPUs' trace rings
    run_workload = 10,   ///< a workload's name and arguments, as text ->
    stop_workload = 11,  ///< a workload's name, as text ->
    baud_rate = 12,      ///< BaudRateRequest -> ; then both ends change over (see Target)
    reboot = 13,         ///< -> ; then PSCI SYSTEM_RESET
    power_off = 14,      ///< -> ; then PSCI SYSTEM_OFF
};
/// The name as on the command line, or "unknown operation".
const char* operation_name(Operation operation);

struct HelloRequest {
    std::uint32_t version = protocol_version;
};

struct HelloAnswer {
    std::uint32_t version = protocol_version;
    std::uint32_t boot = 0;           ///< drawn anew at each start of the kernel
    std::uint32_t baud_rate = 0;      ///< of the line now; 0: not known
    std::uint32_t max_baud_rate = 0;  ///< what the UART's clock allows
    std::uint32_t max_payload = 0;    ///< bytes of an object in one frame
};
static_assert(sizeof(HelloAnswer) == 20);

/// What of stackshot_config a caller chooses.
struct StackshotRequest {
    std::uint64_t flags = 0;            ///< STACKSHOT_*
    std::uint64_t delta_timestamp = 0;  ///< with STACKSHOT_COLLECT_DELTA_SNAPSHOT
    std::uint64_t pagetable_mask = 0;   ///< with STACKSHOT_PAGE_TABLES
    std::int32_t pid = -1;              ///< only this task; -1: all
    std::uint32_t size_hint = 0;        ///< bytes; 0: none
};
static_assert(sizeof(StackshotRequest) == 32);

enum class ObjectKind : std::uint32_t {
    capture = 1,
    text = 2,  ///< a long answer, UTF-8
};

struct ObjectDescription {
    std::uint32_t name = 0;  ///< CRC-32C of its bytes
    std::uint32_t size = 0;  ///< bytes; never 0
    ObjectKind kind = ObjectKind::capture;
    std::uint32_t reserved = 0;
    std::uint64_t time = 0;  ///< absolute time when it was taken; 0: not known

    bool operator==(const ObjectDescription&) const = default;
};
static_assert(sizeof(ObjectDescription) == 24);
inline constexpr std::size_t max_listed = 8;

/// The description of an object with these bytes.
ObjectDescription describe_object(std::span<const std::byte> bytes, ObjectKind kind,
                                  std::uint64_t time);

struct ReleaseRequest {
    std::uint32_t name = 0;
};

struct BaudRateRequest {
    std::uint32_t baud_rate = 0;
};

/// Longest text of a request.
inline constexpr std::size_t max_request_text = 128;

/// Where a request's or an answer's body begins.
struct RequestHead {
    std::uint32_t session = 0;
    std::uint32_t sequence = 0;
    Operation operation{};
};
enum class AnswerState : std::uint8_t {
    done = 0,
    working = 1,  ///< the request arrived and takes its time; the answer follows
};
struct AnswerHead {
    std::uint32_t session = 0;
    std::uint32_t sequence = 0;
    Operation operation{};
    AnswerState state = AnswerState::done;
    /// Why it was not done. Of the link itself: KERN_INVALID_OBJECT (no such session: say hello),
    /// KERN_NOT_SUPPORTED (no such operation or protocol version), KERN_INVALID_ARGUMENT (the body
    /// is malformed), KERN_NOT_IN_SET (no such object). All others are the operation's.
    kern_return result = KERN_SUCCESS;
};

/// A request as it arrived; `body` points into the frame.
struct Request {
    RequestHead head{};
    std::span<const std::byte> body{};
};
/// An answer as it arrived.
struct Answer {
    AnswerHead head{};
    std::span<const std::byte> body{};
};

/// A message on its way: bounded, without allocation.
class MessageBuffer {
  public:
    /// False, and nothing is added, if it does not fit.
    bool append(std::span<const std::byte> bytes);
    template <typename T>
    requires std::is_trivially_copyable_v<T>
    bool append_value(const T& value) { return append(std::as_bytes(std::span(&value, 1))); }
    std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }
    void clear() { size_ = 0; }

  private:
    std::array<std::byte, max_message_size> bytes_{};
    std::size_t size_ = 0;
};

/// False: `body` does not fit behind the head.
bool encode_request(MessageBuffer& message, const RequestHead& head,
                    std::span<const std::byte> body);
bool encode_answer(MessageBuffer& message, const AnswerHead& head, std::span<const std::byte> body);
/// False: the bytes are no request, or no answer. An unknown operation is none of these.
bool decode_request(std::span<const std::byte> bytes, Request& request);
bool decode_answer(std::span<const std::byte> bytes, Answer& answer);

/// The body as a T; false if it is not as long as one.
template <typename T>
requires std::is_trivially_copyable_v<T>
bool decode_body(std::span<const std::byte> body, T& value) {
    if (body.size() != sizeof(T))
        return false;
    std::memcpy(&value, body.data(), sizeof(T));
    return true;
}
/// The body as text: 1 to max_request_text printable ASCII characters.
bool decode_text(std::span<const std::byte> body, std::string_view& text);
/// How many descriptions the body holds, up to max_listed; false if it is not a whole number.
bool decode_list(std::span<const std::byte> body, std::span<ObjectDescription, max_listed> list,
                 std::size_t& count);

/// Operation::read: the host grants ranges of one object, numbered 1, 2, 3, ... in a session. The
/// unikernel sends them in that order, each cut into frames of `payload` bytes, and skips those it
/// already has: so a request repeats every range nothing was heard of yet, and one that is lost or
/// comes twice costs nothing. Never are more bytes on their way than were granted.
///
/// On the line, with everything in units of read_unit bytes: name u32, first u32, payload u8,
/// kept u8, then each range as its distance from the end of the one before and its length. Both in
/// one byte, the distance in the upper half, if they are at most 14 and from 1 to 15; otherwise
/// 0xf0, then both as LEB128, the distance zigzag. So a lost frame costs a byte to ask for.
inline constexpr std::uint32_t read_unit = 32;
struct ReadRequest {
    static constexpr std::size_t max_ranges = 64;

    std::uint32_t name = 0;
    std::uint32_t first = 0;    ///< number of ranges[0]
    std::uint16_t payload = 0;  ///< read_unit to max_payload, a multiple of read_unit
    std::uint8_t kept = 0;      ///< grants before the first that still hold; older ones are off
    /// Offsets are multiples of read_unit. So are lengths, rounded up on the line, except that the
    /// unikernel ends a range where the object ends.
    std::array<Range, max_ranges> ranges{};
    std::size_t count = 0;
};
/// Appends as many of the ranges as fit into `size` bytes and sets `count` to that; false if none
/// does.
bool encode_read(MessageBuffer& message, ReadRequest& request, std::size_t size);
/// False if it is malformed, a range is empty or ends behind 32 bits, or there are too many.
bool decode_read(std::span<const std::byte> body, ReadRequest& request);

}  // namespace kcdata::serial
