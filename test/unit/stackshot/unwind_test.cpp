#include "stackshot/unwind.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "fake_system.hpp"

using namespace stackshot;

namespace {

using Frames = std::vector<std::uint64_t>;

constexpr std::uint64_t code = 0xffff'0000'0008'0000;
constexpr std::uint64_t stack_low = 0xffff'0000'4000'0000;
constexpr std::uint64_t stack_high = stack_low + 0x4000;

/// A thread's stack in a fake system, written word by word.
struct Fixture {
    FakeSystem system{1};
    StackFacts stack{};
    FakeQuiesced quiesced{0};
    Walk walk{};

    Fixture() {
        stack.low = stack_low;
        stack.high = stack_high;
    }

    /// A frame record at `offset` into the stack.
    void record(std::uint64_t offset, std::uint64_t next_fp, std::uint64_t return_address) {
        put(stack_low + offset, next_fp);
        put(stack_low + offset + 8, return_address);
    }
    void put(std::uint64_t address, std::uint64_t value) {
        system.map(address, 1);
        system.word(address) = value;
    }

    Frames run(std::size_t room = Unwinder::max_frames) {
        Frames frames(room);
        const Unwinder unwinder(system);
        walk = unwinder.walk(quiesced, stack, frames);
        frames.resize(walk.count);
        return frames;
    }
};

/// .eh_frame_hdr and .eh_frame for one function of 32 instructions at `code` with the prologue
/// sub sp, sp, #48; stp x29, x30, [sp]; mov x29, sp; and the epilogue ldp; add sp; ret at +28..+36.
std::vector<std::byte> one_function_tables(std::uint64_t address) {
    std::vector<std::uint32_t> words{0x3b031b01, 0, 1};
    words.push_back(static_cast<std::uint32_t>(code - address));
    words.push_back(40);
    // At 20: the CIE. Length 16, id 0, version 1, "zR", 4, -8, 30, 1, pcrel sdata4, CFA sp+0.
    words.insert(words.end(), {16, 0, 0x00527a01, 0x011e7804, 0x001f0c1b});
    // At 40: the FDE.
    const std::uint8_t instructions[] = {
        0,                                          // no augmentation data
        0x41, 0x0e,      48,                        // +4: CFA sp+48
        0x41, 0x80 | 29, 6,  0x80 | 30, 5,          // +8: both saved
        0x41, 0x0d,      29,                        // +12: CFA x29+48
        0x44, 0x0d,      31, 0xc0 | 29, 0xc0 | 30,  // +28: loaded again, CFA sp+48
        0x41, 0x0e,      0,                         // +32: as at the start
        0,    0,         0,  0};
    static_assert(sizeof(instructions) == 24);
    words.insert(words.end(), {12 + sizeof(instructions), 24,
                               static_cast<std::uint32_t>(code - (address + 48)), 128});
    const std::size_t at = words.size();
    words.resize(at + sizeof(instructions) / 4);
    std::memcpy(words.data() + at, instructions, sizeof(instructions));
    words.push_back(0);
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

/// A chain of two callers at 0x1000 and 0x1100 into the stack.
void two_callers(Fixture& f) {
    f.record(0x1000, stack_low + 0x1100, code + 0x444);
    f.record(0x1100, 0, code + 0x555);
}

}  // namespace

TEST_CASE("a blocked thread's stack begins with its resume PC and follows the frame records") {
    Fixture f;
    two_callers(f);
    f.stack.registers = {code + 0x200, 0, stack_low + 0x1000, stack_low + 0xff0};
    CHECK(f.run() == Frames{code + 0x200, code + 0x444, code + 0x555});
    CHECK(f.walk.end == WalkEnd::end_of_stack);
    CHECK_FALSE(f.walk.truncated());
}

TEST_CASE("a thread that was never run has the one entry it will start at") {
    Fixture f;
    f.stack.registers = {code, 0, 0, stack_high};
    CHECK(f.run() == Frames{code});
    CHECK_FALSE(f.walk.truncated());
}

TEST_CASE("registers that are all zero are no stack") {
    Fixture f;
    CHECK(f.run().empty());
    CHECK_FALSE(f.walk.truncated());
}

TEST_CASE("a record with a return address of 0 ends the stack") {
    Fixture f;
    f.record(0x1000, stack_low + 0x1100, 0);
    f.stack.registers = {code, 0, stack_low + 0x1000, stack_low + 0x1000};
    CHECK(f.run() == Frames{code});
    CHECK_FALSE(f.walk.truncated());
}

TEST_CASE("wherever an interrupt falls into a function its caller is not lost") {
    // sp at entry: 0x1030 into the stack; the function's frame is 0x1000 to 0x1030.
    constexpr std::uint64_t entry_sp = stack_low + 0x1030;
    constexpr std::uint64_t caller_fp = stack_low + 0x1100;
    constexpr std::uint64_t caller = code + 0x444;
    Fixture f;
    f.system.unwind_table_address = code - 0x10000;
    f.system.unwind_table = one_function_tables(f.system.unwind_table_address);
    f.record(0x1100, 0, code + 0x555);
    f.stack.interrupted = true;
    for (std::uint64_t offset = 0; offset < 40; offset += 4) {
        INFO("interrupted at +" << offset);
        const bool allocated = offset >= 4 && offset < 32;
        const bool saved = offset >= 8 && offset < 28;
        const bool fp_set = offset >= 12 && offset < 28;
        // Until the record is stored, what lies there is an older frame's.
        f.record(0x1000, saved ? caller_fp : stack_low + 0x3000, saved ? caller : code + 0x999);
        f.stack.registers.pc = code + offset;
        f.stack.registers.sp = allocated ? entry_sp - 48 : entry_sp;
        f.stack.registers.fp = fp_set ? entry_sp - 48 : caller_fp;
        f.stack.registers.lr = fp_set ? code + 0x777 : caller;
        CHECK(f.run() == Frames{code + offset, caller, code + 0x555});
        CHECK(f.walk.end == WalkEnd::end_of_stack);
    }
}

TEST_CASE("a pc without call frame information is a leaf's: its caller is in LR") {
    Fixture f;
    f.system.unwind_table_address = code - 0x10000;
    f.system.unwind_table = one_function_tables(f.system.unwind_table_address);
    two_callers(f);
    f.stack.interrupted = true;
    f.stack.registers = {code + 0x8000, code + 0x333, stack_low + 0x1000, stack_low + 0x0f00};
    CHECK(f.run() == Frames{code + 0x8000, code + 0x333, code + 0x444, code + 0x555});
    f.system.unwind_table.clear();
    CHECK(f.run() == Frames{code + 0x8000, code + 0x333, code + 0x444, code + 0x555});
}

TEST_CASE("an interrupted PC that was jumped to from nowhere ends the stack") {
    Fixture f;
    f.stack.interrupted = true;
    f.stack.registers = {code + 0x8000, 0, 0, stack_high};
    CHECK(f.run() == Frames{code + 0x8000});
    CHECK_FALSE(f.walk.truncated());
}

TEST_CASE("damaged call frame information stops the walk, and says so") {
    Fixture f;
    f.system.unwind_table_address = code - 0x10000;
    f.system.unwind_table = one_function_tables(f.system.unwind_table_address);
    two_callers(f);
    f.stack.interrupted = true;
    f.stack.registers = {code + 16, code + 0x333, stack_low + 0x1000, stack_low + 0x1000};
    f.system.unwind_table[57] = std::byte{0x3f};
    CHECK(f.run() == Frames{code + 16});
    CHECK(f.walk.end == WalkEnd::unwind_information);
    CHECK(f.walk.truncated());
}

TEST_CASE("above an exception frame the interrupted PC follows, and its caller is not lost") {
    // The handler's record holds a return address in the entry code; x29 there is at 0x1080.
    constexpr std::uint64_t entry_code = 0xffff'0000'0000'0000;
    Fixture f;
    f.system.constant.exception_entry_low = entry_code;
    f.system.constant.exception_entry_high = entry_code + 0x1000;
    f.system.unwind_table_address = code - 0x10000;
    f.system.unwind_table = one_function_tables(f.system.unwind_table_address);
    f.record(0x1000, stack_low + 0x1080, entry_code + 0x204);
    f.record(0x1200, 0, code + 0x555);
    f.stack.registers = {code + 0x700, 0, stack_low + 0x1000, stack_low + 0x1000};
    Registers interrupted{code, code + 0x444, stack_low + 0x1200, stack_low + 0x1100};
    std::size_t asked = 0;
    bool readable = true;
    f.system.exception_hook = [&](std::uint64_t return_address, std::uint64_t frame_pointer,
                                  Registers& registers) {
        ++asked;
        CHECK(return_address == entry_code + 0x204);
        CHECK(frame_pointer == stack_low + 0x1080);
        registers = interrupted;
        return readable;
    };
    SECTION("interrupted on its first instruction") {
        CHECK(f.run() ==
              Frames{code + 0x700, entry_code + 0x204, code, code + 0x444, code + 0x555});
        CHECK_FALSE(f.walk.truncated());
        CHECK(asked == 1);
    }
    SECTION("registers that cannot be read") {
        readable = false;
        CHECK(f.run() == Frames{code + 0x700, entry_code + 0x204});
        CHECK(f.walk.end == WalkEnd::exception_frame);
    }
    SECTION("registers below the handler's own frame") {
        interrupted.sp = stack_low + 0xf00;
        CHECK(f.run() == Frames{code + 0x700, entry_code + 0x204});
        CHECK(f.walk.end == WalkEnd::not_upward);
    }
    SECTION("an exception frame that leads to itself over and over") {
        interrupted = {entry_code + 0x204, entry_code + 0x204, stack_low + 0x1080,
                       stack_low + 0x1100};
        f.system.exception_hook = [&](std::uint64_t, std::uint64_t, Registers& registers) {
            registers = interrupted;
            return true;
        };
        CHECK(f.run().size() == Unwinder::max_frames);
        CHECK(f.walk.end == WalkEnd::too_deep);
    }
    SECTION("an address just behind the entry code is somebody else's") {
        f.record(0x1000, 0, entry_code + 0x1001);
        CHECK(f.run() == Frames{code + 0x700, entry_code + 0x1001});
        f.record(0x1000, 0, entry_code);
        CHECK(f.run() == Frames{code + 0x700, entry_code});
        CHECK(asked == 0);
    }
}

TEST_CASE("hostile frame pointers end the walk with their reason") {
    Fixture f;
    two_callers(f);
    const auto walk_from = [&](std::uint64_t fp) {
        f.stack.registers = {code, 0, fp, stack_low + 0xff0};
        return f.run();
    };
    SECTION("misaligned") {
        CHECK(walk_from(stack_low + 0x1004) == Frames{code});
        CHECK(f.walk.end == WalkEnd::misaligned);
    }
    SECTION("outside the stack, above and below and around the end") {
        for (const std::uint64_t fp : {stack_low - 0x1000, stack_high, stack_high - 8,
                                       std::uint64_t{8}, ~std::uint64_t{7}}) {
            CHECK(walk_from(fp) == Frames{code});
            CHECK(f.walk.end == WalkEnd::outside_stack);
        }
    }
    SECTION("below the stack pointer") {
        f.record(0x800, stack_low + 0x1000, code + 0x111);
        CHECK(walk_from(stack_low + 0x800) == Frames{code});
        CHECK(f.walk.end == WalkEnd::not_upward);
    }
    SECTION("a record that points to itself") {
        f.record(0x1000, stack_low + 0x1000, code + 0x444);
        CHECK(walk_from(stack_low + 0x1000) == Frames{code, code + 0x444});
        CHECK(f.walk.end == WalkEnd::not_upward);
    }
    SECTION("a circle of records") {
        f.record(0x1100, stack_low + 0x1000, code + 0x555);
        CHECK(walk_from(stack_low + 0x1000) == Frames{code, code + 0x444, code + 0x555});
        CHECK(f.walk.end == WalkEnd::not_upward);
    }
    SECTION("records that overlap") {
        f.record(0x1000, stack_low + 0x1008, code + 0x444);
        CHECK(walk_from(stack_low + 0x1000) == Frames{code, code + 0x444});
        CHECK(f.walk.end == WalkEnd::not_upward);
    }
    SECTION("a record that cannot be read, or only half of it") {
        f.system.unmap(stack_low + 0x1108);
        CHECK(walk_from(stack_low + 0x1000) == Frames{code, code + 0x444});
        CHECK(f.walk.end == WalkEnd::unreadable);
    }
    SECTION("a stack without bounds") {
        f.stack.low = f.stack.high = 0;
        CHECK(walk_from(stack_low + 0x1000) == Frames{code});
        CHECK(f.walk.end == WalkEnd::outside_stack);
    }
    SECTION("bounds the wrong way round") {
        std::swap(f.stack.low, f.stack.high);
        CHECK(walk_from(stack_low + 0x1000) == Frames{code});
        CHECK(f.walk.end == WalkEnd::outside_stack);
    }
    CHECK(f.walk.truncated());
    CHECK(std::string(walk_end_text(f.walk.end)) != "unknown");
}

TEST_CASE("the stack pointer of an interrupted thread is no licence to read elsewhere") {
    Fixture f;
    f.system.unwind_table_address = code - 0x10000;
    f.system.unwind_table = one_function_tables(f.system.unwind_table_address);
    f.stack.interrupted = true;
    // Readable, but not this thread's stack.
    f.put(0xffff'0000'7000'0000, 0);
    f.put(0xffff'0000'7000'0008, code + 0x444);
    f.stack.registers = {code + 8, 0, 0, 0xffff'0000'7000'0000};
    CHECK(f.run() == Frames{code + 8});
    CHECK(f.walk.end == WalkEnd::outside_stack);
    f.stack.registers.sp = stack_low + 0x1001;
    CHECK(f.run() == Frames{code + 8});
    CHECK(f.walk.end == WalkEnd::misaligned);
}

TEST_CASE("a walk is as deep as it may be, and says if there was more") {
    Fixture f;
    constexpr std::size_t depth = Unwinder::max_frames;
    f.stack.high = stack_low + 32 * (depth + 10);
    for (std::size_t n = 0; n < depth; ++n)
        f.record(32 * n, n + 1 == depth ? 0 : stack_low + 32 * (n + 1),
                 n + 1 == depth ? 0 : code + n);
    f.stack.registers = {code, 0, stack_low, stack_low};
    CHECK(f.run().size() == depth);
    CHECK_FALSE(f.walk.truncated());
    CHECK(f.run(depth - 1).size() == depth - 1);
    CHECK(f.walk.end == WalkEnd::too_deep);
    CHECK(f.run(0).empty());
    CHECK(f.walk.truncated());
}
