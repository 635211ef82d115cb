#include "tools/kernel_symbols.hpp"

#include <algorithm>
#include <utility>

#include "tools/installation.hpp"
#include "tools/snapshot_text.hpp"

namespace tools {

BuildIdMatch compare_build_id(const Snapshot& snapshot, const Symbolizer& symbols) {
    const auto& id = symbols.build_id();
    if (!snapshot.kernel || id.size() < snapshot.kernel->uuid.size())
        return BuildIdMatch::unknown;
    return std::equal(snapshot.kernel->uuid.begin(), snapshot.kernel->uuid.end(), id.begin())
               ? BuildIdMatch::match
               : BuildIdMatch::mismatch;
}

void KernelSymbols::add_option(Verb& verb) {
    verb.option("--elf", "FILE", elf_,
                "The kernel it was taken from, for names and lines; used only if it has the "
                "capture's build-id [kernel.elf beside this program's build]");
}

std::optional<Failure> KernelSymbols::open() {
    named_ = !elf_.empty();
    if (!named_)
        elf_ = find_companion("kernel.elf").value_or("");
    if (elf_.empty()) {
        say("no kernel.elf beside this program and none named with --elf: addresses only");
        return std::nullopt;
    }
    auto opened = open_elf(elf_);
    if (!opened.ok())
        return opened.failure();
    symbols_ = std::move(opened.value());
    return std::nullopt;
}

Symbolizer* KernelSymbols::of(const Snapshot& snapshot, const std::string& place) {
    if (symbols_ == nullptr)
        return nullptr;
    std::string why;
    switch (compare_build_id(snapshot, *symbols_)) {
        case BuildIdMatch::match:
            return symbols_.get();
        case BuildIdMatch::mismatch:
            why = fmt::format(
                "the capture is of the kernel with build-id {}, {} is {}: addresses only",
                hexadecimal(snapshot.kernel->uuid), elf_, hexadecimal(symbols_->build_id()));
            break;
        case BuildIdMatch::unknown:
            why =
                fmt::format("{} tells no build-id: addresses only", snapshot.kernel ? elf_ : place);
            break;
    }
    // Of many captures of one kernel, once is enough.
    if (why != said_)
        say(why);
    said_ = why;
    wrong_ |= named_;
    return nullptr;
}

}  // namespace tools
