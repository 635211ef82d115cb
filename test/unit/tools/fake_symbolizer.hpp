#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "captures.hpp"
#include "tools/symbolizer.hpp"

namespace tools_test {

/// Knows the addresses of small_capture().
class FakeSymbolizer final : public tools::Symbolizer {
  public:
    const std::vector<tools::SourceFrame>& frames(std::uint64_t address) override {
        static const std::vector<tools::SourceFrame> none;
        const auto found = known.find(address);
        return found != known.end() ? found->second : none;
    }
    std::optional<tools::Symbol> symbol(std::uint64_t address) override {
        if (address == 0x2000)
            return tools::Symbol{"start", 0, true};
        if (address == 0x4000)
            return tools::Symbol{"kernel::sleep_until", 0, true};
        if (address == 0xffff0000000a0010)
            return tools::Symbol{"kernel::(anonymous namespace)::queue", 0x10, false};
        return std::nullopt;
    }
    const std::vector<std::uint8_t>& build_id() const override { return id; }

    std::map<std::uint64_t, std::vector<tools::SourceFrame>> known{
        {0x1000,
         {{"kernel::leaf", "kernel/leaf.cpp", 3, true}, {"kernel::spin", "kernel/a.cpp", 7}}},
        {0x1008, {{"kernel::spin", "kernel/a.cpp", 8}}},
        {0x2000, {{"thread_start", "kernel/start.S", 1}}},
        {0x2003, {{"kernel::(anonymous namespace)::thread_main", "kernel/thread.cpp", 20}}},
        {0x3003, {{"kernel::block", "kernel/wait.cpp", 99}}},
        {0x5003, {{"exception_entry", "vectors.S", 5}}},
    };
    std::vector<std::uint8_t> id{std::begin(small_capture_uuid), std::end(small_capture_uuid)};
};

}  // namespace tools_test
