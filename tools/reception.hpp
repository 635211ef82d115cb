#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kcdata/serial/receiver.hpp"
#include "tools/descriptor.hpp"
#include "tools/failure.hpp"
#include "tools/progress_meter.hpp"

namespace tools {

struct ReceptionOptions {
    /// The first capture goes here, the second to NAME-2.EXT and so on; - is standard output.
    std::string output = "stackshot.kcdata";
    /// Every byte of the line goes here; empty: nowhere.
    std::string log{};
    /// Console text goes to standard error.
    bool hide_console = false;
    /// How many captures are wanted; 0: all there are.
    unsigned count = 1;
    /// Seconds a live line may take to begin a capture, and then for each further frame; 0: any.
    unsigned timeout = 60;
};

/// Takes the bytes of a line apart, writes each capture to a file as soon as it is complete and
/// verified, shows console text and progress, and names what is missing or damaged.
class Reception final : private kcdata::serial::ReceiverHandler {
  public:
    explicit Reception(ReceptionOptions options);

    /// Opens the log. To be called before anything else.
    std::optional<Failure> open();

    void feed(std::span<const std::byte> bytes);
    /// The captures that were wanted are written, or one could not be.
    bool done() const;
    /// Valid frames so far: it stands still when the target does.
    std::uint64_t frames() const { return frames_; }
    unsigned captures() const { return written_; }

    /// The line ended, or nobody wants to wait any longer. Says what is missing, and writes the
    /// part of an unfinished capture that comes before the first gap to FILE.partial. Returns
    /// exit_complete if every capture that was wanted, or (count 0) has begun, was written;
    /// exit_damaged if something else was; exit_failure if nothing was.
    ExitStatus finish();

    /// The name of the file for capture `index`, from 0.
    static std::string file_name(const std::string& output, unsigned index);

  private:
    void text(std::span<const std::byte> bytes) override;
    void complete(std::uint32_t capture, std::vector<std::byte> bytes) override;
    void progress(const kcdata::serial::Progress& progress) override;
    void damaged(std::uint64_t position, std::size_t size) override;
    void abandoned(const kcdata::serial::PartialCapture& capture,
                   kcdata::serial::AbandonReason reason) override;

    void name_missing(const kcdata::serial::PartialCapture& capture, const char* fate);
    void salvage(const kcdata::serial::PartialCapture& capture);
    void note_failure(const Failure& failure);

    ReceptionOptions options_;
    kcdata::serial::Receiver receiver_;
    Descriptor log_{};
    ProgressMeter meter_{};
    bool at_line_start_ = true;
    std::uint64_t frames_ = 0;
    unsigned written_ = 0;
    unsigned salvaged_ = 0;
    bool incomplete_ = false;
    std::optional<ExitStatus> failed_{};
};

}  // namespace tools
