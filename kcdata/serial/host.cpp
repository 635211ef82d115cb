#include "kcdata/serial/host.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kcdata/serial/target.hpp"

namespace kcdata::serial {

namespace {

/// What a line without a known rate is taken for.
constexpr std::uint32_t usual_baud_rate = 115200;
/// The ends' own delays, one way and back: tty layers, USB, a busy host.
constexpr std::uint64_t turnaround = 200'000;
/// Progress that counts as one, in bytes for each span of HostOptions::patience.
constexpr std::uint32_t least_progress = 256;
/// Of a line nothing is known of yet.
constexpr std::uint16_t first_payload = 960;
constexpr std::uint64_t first_frames = 12;
/// Bytes of the line a data frame costs besides its payload, and COBS.
constexpr double frame_cost = frame_size_on_line(data_head_size);
/// Objects of which parts are kept.
constexpr std::size_t max_kept = 8;

/// Payload at which a line that damages one byte in 1/`rate` gets most through: (P + h) / P bytes
/// for each, times exp(rate (P + h)) tries; least where P (P + h) = h / rate.
double best_payload(double rate) {
    return (std::sqrt(frame_cost * frame_cost + 4 * frame_cost / rate) - frame_cost) / 2;
}

/// Of a read request's body before its ranges.
constexpr std::size_t read_head_size = 10;

std::uint32_t align_up(std::uint32_t bytes) {
    return (bytes + read_unit - 1) / read_unit * read_unit;
}

std::uint32_t end_of(const Range& range) {
    return range.offset + range.length;
}

std::uint32_t frames_in(std::uint32_t bytes, std::size_t payload) {
    return static_cast<std::uint32_t>((bytes + payload - 1) / payload);
}

}  // namespace

const char* link_error_text(LinkError error) {
    switch (error) {
        case LinkError::no_answer:
            return "no answer from the unikernel";
        case LinkError::too_lossy:
            return "the line loses almost everything";
        case LinkError::target_restarted:
            return "the unikernel was started again meanwhile";
        case LinkError::wrong_version:
            return "the unikernel speaks another version of the protocol";
        case LinkError::refused:
            return "the unikernel does not have the object any more";
        case LinkError::wrong_crc:
            return "all bytes are here, but their CRC is wrong";
        case LinkError::baud_rate:
            return "no answer at the new baud rate";
    }
    return "unknown error";
}

Host::Host(HostHandler& handler, ByteSink& sink, std::uint32_t session, const HostOptions& options)
    : handler_(handler),
      sink_(sink),
      options_(options),
      session_(session),
      line_(*this, line_room_) {}

// Time.

Host::Time Host::line_time(std::size_t bytes) const {
    const std::uint64_t rate = baud_rate_ != 0 ? baud_rate_ : usual_baud_rate;
    // Ten bits a byte.
    const std::uint64_t time = bytes * 10'000'000 / rate;
    return options_.encoding == Encoding::text ? time * 4 / 3 : time;
}

Host::Time Host::answer_time() const {
    // Behind the frame that is being sent, and with one of ours in front of it.
    const std::size_t frame = payload_ != 0 ? payload_ : max_frame_payload;
    return now_ + turnaround + line_time(frame + 2 * frame_size_on_line(max_message_size));
}

std::uint32_t Host::window() const {
    const std::uint64_t rate = baud_rate_ != 0 ? baud_rate_ : usual_baud_rate;
    // 300 ms of the line; a few frames until it is known what becomes of frames.
    const std::uint64_t enough = seen_frames_ < first_frames ? 0 : rate * 3 / 100;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(
        std::max<std::uint64_t>(4u * payload_, enough), std::max(options_.max_window, read_unit)));
}

std::uint32_t Host::granted_bytes() const {
    std::uint32_t bytes = 0;
    for (const Grant& grant : pull_->grants)
        bytes += grant.rest.length;
    return bytes;
}

// Requests.

void Host::start(std::optional<Exchange>& exchange, Operation operation, std::uint32_t sequence,
                 std::span<const std::byte> body, Time patience) {
    exchange = Exchange{.operation = operation, .sequence = sequence, .give_up = now_ + patience};
    (void)encode_request(exchange->message,
                         {.session = session_, .sequence = sequence, .operation = operation}, body);
    ++statistics_.requests;
    send(*exchange);
}

void Host::send(Exchange& exchange) {
    send_message(exchange.message);
    exchange.retry = exchange.working ? now_ + 1'000'000 : answer_time();
}

void Host::send_message(const MessageBuffer& message) {
    // What the line does not take is lost, as what it loses.
    (void)write_frame(sink_, options_.encoding, FrameKind::request, message.bytes());
    statistics_.bytes_sent += options_.encoding == Encoding::text
                                  ? text_frame_size_on_line(message.bytes().size())
                                  : frame_size_on_line(message.bytes().size());
}

void Host::connect(std::uint64_t now) {
    now_ = now;
    connected_ = false;
    change_ = Change::none;
    request_.reset();
    end_pull();
    say_hello(options_.patience);
}

void Host::say_hello(Time patience) {
    const HelloRequest body;
    start(hello_, Operation::hello, ++hello_sequence_, std::as_bytes(std::span(&body, 1)),
          patience);
}

kern_return Host::request(Operation operation, std::span<const std::byte> body, std::uint64_t now) {
    now_ = now;
    if (!connected_)
        return KERN_NOT_IN_SET;
    if (request_ || change_ != Change::none)
        return KERN_LOCK_OWNED;
    MessageBuffer message;
    if (operation == Operation::hello || operation == Operation::read ||
        !encode_request(message, {}, body))
        return KERN_INVALID_ARGUMENT;
    start(request_, operation, ++sequence_, body, options_.patience);
    return KERN_SUCCESS;
}

kern_return Host::change_baud_rate(std::uint32_t baud_rate, std::uint64_t now) {
    if (pull_)
        return KERN_LOCK_OWNED;
    const BaudRateRequest body{.baud_rate = baud_rate};
    const kern_return result =
        request(Operation::baud_rate, std::as_bytes(std::span(&body, 1)), now);
    if (result == KERN_SUCCESS) {
        change_ = Change::asked;
        old_baud_rate_ = baud_rate_;
        new_baud_rate_ = baud_rate;
    }
    return result;
}

void Host::try_baud_rate() {
    if (new_baud_rate_ == old_baud_rate_) {
        change_ = Change::none;
        return;
    }
    if (!handler_.set_baud_rate(new_baud_rate_)) {
        return_baud_rate();
        return;
    }
    change_ = Change::trying;
    baud_rate_ = new_baud_rate_;
    // Half of the time the unikernel waits: the other half is for its way back.
    say_hello(Target::trial_time / 2);
}

void Host::return_baud_rate() {
    change_ = Change::returning;
    if (baud_rate_ != old_baud_rate_)
        (void)handler_.set_baud_rate(old_baud_rate_);
    baud_rate_ = old_baud_rate_;
    // It may have heard us at the new rate, and waits for more in vain.
    say_hello(Target::silence_time + options_.patience);
}

// What comes.

void Host::receive(std::span<const std::byte> bytes, std::uint64_t now) {
    now_ = now;
    statistics_.bytes_received += bytes.size();
    line_.feed(bytes);
    pump();
}

void Host::text(std::span<const std::byte> bytes) {
    handler_.text(bytes);
}

void Host::damaged(std::uint64_t position, std::size_t size) {
    handler_.damaged(position, size);
}

void Host::frame(const Frame& frame) {
    Answer answer;
    DataFrame data;
    if (frame.kind == FrameKind::answer) {
        if (decode_answer(frame.body, answer) && answer.head.session == session_) {
            heard_ = now_;
            take_answer(answer);
        }
    } else if (parse_data_frame(frame, data)) {
        heard_ = now_;
        take_data(data);
    }
}

void Host::take_answer(const Answer& answer) {
    const AnswerHead& head = answer.head;
    if (head.operation == Operation::hello) {
        take_hello(answer);
        return;
    }
    if (head.result == KERN_INVALID_OBJECT && connected_ && !hello_) {
        // It does not know us: hello tells whether it was started again.
        say_hello(options_.patience);
        return;
    }
    if (head.operation == Operation::read) {
        if (pull_ && head.sequence == pull_->object.name && head.result != KERN_INVALID_OBJECT)
            fail_pull(LinkError::refused, head.result);
        return;
    }
    if (!request_ || head.sequence != request_->sequence || head.operation != request_->operation ||
        head.result == KERN_INVALID_OBJECT)
        return;
    if (head.state == AnswerState::working) {
        if (!request_->working)
            request_->give_up = now_ + options_.working_patience;
        request_->working = true;
        request_->retry = now_ + 1'000'000;
        return;
    }
    request_.reset();
    if (change_ == Change::asked) {
        if (head.result == KERN_SUCCESS) {
            try_baud_rate();
            if (change_ != Change::none)
                return;
        }
        change_ = Change::none;
    }
    handler_.answered(answer);
}

void Host::take_hello(const Answer& answer) {
    HelloAnswer peer;
    if (!hello_ || answer.head.sequence != hello_->sequence || !decode_body(answer.body, peer))
        return;
    hello_.reset();
    if (answer.head.result != KERN_SUCCESS || peer.version != protocol_version) {
        fail(LinkError::wrong_version, answer.head.result);
        return;
    }
    const bool restarted = peer_.boot != 0 && peer.boot != peer_.boot;
    peer_ = peer;
    if (baud_rate_ == 0 || change_ == Change::none)
        baud_rate_ = peer.baud_rate;
    set_payload(payload_ != 0 ? payload_ : first_payload);

    switch (std::exchange(change_, Change::none)) {
        case Change::trying: {
            Answer changed;
            changed.head = {
                .session = session_, .sequence = sequence_, .operation = Operation::baud_rate};
            handler_.answered(changed);
            return;
        }
        case Change::returning:
            handler_.failed(LinkError::baud_rate, KERN_OPERATION_TIMED_OUT);
            return;
        case Change::asked:
            change_ = Change::asked;
            break;
        case Change::none:
            break;
    }
    if (restarted && connected_)
        fail(LinkError::target_restarted);
    if (!std::exchange(connected_, true))
        handler_.connected(peer_);
}

// Pulling.

kern_return Host::pull(const ObjectDescription& object, std::uint64_t now) {
    now_ = now;
    if (!connected_)
        return KERN_NOT_IN_SET;
    if (pull_ || change_ != Change::none)
        return KERN_LOCK_OWNED;
    if (object.size == 0)
        return KERN_INVALID_ARGUMENT;
    pull_.emplace(Pull{.object = object, .gathering = take_kept(object.name, object.size)});
    pull_->heard = granted_;
    pull_->told = granted_;
    pull_->give_up = now_ + options_.patience;
    pull_->received_then = pull_->gathering.received();
    pump();
    return KERN_SUCCESS;
}

void Host::resume(std::span<const std::byte> frames) {
    class Stored final : public LineHandler {
      public:
        explicit Stored(Host& host) : host_(host) {}
        void text(std::span<const std::byte>) override {}
        void damaged(std::uint64_t, std::size_t) override {}
        void frame(const Frame& frame) override {
            DataFrame data;
            if (!parse_data_frame(frame, data))
                return;
            Gathering gathering = host_.take_kept(data.object, data.total);
            gathering.store(data.offset, data.payload);
            host_.keep(std::move(gathering));
        }

      private:
        Host& host_;
    };
    Stored stored(*this);
    Line::Room<max_frame_body> room;
    Line line(stored, room);
    line.feed(frames);
}

Gathering Host::take_kept(std::uint32_t name, std::uint32_t size) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Gathering& one) {
        return one.object() == name && one.total() == size;
    });
    if (found == kept_.end())
        return Gathering(name, size);
    Gathering gathering = std::move(*found);
    kept_.erase(found);
    return gathering;
}

void Host::keep(Gathering&& gathering) {
    if (kept_.size() == max_kept)
        kept_.erase(kept_.begin());
    kept_.push_back(std::move(gathering));
}

void Host::cancel_pull() {
    end_pull();
}

void Host::end_pull() {
    if (!pull_)
        return;
    if (pull_->gathering.received() != 0)
        keep(std::move(pull_->gathering));
    pull_.reset();
}

void Host::take_data(const DataFrame& data) {
    if (!pull_ || data.object != pull_->object.name || data.total != pull_->object.size ||
        data.payload.empty())
        return;
    const auto length = static_cast<std::uint32_t>(data.payload.size());
    const std::uint32_t fresh = pull_->gathering.store(data.offset, data.payload);
    statistics_.payload_received += fresh;
    statistics_.payload_repeated += length - fresh;
    pull_->silences = 0;
    settle_grants({.offset = data.offset, .length = length});
    expect_data();
    expect_grants();
    if (fresh == 0)
        return;
    handler_.piece(data);
    if (!pull_)
        return;
    handler_.progress({.object = pull_->object.name,
                       .total = pull_->object.size,
                       .received = pull_->gathering.received()});
}

void Host::settle_grants(const Range& range) {
    auto& grants = pull_->grants;
    const auto found = std::find_if(grants.begin(), grants.end(), [&](const Grant& grant) {
        return range.offset >= grant.rest.offset && range.offset < end_of(grant.rest);
    });
    // It was given up for lost, and came late.
    if (found == grants.end())
        return;
    // They are sent in order: what comes before it is lost.
    std::uint32_t lost = 0;
    const std::size_t payload = found->payload;
    while (grants.begin() != found) {
        lost += frames_in(grants.front().rest.length, grants.front().payload);
        grants.pop_front();
    }
    Grant& grant = grants.front();
    pull_->heard = std::max(pull_->heard, grant.number);
    lost += frames_in(range.offset - grant.rest.offset, payload);
    const std::uint32_t end = std::min(end_of(range), end_of(grant.rest));
    grant.rest = {.offset = end, .length = end_of(grant.rest) - end};
    if (grant.rest.length == 0)
        grants.pop_front();
    note_frames(1, lost, payload);
}

void Host::note_frames(std::uint32_t arrived, std::uint32_t lost, std::size_t payload) {
    statistics_.frames_lost += lost;
    seen_frames_ += arrived + lost;
    // A frame that was lost tells of its first half, on average.
    const double size = static_cast<double>(payload) + frame_cost;
    seen_bytes_ += arrived * size + lost * size / 2;
    lost_frames_ += lost;
    // What was long ago does not count for ever.
    if (seen_bytes_ > 65536 || lost_frames_ > 32) {
        seen_bytes_ /= 2;
        lost_frames_ /= 2;
    }
    // One alone says little.
    const double best =
        lost_frames_ <= 0.5 ? max_frame_payload : best_payload((lost_frames_ - 0.5) / seen_bytes_);
    set_payload(best);
}

void Host::set_payload(double payload) {
    // At a low rate nobody else gets a word in while a long frame is sent: a second at most.
    const std::uint32_t second = (baud_rate_ != 0 ? baud_rate_ : usual_baud_rate) / 10;
    const std::uint32_t most =
        std::min({peer_.max_payload, std::uint32_t{max_frame_payload}, second});
    const auto units = static_cast<std::uint32_t>(payload / read_unit + 0.5);
    payload_ = static_cast<std::uint16_t>(std::clamp<std::uint32_t>(
        units * read_unit, read_unit, std::max(most / read_unit * read_unit, read_unit)));
    statistics_.payload = payload_;
}

void Host::pump() {
    if (!pull_)
        return;
    if (pull_->gathering.complete()) {
        const ObjectDescription object = pull_->object;
        Gathering gathering = std::move(pull_->gathering);
        pull_.reset();
        if (gathering.verified())
            handler_.pulled(object, gathering.bytes());
        else
            handler_.failed(LinkError::wrong_crc, KERN_SUCCESS);
        return;
    }
    auto& grants = pull_->grants;
    std::uint32_t granted = granted_bytes();
    const std::uint32_t most = window();
    if (granted > most / 2)
        return;
    const auto unheard = static_cast<std::size_t>(
        std::count_if(grants.begin(), grants.end(),
                      [&](const Grant& grant) { return grant.number > pull_->heard; }));
    // Requests take a quarter of the way back at most.
    if (unheard != 0 && now_ < pull_->sent + 4 * line_time(frame_size_on_line(request_size())))
        return;
    std::size_t room = std::min(ReadRequest::max_ranges, request_size() - read_head_size);
    room -= std::min(room, unheard);
    const auto grant = [&](const Range& range) {
        const std::uint32_t length = std::min(range.length, align_up(most - granted));
        if (length == 0 || room == 0)
            return;
        grants.push_back({.number = ++granted_,
                          .rest = {.offset = range.offset, .length = length},
                          .payload = payload_});
        granted += length;
        --room;
    };
    const std::vector<Range> wanted = ungranted();
    const std::uint32_t before = granted_;
    auto next = wanted.begin();
    for (; next != wanted.end() && room > 1 && granted < most; ++next)
        grant(*next);
    // What was lost piece by piece hardly keeps the line busy: the longest stretch does.
    const auto longest = std::max_element(
        next, wanted.end(),
        [](const Range& one, const Range& other) { return one.length < other.length; });
    if (longest != wanted.end() && granted < most)
        grant(*longest);
    if (granted_ != before)
        send_grants();
}

std::vector<Range> Host::ungranted() const {
    std::vector<Range> under_way;
    for (const Grant& grant : pull_->grants)
        under_way.push_back(grant.rest);
    std::sort(under_way.begin(), under_way.end(),
              [](const Range& one, const Range& other) { return one.offset < other.offset; });
    std::vector<Range> wanted;
    auto next = under_way.begin();
    const auto want = [&](std::uint32_t begin, std::uint32_t end) {
        if (begin >= end)
            return;
        // Earlier pieces may have been cut at other places.
        begin -= begin % read_unit;
        end = std::min(align_up(end), pull_->object.size);
        wanted.push_back({.offset = begin, .length = end - begin});
    };
    for (const Range& range : pull_->gathering.missing()) {
        std::uint32_t at = range.offset;
        while (next != under_way.end() && end_of(*next) <= at)
            ++next;
        for (auto other = next; other != under_way.end() && other->offset < end_of(range);
             ++other) {
            want(at, other->offset);
            at = std::max(at, end_of(*other));
        }
        want(at, end_of(range));
    }
    return wanted;
}

std::size_t Host::request_size() const {
    // On a lossy line a short request gets through where a long one does not.
    return std::clamp<std::size_t>(payload_, 48, 128);
}

void Host::send_grants() {
    auto& grants = pull_->grants;
    const auto first = std::find_if(grants.begin(), grants.end(), [&](const Grant& grant) {
        return grant.number > pull_->heard;
    });
    if (first == grants.end())
        return;
    ReadRequest request;
    request.name = pull_->object.name;
    request.first = first->number;
    request.payload = payload_;
    request.kept =
        static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(first - grants.begin(), UINT8_MAX));
    std::size_t told = 0;
    for (auto grant = first; grant != grants.end(); ++grant) {
        grant->payload = payload_;
        request.ranges[request.count++] = grant->rest;
        told += grant->number <= pull_->told ? 1u : 0u;
    }
    const RequestHead head = {
        .session = session_, .sequence = request.name, .operation = Operation::read};
    MessageBuffer message;
    ReadRequest brief = request;
    (void)encode_request(message, head, {});
    if (!encode_read(message, brief, request_size()) || brief.count < told) {
        // But what it may have already is never taken back.
        brief = request;
        brief.count = std::max(told, std::size_t{1});
        (void)encode_request(message, head, {});
        if (!encode_read(message, brief, max_message_size - message.bytes().size()))
            return;
    }
    // What found no room was not granted.
    pull_->told = brief.first + static_cast<std::uint32_t>(brief.count) - 1;
    while (grants.back().number > pull_->told)
        grants.pop_back();
    granted_ = pull_->told;
    send_message(message);
    pull_->sent = now_;
    expect_grants();
    if (pull_->silence == 0)
        expect_data();
}

void Host::expect_grants() {
    pull_->repeat = 0;
    std::size_t ahead = 0;
    for (const Grant& grant : pull_->grants) {
        if (grant.number > pull_->heard) {
            pull_->repeat = answer_time() + line_time(ahead);
            return;
        }
        ahead += grant.rest.length;
    }
}

void Host::expect_data() {
    pull_->silence = pull_->grants.empty() ? 0 : answer_time() + line_time(payload_);
}

// Time passes.

void Host::tick(std::uint64_t now) {
    now_ = now;
    if (hello_ && now >= hello_->give_up) {
        hello_.reset();
        if (change_ == Change::trying) {
            return_baud_rate();
        } else {
            fail(LinkError::no_answer);
            return;
        }
    }
    if (request_ && now >= request_->give_up) {
        fail(LinkError::no_answer);
        return;
    }
    if (pull_ && now >= pull_->give_up) {
        if (pull_->gathering.received() - pull_->received_then < least_progress) {
            if (now - heard_ < options_.patience) {
                fail_pull(LinkError::too_lossy);
            } else {
                fail(LinkError::no_answer);
                return;
            }
        } else {
            pull_->received_then = pull_->gathering.received();
            pull_->give_up = now + options_.patience;
        }
    }
    for (auto* exchange : {&hello_, &request_}) {
        if (*exchange && now >= (*exchange)->retry) {
            ++statistics_.retries;
            send(**exchange);
        }
    }
    if (pull_ && pull_->silence != 0 && now >= pull_->silence) {
        // Nothing comes: all of it is lost, or the request was. Smaller frames may get through.
        ++pull_->silences;
        pull_->grants.clear();
        pull_->heard = granted_;
        pull_->silence = 0;
        if (pull_->silences > 1) {
            set_payload(payload_ / 2);
            lost_frames_ = 2;
            seen_bytes_ = lost_frames_ * payload_ * (payload_ + frame_cost) / frame_cost;
        }
        ++statistics_.retries;
        pump();
    } else if (pull_ && pull_->repeat != 0 && now >= pull_->repeat) {
        ++statistics_.retries;
        send_grants();
    }
    if (connected_ && !busy() && options_.heartbeat != 0 && now >= heard_ + options_.heartbeat)
        say_hello(options_.patience);
}

std::optional<std::uint64_t> Host::deadline() const {
    std::optional<Time> first;
    const auto at = [&](Time time) {
        if (!first || time < *first)
            first = time;
    };
    for (const auto* exchange : {&hello_, &request_}) {
        if (*exchange) {
            at((*exchange)->retry);
            at((*exchange)->give_up);
        }
    }
    if (pull_) {
        at(pull_->give_up);
        if (pull_->silence != 0)
            at(pull_->silence);
        if (pull_->repeat != 0)
            at(pull_->repeat);
    }
    if (connected_ && !busy() && options_.heartbeat != 0)
        at(heard_ + options_.heartbeat);
    return first;
}

void Host::fail(LinkError error, kern_return result) {
    connected_ = false;
    change_ = Change::none;
    hello_.reset();
    request_.reset();
    end_pull();
    handler_.failed(error, result);
}

void Host::fail_pull(LinkError error, kern_return result) {
    end_pull();
    handler_.failed(error, result);
}

}  // namespace kcdata::serial
