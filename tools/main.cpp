#include <cstdio>

#include "tools/commands.hpp"
#include "tools/failure.hpp"

namespace {

constexpr const char* description =
    "Takes stackshots of the unikernel, and shows what is in them: every task, its threads,\n"
    "their states and stacks, at one moment.\n\n"
    "  stackshot run -o a.kcdata          boot the image in QEMU and take one\n"
    "  stackshot report a.kcdata          read it\n"
    "  stackshot decode a.kcdata          every record as JSON, for programs\n"
    "  stackshot diff a.kcdata b.kcdata   what changed from one to the other\n"
    "  stackshot profile --count 50       what threads are at, how often\n\n"
    "decode, report, diff, dump, verify, compress and decompress read the kcdata of Apple's "
    "kernels "
    "too:\n"
    "stackshots, crash info, exit reasons. They need neither the image nor QEMU.\n";

int finished(int status) {
    // A full disk shows at the latest here.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fputs("stackshot: writing to standard output failed\n", stderr);
        // Whatever was salvaged or found is not there.
        const bool written = status == tools::exit_complete || status == tools::exit_damaged ||
                             status == tools::exit_wrong_symbols;
        return written ? tools::exit_failure : status;
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    tools::CommandLine line(description, "stackshot " STACKSHOT_VERSION);
    tools::add_run_command(line);
    tools::add_capture_command(line);
    tools::add_request_command(line);
    tools::add_watch_command(line);
    tools::add_console_command(line);
    tools::add_extract_command(line);
    tools::add_decode_command(line);
    tools::add_report_command(line);
    tools::add_profile_command(line);
    tools::add_analyze_command(line);
    tools::add_diff_command(line);
    tools::add_dump_command(line);
    tools::add_encode_command(line);
    tools::add_compress_command(line);
    tools::add_decompress_command(line);
    tools::add_verify_command(line);
    tools::add_manual_command(line);
    tools::add_completion_command(line);
    return finished(line.run(argc, argv));
}
