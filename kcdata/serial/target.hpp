#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kcdata/serial/frame.hpp"
#include "kcdata/serial/line.hpp"
#include "kcdata/serial/message.hpp"

namespace kcdata::serial {

/// What the unikernel does for a host. Called by Target's functions, in the context of those; may
/// block. Each is called once for a request, however often it arrives. KERN_INVALID_OBJECT means to
/// the host that its session is not known: as an operation's result it becomes KERN_FAILURE.
class TargetCommands {
  public:
    /// Takes a capture and keeps it as an object, in place of the one taken before.
    virtual Result<ObjectDescription> take_stackshot(const StackshotRequest& request) = 0;
    /// The capture that the kernel retains (STACKSHOT_SAVE_IN_KERNEL_BUFFER), as an object from
    /// now on. KERN_NOT_IN_SET: there is none.
    virtual Result<ObjectDescription> retrieve_retained() = 0;
    /// The captures that can be pulled, newest first; how many.
    virtual std::size_t list_captures(std::span<ObjectDescription, max_listed> list) = 0;
    /// Lets go of an object. KERN_NOT_IN_SET: there is none of that name.
    virtual kern_return release(std::uint32_t name) = 0;
    /// Operation::tasks, statistics or trace: makes a text and keeps it as an object, in place of
    /// the one made before.
    virtual Result<ObjectDescription> write_text(Operation operation) = 0;
    virtual kern_return run_workload(std::string_view name_and_arguments) = 0;
    virtual kern_return stop_workload(std::string_view name) = 0;

    /// Whether the line can run at this rate. KERN_NOT_SUPPORTED, KERN_INVALID_VALUE: why not.
    virtual kern_return check_baud_rate(std::uint32_t baud_rate) = 0;
    /// Drains the line and changes its rate, one that was checked or that it had before.
    virtual void set_baud_rate(std::uint32_t baud_rate) = 0;
    /// Both after the answer was written: drain the line first.
    virtual void reboot() = 0;
    virtual void power_off() = 0;

    /// The bytes of an object, which stay until the next call of another function of this class;
    /// empty if there is none of that name.
    virtual std::span<const std::byte> object(std::uint32_t name, ObjectKind& kind) = 0;
    /// What came between frames: nobody's request.
    virtual void text(std::span<const std::byte>) {}

  protected:
    ~TargetCommands() = default;
};

/// The unikernel's end of the line. Allocates nothing and takes no lock: one thread at a time calls
/// it. Time is passed in, in microseconds of any clock that does not go back.
///
/// A command thread's loop: wait until bytes came, owes() or `now` is deadline(); receive() what
/// came; send_next() if it owes; tick().
///
/// The rate of the line: after the answer to Operation::baud_rate the line changes over. If no
/// valid frame comes within trial_time then, it goes back to the rate before; and if none comes
/// within silence_time later on, to the rate it had at first, where a host that starts anew looks
/// for it.
class Target final : private LineHandler {
  public:
    static constexpr std::uint64_t trial_time = 2'000'000;
    static constexpr std::uint64_t silence_time = 6'000'000;

    struct Options {
        std::uint32_t boot = 0;           ///< something else at each start
        std::uint32_t baud_rate = 0;      ///< of the line now
        std::uint32_t max_baud_rate = 0;  ///< what the UART's clock allows
    };
    /// `commands` and `sink` outlive this. Each frame is written to `sink` in any number of calls
    /// of write(), and ends with one of end_frame(). What the sink refuses is lost, as on the line.
    Target(TargetCommands& commands, ByteSink& sink, const Options& options);

    /// Takes bytes of the line: carries out requests and writes the answers.
    void receive(std::span<const std::byte> bytes, std::uint64_t now);
    /// Whether granted ranges are still to be sent.
    bool owes() const { return owed_count_ != 0; }
    /// Sends the next frame of what is granted, if anything is. After a sink's error, which it
    /// returns, the same frame is next.
    kern_return send_next();
    /// Goes back to the first rate if it is time to.
    void tick(std::uint64_t now);
    /// When tick() has something to do at the latest.
    std::optional<std::uint64_t> deadline() const;
    std::uint32_t baud_rate() const { return baud_rate_; }

  private:
    /// Answers are remembered for so many sessions, so that a stale hello costs nobody his.
    static constexpr std::size_t max_sessions = 4;
    static constexpr std::size_t max_owed = 128;

    struct Session {
        std::uint32_t id = 0;
        std::uint32_t sequence = 0;            ///< of the last request; 0: none yet
        Encoding encoding = Encoding::binary;  ///< of its last request
        std::uint32_t granted = 0;             ///< number of the last range taken
        std::uint64_t used = 0;                ///< the oldest one makes room
        Operation operation{};                 ///< of the last request
        MessageBuffer answer{};                ///< to it
    };
    struct Owed {
        std::uint32_t number;
        Range range;
        std::uint16_t payload;
    };

    void text(std::span<const std::byte> bytes) override;
    void frame(const Frame& frame) override;
    void damaged(std::uint64_t position, std::size_t size) override;

    Session* find_session(std::uint32_t id);
    Session& open_session(std::uint32_t id);
    void hello(const Request& request, Encoding encoding);
    void read(Session& session, const Request& request);
    void command(Session& session, const Request& request);
    /// What the answer to a command says; its body is appended to `body`.
    kern_return execute(const Request& request, MessageBuffer& body);
    void change_baud_rate(std::uint32_t baud_rate);
    void set_answer(Session& session, AnswerState state, kern_return result,
                    std::span<const std::byte> body);
    void send_answer(const Session& session);
    /// Says why a request outside of the sequence is not done.
    void refuse(const RequestHead& head, Encoding encoding, kern_return result);
    void settle_first();
    void forget_owed();

    TargetCommands& commands_;
    ByteSink& sink_;
    Options options_;
    std::uint32_t baud_rate_;
    std::uint32_t fallback_baud_rate_;
    std::uint64_t now_ = 0;
    std::optional<std::uint64_t> deadline_{};
    std::array<Session, max_sessions> sessions_{};
    std::uint64_t use_ = 0;
    /// What is owed, to whom, and of which object: a ring.
    std::array<Owed, max_owed> owed_{};
    std::size_t owed_first_ = 0, owed_count_ = 0;
    std::uint32_t owed_session_ = 0, owed_name_ = 0;
    Line::Room<max_message_size> line_room_{};
    Line line_;
};

}  // namespace kcdata::serial
