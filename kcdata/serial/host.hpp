#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kcdata/serial/frame.hpp"
#include "kcdata/serial/gathering.hpp"
#include "kcdata/serial/line.hpp"
#include "kcdata/serial/message.hpp"

namespace kcdata::serial {

/// Why the host gave something up.
enum class LinkError : std::uint8_t {
    no_answer,         ///< nothing that is valid came for HostOptions::patience
    too_lossy,         ///< something comes, but hardly anything is whole
    target_restarted,  ///< another boot answers than the one that was asked
    wrong_version,     ///< the other end speaks another version of the protocol
    refused,           ///< the unikernel refuses the range: the object is gone (Failure::result)
    wrong_crc,         ///< all bytes are there, and are not the object that was named
    baud_rate,         ///< no answer at the new rate; the line is back at the one before
};
const char* link_error_text(LinkError error);

/// What Host tells.
class HostHandler {
  public:
    /// Console text or noise; see LineHandler::text.
    virtual void text(std::span<const std::byte> bytes) = 0;
    /// `size` bytes of the line from `position` on were a frame once.
    virtual void damaged(std::uint64_t, std::size_t) {}
    /// The unikernel is there: connect() is done. Again if it was restarted, after failed().
    virtual void connected(const HelloAnswer& answer) = 0;
    /// The request is done, or refused: see Answer::head.result. The body is valid during the call
    /// only. New requests may be made from here.
    virtual void answered(const Answer& answer) = 0;
    /// All bytes of an object arrived, and its CRC is right.
    virtual void pulled(const ObjectDescription& object, std::vector<std::byte> bytes) = 0;
    virtual void progress(const Progress&) {}
    /// New bytes of the object being pulled, as a data frame. A file to which each is appended with
    /// write_data_frame() is what Host::resume() takes, and what `extract` reads.
    virtual void piece(const DataFrame&) {}
    /// connect(), the request or the pull under way ended without success. After refused, wrong_crc
    /// and too_lossy the others go on; after all the rest nothing is under way any more.
    virtual void failed(LinkError error, kern_return result) = 0;
    /// Changes the rate of this end's line. False: it cannot run at that.
    virtual bool set_baud_rate(std::uint32_t baud_rate) = 0;

  protected:
    ~HostHandler() = default;
};

struct HostOptions {
    Encoding encoding = Encoding::binary;
    /// Microseconds without anything new after which it is given up.
    std::uint64_t patience = 10'000'000;
    /// The same for the answer to a request that the unikernel is working on.
    std::uint64_t working_patience = 120'000'000;
    /// Most bytes of an object on their way: what the host can always hold (a Linux tty: 64 KiB).
    std::uint32_t max_window = 48 << 10;
    /// An idle line is asked for a sign of life so often; 0: never.
    std::uint64_t heartbeat = 2'000'000;
};

/// What a pull has cost.
struct HostStatistics {
    std::uint64_t bytes_received = 0;  ///< of the line, in all
    std::uint64_t bytes_sent = 0;
    std::uint64_t payload_received = 0;  ///< bytes of objects that were new
    std::uint64_t payload_repeated = 0;  ///< bytes of objects that were there already
    std::uint64_t frames_lost = 0;       ///< data frames, estimated
    std::uint64_t requests = 0, retries = 0;
    std::uint16_t payload = 0;  ///< of a frame, now
};

/// The host's end of the line: one request and one pull at a time, of which neither waits for the
/// other. Host only: it allocates. Time is passed in, in microseconds of any clock that does not go
/// back. Whatever the line does, everything ends with an answer or with failed().
class Host final : private LineHandler {
  public:
    /// `session`: drawn at random, not 0. `handler` and `sink` outlive this.
    Host(HostHandler& handler, ByteSink& sink, std::uint32_t session,
         const HostOptions& options = {});

    /// Says hello. First of all, and again after failed() to begin anew; everything under way is
    /// forgotten, but not what has been pulled.
    void connect(std::uint64_t now);
    bool connected() const { return connected_; }

    /// Makes a request other than hello and read. KERN_LOCK_OWNED: one is under way.
    /// KERN_NOT_IN_SET: not connected. KERN_INVALID_ARGUMENT: the body is too long.
    kern_return request(Operation operation, std::span<const std::byte> body, std::uint64_t now);
    /// Asks for another rate: answered() when both ends run at it or the unikernel refuses,
    /// failed(baud_rate) when both are back at the rate before. Nothing is pulled meanwhile. Errors
    /// as of request(); KERN_LOCK_OWNED also: an object is being pulled.
    kern_return change_baud_rate(std::uint32_t baud_rate, std::uint64_t now);

    /// Pulls an object. KERN_LOCK_OWNED: one is being pulled, or the rate is being changed.
    /// KERN_NOT_IN_SET: not connected. KERN_INVALID_ARGUMENT: its size is 0.
    kern_return pull(const ObjectDescription& object, std::uint64_t now);
    /// Data frames of earlier pulls (HostHandler::piece): what they hold is not pulled again.
    /// Before pull(). Any bytes may be given; what is no frame is ignored.
    void resume(std::span<const std::byte> frames);
    /// Stops the pull under way.
    void cancel_pull();

    /// Takes bytes of the line.
    void receive(std::span<const std::byte> bytes, std::uint64_t now);
    /// Makes what is due at `now`.
    void tick(std::uint64_t now);
    /// When tick() has something to do at the latest; nothing is due: none.
    std::optional<std::uint64_t> deadline() const;
    bool busy() const { return hello_ || request_ || pull_; }
    const HostStatistics& statistics() const { return statistics_; }

  private:
    using Time = std::uint64_t;

    /// A request until it is answered.
    struct Exchange {
        Operation operation{};
        std::uint32_t sequence = 0;
        MessageBuffer message{};
        Time retry = 0;  ///< when it is sent again
        Time give_up = 0;
        bool working = false;
    };
    /// How far a change of rate is.
    enum class Change : std::uint8_t {
        none,
        asked,      ///< the request is under way
        trying,     ///< both ends should run at the new rate: hello is under way
        returning,  ///< both ends go back: hello is under way
    };
    /// A range the unikernel was granted, as far as it is not known what became of it.
    struct Grant {
        std::uint32_t number;
        Range rest;
        std::uint16_t payload;
    };
    struct Pull {
        ObjectDescription object;
        Gathering gathering;
        std::deque<Grant> grants{};
        std::uint32_t told = 0;   ///< number of the last grant that was sent
        std::uint32_t heard = 0;  ///< number of the last grant something came of
        Time sent = 0;            ///< when grants were sent last
        Time silence = 0;         ///< when what is granted counts as lost
        unsigned silences = 0;    ///< in a row
        Time repeat = 0;          ///< when grants nothing was heard of are repeated
        Time give_up = 0;
        std::uint32_t received_then = 0;  ///< what was there when give_up was set
    };

    void text(std::span<const std::byte> bytes) override;
    void frame(const Frame& frame) override;
    void damaged(std::uint64_t position, std::size_t size) override;

    void take_answer(const Answer& answer);
    void take_hello(const Answer& answer);
    void take_data(const DataFrame& data);
    /// Notes what became of the grants when a frame of `range` arrived.
    void settle_grants(const Range& range);
    void note_frames(std::uint32_t arrived, std::uint32_t lost, std::size_t payload);

    void start(std::optional<Exchange>& exchange, Operation operation, std::uint32_t sequence,
               std::span<const std::byte> body, Time patience);
    void say_hello(Time patience);
    void send(Exchange& exchange);
    void send_message(const MessageBuffer& message);
    void try_baud_rate();
    void return_baud_rate();

    /// Grants what there is room for in the window, and tells the unikernel.
    void pump();
    void send_grants();
    /// Sets the time by which something should have come, and come of grants nothing was heard of.
    void expect_data();
    void expect_grants();
    /// What is missing and not under way, widened to whole units.
    std::vector<Range> ungranted() const;
    /// Bytes of a read request's body.
    std::size_t request_size() const;
    void set_payload(double payload);
    void end_pull();
    void fail(LinkError error, kern_return result = KERN_SUCCESS);
    void fail_pull(LinkError error, kern_return result = KERN_SUCCESS);
    Gathering take_kept(std::uint32_t name, std::uint32_t size);
    void keep(Gathering&& gathering);

    /// Microseconds that so many bytes take on the line.
    Time line_time(std::size_t bytes) const;
    /// When a request that was sent now should have been answered.
    Time answer_time() const;
    std::uint32_t window() const;
    std::uint32_t granted_bytes() const;

    HostHandler& handler_;
    ByteSink& sink_;
    HostOptions options_;
    std::uint32_t session_;
    std::uint32_t sequence_ = 0;
    std::uint32_t hello_sequence_ = 0;
    std::uint32_t granted_ = 0;  ///< number of the last grant
    bool connected_ = false;
    HelloAnswer peer_{};
    std::uint32_t baud_rate_ = 0;  ///< of the line now; 0: not known
    Time now_ = 0;
    Time heard_ = 0;  ///< when the last valid frame came
    std::optional<Exchange> hello_{};
    std::optional<Exchange> request_{};
    Change change_ = Change::none;
    std::uint32_t old_baud_rate_ = 0, new_baud_rate_ = 0;
    std::optional<Pull> pull_{};
    std::vector<Gathering> kept_{};
    /// What the line does to frames: how many were lost lately, among how many bytes.
    double lost_frames_ = 0, seen_bytes_ = 0;
    std::uint64_t seen_frames_ = 0;
    std::uint16_t payload_ = 0;
    HostStatistics statistics_{};
    Line::Room<max_frame_body> line_room_{};
    Line line_;
};

}  // namespace kcdata::serial
