#include "kcdata/serial/target.hpp"

#include <algorithm>

namespace kcdata::serial {

namespace {

/// Whether the host is told that the answer takes its time.
constexpr bool is_slow(Operation operation) {
    return operation == Operation::stackshot;
}

kern_return describe(const Result<ObjectDescription>& object, MessageBuffer& body) {
    if (!object.ok())
        return object.error();
    return body.append_value(object.value()) ? KERN_SUCCESS : KERN_FAILURE;
}

}  // namespace

Target::Target(TargetCommands& commands, ByteSink& sink, const Options& options)
    : commands_(commands),
      sink_(sink),
      options_(options),
      baud_rate_(options.baud_rate),
      fallback_baud_rate_(options.baud_rate),
      line_(*this, line_room_) {}

void Target::receive(std::span<const std::byte> bytes, std::uint64_t now) {
    now_ = now;
    line_.feed(bytes);
}

void Target::text(std::span<const std::byte> bytes) {
    commands_.text(bytes);
}

void Target::damaged(std::uint64_t, std::size_t) {}

void Target::frame(const Frame& frame) {
    Request request;
    if (frame.kind != FrameKind::request || !decode_request(frame.body, request))
        return;
    // The line is understood as it is.
    fallback_baud_rate_ = options_.baud_rate;
    if (baud_rate_ == options_.baud_rate)
        deadline_.reset();
    else
        deadline_ = now_ + silence_time;

    if (request.head.operation == Operation::hello) {
        hello(request, frame.encoding);
        return;
    }
    Session* const session = find_session(request.head.session);
    if (session == nullptr) {
        refuse(request.head, frame.encoding, KERN_INVALID_OBJECT);
        return;
    }
    session->encoding = frame.encoding;
    if (request.head.operation == Operation::read)
        read(*session, request);
    else
        command(*session, request);
}

Target::Session* Target::find_session(std::uint32_t id) {
    for (Session& session : sessions_) {
        if (session.used != 0 && session.id == id) {
            session.used = ++use_;
            return &session;
        }
    }
    return nullptr;
}

Target::Session& Target::open_session(std::uint32_t id) {
    if (Session* const known = find_session(id))
        return *known;
    Session& oldest = *std::min_element(
        sessions_.begin(), sessions_.end(),
        [](const Session& one, const Session& other) { return one.used < other.used; });
    oldest = Session{};
    oldest.id = id;
    oldest.used = ++use_;
    // Whoever asked for it is gone.
    forget_owed();
    return oldest;
}

void Target::hello(const Request& request, Encoding encoding) {
    HelloRequest asked;
    if (!decode_body(request.body, asked)) {
        refuse(request.head, encoding, KERN_INVALID_ARGUMENT);
        return;
    }
    const bool understood = asked.version == protocol_version;
    if (understood)
        open_session(request.head.session).encoding = encoding;
    const HelloAnswer answer = {.version = protocol_version,
                                .boot = options_.boot,
                                .baud_rate = baud_rate_,
                                .max_baud_rate = options_.max_baud_rate,
                                .max_payload = max_frame_payload};
    MessageBuffer message;
    if (encode_answer(message,
                      {.session = request.head.session,
                       .sequence = request.head.sequence,
                       .operation = Operation::hello,
                       .result = understood ? KERN_SUCCESS : KERN_NOT_SUPPORTED},
                      std::as_bytes(std::span(&answer, 1))))
        (void)write_frame(sink_, encoding, FrameKind::answer, message.bytes());
}

void Target::read(Session& session, const Request& request) {
    ReadRequest wanted;
    if (!decode_read(request.body, wanted)) {
        refuse(request.head, session.encoding, KERN_INVALID_ARGUMENT);
        return;
    }
    // Only ranges it does not have yet; a stale request has none.
    if (wanted.first + wanted.count - 1 <= session.granted)
        return;
    ObjectKind kind{};
    const std::size_t size = commands_.object(wanted.name, kind).size();
    if (size == 0) {
        refuse(request.head, session.encoding, KERN_NOT_IN_SET);
        return;
    }
    if (owed_session_ != session.id || owed_name_ != wanted.name)
        forget_owed();
    owed_session_ = session.id;
    owed_name_ = wanted.name;
    // What the host has given up for lost, and has granted again if it wants it.
    while (owed_count_ != 0 && owed_[owed_first_].number + wanted.kept < wanted.first)
        settle_first();
    for (std::size_t index = 0; index < wanted.count && owed_count_ < max_owed; ++index) {
        const std::uint32_t number = wanted.first + static_cast<std::uint32_t>(index);
        Range range = wanted.ranges[index];
        if (number <= session.granted)
            continue;
        if (range.offset >= size) {
            refuse(request.head, session.encoding, KERN_INVALID_ARGUMENT);
            return;
        }
        range.length =
            static_cast<std::uint32_t>(std::min<std::size_t>(range.length, size - range.offset));
        owed_[(owed_first_ + owed_count_) % max_owed] = {
            .number = number, .range = range, .payload = wanted.payload};
        ++owed_count_;
        session.granted = number;
    }
}

void Target::command(Session& session, const Request& request) {
    const std::uint32_t sequence = request.head.sequence;
    if (sequence < session.sequence)
        return;
    if (sequence == session.sequence) {
        send_answer(session);
        return;
    }
    session.sequence = sequence;
    session.operation = request.head.operation;
    if (is_slow(session.operation)) {
        set_answer(session, AnswerState::working, KERN_SUCCESS, {});
        send_answer(session);
    }
    MessageBuffer body;
    kern_return result = execute(request, body);
    if (result == KERN_INVALID_OBJECT)
        result = KERN_FAILURE;
    set_answer(session, AnswerState::done, result, body.bytes());
    send_answer(session);
    if (result != KERN_SUCCESS)
        return;

    switch (session.operation) {
        case Operation::baud_rate: {
            BaudRateRequest asked;
            if (decode_body(request.body, asked))
                change_baud_rate(asked.baud_rate);
            break;
        }
        case Operation::reboot:
            // Nobody will be here to say it again.
            send_answer(session);
            commands_.reboot();
            break;
        case Operation::power_off:
            send_answer(session);
            commands_.power_off();
            break;
        default:
            break;
    }
}

kern_return Target::execute(const Request& request, MessageBuffer& body) {
    const std::span<const std::byte> asked = request.body;
    std::string_view name;
    switch (request.head.operation) {
        case Operation::hello:
        case Operation::read:
            break;
        case Operation::stackshot: {
            StackshotRequest stackshot;
            if (!decode_body(asked, stackshot))
                return KERN_INVALID_ARGUMENT;
            return describe(commands_.take_stackshot(stackshot), body);
        }
        case Operation::release: {
            ReleaseRequest release;
            if (!decode_body(asked, release))
                return KERN_INVALID_ARGUMENT;
            return commands_.release(release.name);
        }
        case Operation::run_workload:
            return decode_text(asked, name) ? commands_.run_workload(name) : KERN_INVALID_ARGUMENT;
        case Operation::stop_workload:
            return decode_text(asked, name) ? commands_.stop_workload(name) : KERN_INVALID_ARGUMENT;
        case Operation::baud_rate: {
            BaudRateRequest rate;
            if (!decode_body(asked, rate))
                return KERN_INVALID_ARGUMENT;
            return commands_.check_baud_rate(rate.baud_rate);
        }
        case Operation::retained:
            if (asked.empty())
                return describe(commands_.retrieve_retained(), body);
            return KERN_INVALID_ARGUMENT;
        case Operation::captures: {
            if (!asked.empty())
                return KERN_INVALID_ARGUMENT;
            std::array<ObjectDescription, max_listed> list;
            const std::size_t count = std::min(commands_.list_captures(list), list.size());
            return body.append(std::as_bytes(std::span(list).first(count))) ? KERN_SUCCESS
                                                                            : KERN_FAILURE;
        }
        case Operation::tasks:
        case Operation::statistics:
        case Operation::trace:
            if (asked.empty())
                return describe(commands_.write_text(request.head.operation), body);
            return KERN_INVALID_ARGUMENT;
        case Operation::reboot:
        case Operation::power_off:
            return asked.empty() ? KERN_SUCCESS : KERN_INVALID_ARGUMENT;
    }
    return KERN_NOT_SUPPORTED;
}

void Target::change_baud_rate(std::uint32_t baud_rate) {
    if (baud_rate == baud_rate_)
        return;
    commands_.set_baud_rate(baud_rate);
    fallback_baud_rate_ = baud_rate_;
    baud_rate_ = baud_rate;
    deadline_ = now_ + trial_time;
}

void Target::tick(std::uint64_t now) {
    now_ = now;
    if (!deadline_ || now < *deadline_)
        return;
    commands_.set_baud_rate(fallback_baud_rate_);
    baud_rate_ = fallback_baud_rate_;
    fallback_baud_rate_ = options_.baud_rate;
    deadline_.reset();
    if (baud_rate_ != options_.baud_rate)
        deadline_ = now + silence_time;
    // Who did not hear that it went well, must not hear it now.
    for (Session& session : sessions_) {
        if (session.used != 0 && session.operation == Operation::baud_rate)
            set_answer(session, AnswerState::done, KERN_OPERATION_TIMED_OUT, {});
    }
}

std::optional<std::uint64_t> Target::deadline() const {
    return deadline_;
}

kern_return Target::send_next() {
    if (owed_count_ == 0)
        return KERN_SUCCESS;
    Session* const session = find_session(owed_session_);
    const Encoding encoding = session != nullptr ? session->encoding : Encoding::binary;
    Owed& owed = owed_[owed_first_];
    ObjectKind kind{};
    const std::span<const std::byte> object = commands_.object(owed_name_, kind);
    if (owed.range.offset >= object.size() ||
        owed.range.length > object.size() - owed.range.offset) {
        forget_owed();
        refuse({.session = owed_session_, .sequence = owed_name_, .operation = Operation::read},
               encoding, KERN_NOT_IN_SET);
        return KERN_SUCCESS;
    }
    const std::uint32_t length = std::min<std::uint32_t>(owed.range.length, owed.payload);
    const kern_return result =
        write_data_frame(sink_, encoding,
                         {.kind = kind == ObjectKind::text ? FrameKind::text_data : FrameKind::data,
                          .object = owed_name_,
                          .offset = owed.range.offset,
                          .total = static_cast<std::uint32_t>(object.size()),
                          .payload = object.subspan(owed.range.offset, length)});
    if (result != KERN_SUCCESS)
        return result;
    owed.range.offset += length;
    owed.range.length -= length;
    if (owed.range.length == 0)
        settle_first();
    return KERN_SUCCESS;
}

void Target::settle_first() {
    owed_first_ = (owed_first_ + 1) % max_owed;
    --owed_count_;
}

void Target::set_answer(Session& session, AnswerState state, kern_return result,
                        std::span<const std::byte> body) {
    const AnswerHead head = {.session = session.id,
                             .sequence = session.sequence,
                             .operation = session.operation,
                             .state = state,
                             .result = result};
    if (!encode_answer(session.answer, head, result == KERN_SUCCESS ? body : body.first(0)))
        session.answer.clear();
}

void Target::send_answer(const Session& session) {
    if (!session.answer.bytes().empty())
        (void)write_frame(sink_, session.encoding, FrameKind::answer, session.answer.bytes());
}

void Target::refuse(const RequestHead& head, Encoding encoding, kern_return result) {
    MessageBuffer message;
    if (encode_answer(message,
                      {.session = head.session,
                       .sequence = head.sequence,
                       .operation = head.operation,
                       .result = result},
                      {}))
        (void)write_frame(sink_, encoding, FrameKind::answer, message.bytes());
}

void Target::forget_owed() {
    owed_count_ = 0;
    owed_first_ = 0;
}

}  // namespace kcdata::serial
