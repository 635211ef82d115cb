#include <zlib.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "kcdata/compressed_writer.hpp"
#include "kcdata/inflater.hpp"
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

TEST_CASE("a real buffer that was compressed item by item inflates to itself") {
    const std::filesystem::path folder = std::filesystem::path(SHARED_DIR) / "samples";
    if (!std::filesystem::exists(folder))
        SKIP("no samples at " << folder.string());
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".kcdata")
            continue;
        INFO(entry.path().filename().string());
        const std::vector<std::byte> plain = read_file(entry.path());
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
                REQUIRE(writer.append_items(std::span(plain).subspan(begin, item.offset - begin)) ==
                        KERN_SUCCESS);
                begin = item.offset;
            }
            REQUIRE(writer.end() == KERN_SUCCESS);

            CompressedHead head;
            REQUIRE(read_compressed_head(std::span(buffer).first(writer.used()), head) ==
                    CompressionError::none);
            CHECK(head.end_offset == writer.used());
            std::vector<std::byte> inflated(head.total_in + 32);
            std::vector<std::byte> inflater_memory(Inflater::memory_size);
            Inflater inflater(head, inflater_memory);
            std::memcpy(inflated.data(), &head.inner_begin, 16);
            CHECK(inflater.read(std::span(inflated).subspan(16)) == head.total_in);
            CHECK(inflater.error() == CompressionError::none);
            const ItemHeader end{KCDATA_TYPE_BUFFER_END, 0, 0};
            std::memcpy(inflated.data() + 16 + head.total_in, &end, 16);
            CHECK(inflated.size() == reader.offset());
            CHECK(std::equal(inflated.begin(), inflated.end(), plain.begin()));
        }
    }
}
