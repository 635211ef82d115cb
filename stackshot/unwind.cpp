#include "stackshot/unwind.hpp"

namespace stackshot {

namespace {

UnwindTables tables_of(const System& system) {
    std::uint64_t address = 0;
    const auto tables = system.unwind_tables(address);
    return UnwindTables(tables, address);
}

}  // namespace

/// The state of one walk: the registers of the function it has come to, as far as they are known.
class StackWalk {
  public:
    StackWalk(const Unwinder& unwinder, Quiesced& quiesced, const StackFacts& stack)
        : unwinder_(unwinder),
          quiesced_(quiesced),
          chain_(chain_from(unwinder, stack)),
          pc_(stack.registers.pc),
          lr_(stack.registers.lr),
          sp_(stack.registers.sp) {}

    Walk run(bool interrupted, std::span<std::uint64_t> frames) {
        std::size_t count = 0;
        while (count < frames.size()) {
            frames[count++] = pc_;
            if (interrupted) {
                if (!step_by_call_frame_information())
                    return {count, end_};
                interrupted = false;
            } else if (chain_.is_exception_entry(pc_)) {
                // A return address that entry code left behind: what it interrupted comes next.
                if (!enter_interrupted())
                    return {count, end_};
                interrupted = true;
            } else {
                const Followed followed = unwinder_.system_.follow_frame_records(
                    quiesced_, chain_, frames.subspan(count));
                count += followed.count;
                if (!followed.exception_entry)
                    return {count, followed.end};
                pc_ = frames[--count];
            }
        }
        return {count, WalkEnd::too_deep};
    }

  private:
    static FrameChain chain_from(const Unwinder& unwinder, const StackFacts& stack) {
        FrameChain chain;
        chain.stack = {stack.low, stack.high};
        chain.fp = stack.registers.fp;
        chain.floor = chain.stack.contains(stack.registers.sp, 0) ? stack.registers.sp : stack.low;
        chain.entry_low = unwinder.exception_entry_low_;
        chain.entry_high = unwinder.exception_entry_high_;
        return chain;
    }

    bool stop(WalkEnd end) {
        end_ = end;
        return false;
    }

    bool read(std::uint64_t address, std::span<std::uint64_t> words) {
        if (address % sizeof(std::uint64_t) != 0)
            return stop(WalkEnd::misaligned);
        if (!chain_.stack.contains(address, words.size_bytes()))
            return stop(WalkEnd::outside_stack);
        if (!unwinder_.system_.read_words(quiesced_, address, words))
            return stop(WalkEnd::unreadable);
        return true;
    }

    bool step_by_call_frame_information() {
        FrameRule rule;
        switch (unwinder_.tables_.find(pc_, rule)) {
            case CfiStatus::found:
                break;
            case CfiStatus::no_entry:
                rule = FrameRule{};
                break;
            case CfiStatus::malformed:
            case CfiStatus::unsupported:
                return stop(WalkEnd::unwind_information);
        }
        const std::uint64_t base = rule.cfa_base == FrameRule::Base::fp ? chain_.fp : sp_;
        const std::uint64_t cfa = base + static_cast<std::uint64_t>(rule.cfa_offset);
        std::uint64_t caller_fp = 0;
        std::uint64_t return_address = 0;
        if (!recover(rule.frame_pointer, cfa, chain_.fp, caller_fp) ||
            !recover(rule.return_address, cfa, lr_, return_address))
            return false;
        if (!move_to(cfa, caller_fp))
            return false;
        pc_ = return_address;
        return return_address != 0 || stop(WalkEnd::end_of_stack);
    }

    bool recover(const FrameRule::Slot& slot, std::uint64_t cfa, std::uint64_t in_register,
                 std::uint64_t& value) {
        switch (slot.saved) {
            case FrameRule::Saved::in_register:
                value = in_register;
                return true;
            case FrameRule::Saved::at_offset:
                return read(cfa + static_cast<std::uint64_t>(slot.offset),
                            std::span<std::uint64_t>(&value, 1));
            case FrameRule::Saved::undefined:
                value = 0;
                return true;
            case FrameRule::Saved::elsewhere:
                break;
        }
        return stop(WalkEnd::unwind_information);
    }

    bool enter_interrupted() {
        Registers interrupted{};
        if (!unwinder_.system_.interrupted_registers(quiesced_, pc_, chain_.fp, interrupted))
            return stop(WalkEnd::exception_frame);
        pc_ = interrupted.pc;
        lr_ = interrupted.lr;
        return move_to(interrupted.sp, interrupted.fp);
    }

    /// The walk has come to a function with this stack pointer and frame pointer.
    bool move_to(std::uint64_t sp, std::uint64_t fp) {
        if (chain_.stack.contains(sp, 0)) {
            if (sp < chain_.floor)
                return stop(WalkEnd::not_upward);
            chain_.floor = sp;
        }
        sp_ = sp;
        chain_.fp = fp;
        return true;
    }

    const Unwinder& unwinder_;
    Quiesced& quiesced_;
    FrameChain chain_;
    std::uint64_t pc_;
    std::uint64_t lr_;
    std::uint64_t sp_;
    WalkEnd end_ = WalkEnd::end_of_stack;
};

Unwinder::Unwinder(System& system)
    : system_(system),
      tables_(tables_of(system)),
      exception_entry_low_(system.facts().exception_entry_low),
      exception_entry_high_(system.facts().exception_entry_high) {}

Walk Unwinder::walk(Quiesced& quiesced, const StackFacts& stack,
                    std::span<std::uint64_t> frames) const {
    const Registers& r = stack.registers;
    if (r.pc == 0 && r.lr == 0 && r.fp == 0 && r.sp == 0)
        return {};
    return StackWalk(*this, quiesced, stack).run(stack.interrupted, frames);
}

const char* walk_end_text(WalkEnd end) {
    switch (end) {
        case WalkEnd::end_of_stack:
            return "end of stack";
        case WalkEnd::too_deep:
            return "too deep";
        case WalkEnd::misaligned:
            return "misaligned frame pointer";
        case WalkEnd::outside_stack:
            return "frame record outside the stack";
        case WalkEnd::not_upward:
            return "frame record not above the one before";
        case WalkEnd::unreadable:
            return "unreadable frame record";
        case WalkEnd::exception_frame:
            return "unreadable exception frame";
        case WalkEnd::unwind_information:
            return "unusable call frame information";
    }
    return "unknown";
}

}  // namespace stackshot
