#include "test/unit/platform/device_trees.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace device_trees {

namespace {

/// A file for the life of this object.
class TemporaryFile {
  public:
    TemporaryFile() {
        std::string path = std::filesystem::temp_directory_path() / "devicetree_test_XXXXXX";
        const int descriptor = mkstemp(path.data());
        if (descriptor < 0)
            throw std::runtime_error("no temporary file");
        close(descriptor);
        path_ = path;
    }
    ~TemporaryFile() { std::filesystem::remove(path_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

bool exists(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

void run(const std::string& command) {
    if (std::system(command.c_str()) != 0)
        throw std::runtime_error("failed: " + command);
}

Blob read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Blob blob(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        blob[i] = static_cast<std::byte>(bytes[i]);
    return blob;
}

}  // namespace

std::optional<Blob> qemu(const std::string& machine, const std::string& arguments) {
    if (!exists("qemu-system-aarch64"))
        return {};
    const TemporaryFile dtb;
    run("qemu-system-aarch64 -M " + machine + ",dumpdtb=" + dtb.path() +
        " -cpu cortex-a72 -nic none -display none " + arguments + " >/dev/null 2>&1");
    return read(dtb.path());
}

std::optional<Blob> compile(const std::string& source) {
    if (!exists("dtc"))
        return {};
    const TemporaryFile dts, dtb;
    std::ofstream(dts.path()) << source;
    run("dtc -q -I dts -O dtb -o " + dtb.path() + " " + dts.path());
    return read(dtb.path());
}

std::optional<Blob> compile_file(const std::string& name) {
    std::ifstream file(std::string(DEVICETREE_DATA_DIR) + "/" + name);
    if (!file)
        throw std::runtime_error("no " + name);
    return compile({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

}  // namespace device_trees
