#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Runs a fuzz target over the files of the folders given, without libFuzzer: the corpus is a
/// regression test with any compiler. The files are also cut short at every length (long ones at
/// every fifth), so that the corpus may stay small.
int main(int argc, char** argv) {
    std::size_t files = 0;
    for (int index = 1; index < argc; ++index) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[index])) {
            std::ifstream file(entry.path(), std::ios::binary);
            const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
            const std::size_t step = bytes.size() <= 1024 ? 1 : 5;
            for (std::size_t left = 0; left <= bytes.size(); left += step) {
                const std::size_t size = bytes.size() - left;
                // A copy of its own: a read past its end is one past an allocation.
                const std::vector<std::uint8_t> input(
                    bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
                LLVMFuzzerTestOneInput(input.data(), input.size());
            }
            ++files;
        }
    }
    std::printf("%zu files\n", files);
    return files == 0 ? 1 : 0;
}
