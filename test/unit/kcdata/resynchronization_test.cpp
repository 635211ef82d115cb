#include "kcdata/resynchronization.hpp"

#include <catch2/catch_test_macros.hpp>

#include "kcdata/format.hpp"
#include "kcdata/types.hpp"
#include "test/unit/kcdata/bytes.hpp"

using namespace kcdata;

namespace {

bool makes_sense(const Bytes& item) {
    return items_follow(item.get(), 0, 1);
}

/// An item as kernels write them.
Bytes& add_item(Bytes& bytes) {
    return bytes.header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 16, 0x88).u64(5).u64(0);
}

}  // namespace

TEST_CASE("an item makes sense if its type is known, and flags and size go with it") {
    Bytes good;
    CHECK(makes_sense(add_item(good)));
    CHECK(makes_sense(Bytes().header(KCDATA_TYPE_BUFFER_END, 0, 0)));
    CHECK(makes_sense(Bytes().header(KCDATA_BUFFER_BEGIN_STACKSHOT, 0, 0x80)));
    CHECK(makes_sense(Bytes().header(KCDATA_TYPE_CONTAINER_END, 0, 7)));
    CHECK(makes_sense(Bytes().header(KCDATA_TYPE_CONTAINER_BEGIN, 16, 7).fill(16, 0)));
    CHECK(makes_sense(Bytes().header(0x28, 16, 0x0000'0909'0000'0002).fill(16, 0)));
    CHECK(makes_sense(Bytes().header(KCDATA_TYPE_UINT64_DESC, 48, 0x88).fill(48, 0)));

    CHECK_FALSE(makes_sense(Bytes()));
    CHECK_FALSE(makes_sense(Bytes().header(0, 16, 0).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(0x7777, 16, 0x80).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(STACKSHOT_KCCONTAINER_TASK, 16, 0x80).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 16, 0x100).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 8, 0x80).fill(8, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 0, 0x80)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 32, 0x80).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_BUFFER_END, 0, 1)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_BUFFER_BEGIN_STACKSHOT, 16, 0x80).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_CONTAINER_END, 16, 7).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_CONTAINER_BEGIN, 4, 7).fill(4, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(0x28, 16, 0x0000'0909'0000'0003).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(0x28, 16, 0x0000'7777'0000'0002).fill(16, 0)));
    CHECK_FALSE(makes_sense(Bytes().header(KCDATA_TYPE_UINT64_DESC, 16, 0x88).fill(16, 0)));
}

TEST_CASE("items are found at a multiple of 16 where four follow, or all up to the end") {
    constexpr std::size_t damage = 48;
    Bytes four = Bytes().fill(damage, 0x41);
    for (int i = 0; i < 4; ++i)
        add_item(four);
    four.fill(16, 0x41);
    CHECK(find_items(four.get(), 5) == damage);
    // Behind the offset, not at it.
    CHECK(find_items(four.get(), damage) == four.get().size());

    Bytes three = Bytes().fill(damage, 0x41);
    for (int i = 0; i < 3; ++i)
        add_item(three);
    CHECK(find_items(three.get(), 0) == damage);
    Bytes cut = three;
    cut.header(KCDATA_TYPE_MACH_ABSOLUTE_TIME, 16, 0x88);
    CHECK(find_items(cut.get(), 0) == damage);
    Bytes ended = three;
    ended.header(KCDATA_TYPE_BUFFER_END, 0, 0).fill(16, 0x41);
    CHECK(find_items(ended.get(), 0) == damage);
    three.fill(16, 0x41);
    CHECK(find_items(three.get(), 0) == three.get().size());

    Bytes shifted = Bytes().fill(damage + 8, 0x41);
    for (int i = 0; i < 5; ++i)
        add_item(shifted);
    CHECK(find_items(shifted.get(), 0) == shifted.get().size());
}
