#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <span>
#include <vector>

#include "kcdata/compressed_writer.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/schema.hpp"
#include "test/unit/kcdata/inflated.hpp"
#include "test/unit/reference_samples.hpp"

using namespace kcdata;

TEST_CASE("buffers of all three generations of real writers are read to their end") {
    std::size_t containers = 0;
    std::size_t arrays = 0;
    for_each_reference_sample([&](const auto&, std::span<const std::byte> bytes) {
        Reader reader(bytes);
        Item item;
        while (reader.next(item)) {
            INFO("type " << std::hex << item.type << " at " << std::dec << item.offset);
            if (item.kind == ItemKind::container_begin) {
                ++containers;
                const Type* type = find_type(item.container_type);
                REQUIRE(type != nullptr);
                CHECK(type->shape == Shape::container);
            } else if (item.kind == ItemKind::array) {
                ++arrays;
                CHECK(find_type(item.element_type) != nullptr);
            } else if (item.kind == ItemKind::begin) {
                const Type* type = find_type(item.type);
                REQUIRE(type != nullptr);
                CHECK(type->shape == Shape::buffer);
            } else if (item.kind == ItemKind::plain) {
                CHECK(find_type(item.type) != nullptr);
            }
        }
        CHECK(reader.error() == ReadError::none);
        CHECK(item.kind == ItemKind::end);
    });
    CHECK(containers > 100);
    CHECK(arrays > 100);
}

TEST_CASE("a real buffer that was compressed item by item inflates to itself") {
    for_each_reference_sample([](const auto&, std::span<const std::byte> plain) {
        for (const ZlibParameters& parameters : {default_zlib_parameters, xnu_zlib_parameters}) {
            std::vector<std::byte> memory(CompressedWriter::memory_size(parameters));
            std::vector<std::byte> buffer(2 * plain.size() + 1024);
            CompressedWriter writer(buffer, memory, parameters);
            Reader reader(plain);
            Item item;
            REQUIRE(reader.next(item));
            REQUIRE(writer.begin(item.type, item.flags) == KERN_SUCCESS);
            REQUIRE(reader.next(item));
            for (std::size_t begin = item.offset; item.kind != ItemKind::end;) {
                REQUIRE(reader.next(item));
                REQUIRE(writer.append_items(plain.subspan(begin, item.offset - begin)) ==
                        KERN_SUCCESS);
                begin = item.offset;
            }
            REQUIRE(writer.end() == KERN_SUCCESS);

            const auto again = inflated(std::span(buffer).first(writer.used()));
            CHECK(std::ranges::equal(again, plain.first(reader.offset())));
        }
    });
}
