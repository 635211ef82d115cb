#include <zlib.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "kcdata/reader.hpp"
#include "kcdata/schema.hpp"

using namespace kcdata;

namespace {

/// The bytes of a file, unpacked if it is gzip.
std::vector<std::byte> read_file(const std::filesystem::path& path) {
    std::vector<std::byte> bytes;
    gzFile file = gzopen(path.c_str(), "rb");
    REQUIRE(file != nullptr);
    std::array<std::byte, 4096> block;
    int count = 0;
    while ((count = gzread(file, block.data(), block.size())) > 0)
        bytes.insert(bytes.end(), block.begin(), block.begin() + count);
    REQUIRE(count == 0);
    gzclose(file);
    return bytes;
}

}  // namespace

TEST_CASE("buffers of all three generations of real writers are read to their end") {
    const std::filesystem::path folder = std::filesystem::path(SHARED_DIR) / "samples";
    if (!std::filesystem::exists(folder))
        SKIP("no samples at " << folder.string());
    std::size_t files = 0;
    std::size_t containers = 0;
    std::size_t arrays = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".kcdata")
            continue;
        INFO(entry.path().filename().string());
        ++files;
        const std::vector<std::byte> bytes = read_file(entry.path());
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
    }
    CHECK(files >= 19);
    CHECK(containers > 100);
    CHECK(arrays > 100);
}
