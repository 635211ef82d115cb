#include "stackshot/unwind.hpp"

namespace stackshot {

namespace {

UnwindTables tables_of(const System& system) {
    std::uint64_t address = 0;
    const auto tables = system.unwind_tables(address);
    return UnwindTables(tables, address);
}

struct StackRange {
    std::uint64_t low = 0, high = 0;

    /// Whether `size` bytes at `address` lie inside.
    bool contains(std::uint64_t address, std::uint64_t size) const {
        return address >= low && address <= high && size <= high - address;
    }
};

}  // namespace

/// The state of one walk: the registers of the function it has come to, as far as they are known.
class StackWalk {
  public:
    StackWalk(const Unwinder& unwinder, Quiesced& quiesced, const StackFacts& stack)
        : unwinder_(unwinder),
          quiesced_(quiesced),
          stack_{stack.low, stack.high},
          registers_(stack.registers),
          floor_(stack_.contains(registers_.sp, 0) ? registers_.sp : stack_.low) {}

    Walk run(bool interrupted, std::span<std::uint64_t> frames) {
        std::size_t count = 0;
        while (count < frames.size()) {
            frames[count++] = registers_.pc;
            // A return address that entry code left behind: what it interrupted comes next.
            if (!interrupted && is_exception_entry(registers_.pc)) {
                if (!enter_interrupted())
                    return {count, end_};
                interrupted = true;
                continue;
            }
            if (interrupted ? !step_by_call_frame_information() : !step_by_frame_record())
                return {count, end_};
            interrupted = false;
        }
        return {count, WalkEnd::too_deep};
    }

  private:
    bool stop(WalkEnd end) {
        end_ = end;
        return false;
    }

    bool is_exception_entry(std::uint64_t return_address) const {
        return return_address > unwinder_.exception_entry_low_ &&
               return_address <= unwinder_.exception_entry_high_;
    }

    bool read(std::uint64_t address, std::span<std::uint64_t> words) {
        if (address % sizeof(std::uint64_t) != 0)
            return stop(WalkEnd::misaligned);
        if (!stack_.contains(address, words.size_bytes()))
            return stop(WalkEnd::outside_stack);
        if (!unwinder_.system_.read_words(quiesced_, address, words))
            return stop(WalkEnd::unreadable);
        return true;
    }

    bool step_by_frame_record() {
        const std::uint64_t fp = registers_.fp;
        if (fp == 0)
            return stop(WalkEnd::end_of_stack);
        if (fp < floor_ && stack_.contains(fp, 0))
            return stop(WalkEnd::not_upward);
        std::uint64_t record[2];
        if (!read(fp, record))
            return false;
        floor_ = fp + sizeof(record);
        registers_.sp = floor_;
        registers_.fp = record[0];
        registers_.pc = record[1];
        return registers_.pc != 0 || stop(WalkEnd::end_of_stack);
    }

    bool step_by_call_frame_information() {
        FrameRule rule;
        switch (unwinder_.tables_.find(registers_.pc, rule)) {
            case CfiStatus::found:
                break;
            case CfiStatus::no_entry:
                rule = FrameRule{};
                break;
            case CfiStatus::malformed:
            case CfiStatus::unsupported:
                return stop(WalkEnd::unwind_information);
        }
        const std::uint64_t base =
            rule.cfa_base == FrameRule::Base::fp ? registers_.fp : registers_.sp;
        const std::uint64_t cfa = base + static_cast<std::uint64_t>(rule.cfa_offset);
        std::uint64_t caller_fp = 0;
        std::uint64_t return_address = 0;
        if (!recover(rule.frame_pointer, cfa, registers_.fp, caller_fp) ||
            !recover(rule.return_address, cfa, registers_.lr, return_address))
            return false;
        if (stack_.contains(cfa, 0)) {
            if (cfa < floor_)
                return stop(WalkEnd::not_upward);
            floor_ = cfa;
        }
        registers_.sp = cfa;
        registers_.fp = caller_fp;
        registers_.pc = return_address;
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
        if (!unwinder_.system_.interrupted_registers(quiesced_, registers_.pc, registers_.fp,
                                                     interrupted))
            return stop(WalkEnd::exception_frame);
        registers_ = interrupted;
        if (stack_.contains(registers_.sp, 0)) {
            if (registers_.sp < floor_)
                return stop(WalkEnd::not_upward);
            floor_ = registers_.sp;
        }
        return true;
    }

    const Unwinder& unwinder_;
    Quiesced& quiesced_;
    StackRange stack_;
    Registers registers_;
    /// No frame record lies below this.
    std::uint64_t floor_;
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
