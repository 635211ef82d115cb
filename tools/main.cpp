#include <cstdio>

#include "tools/commands.hpp"
#include "tools/failure.hpp"

namespace {

constexpr const char* description =
    "Takes stackshots of the unikernel, and shows what is in them: every task, its threads,\n"
    "their states and stacks, at one moment.\n\n"
    "  stackshot run -o a.kcdata          boot the image in QEMU and take one\n"
    "  stackshot report a.kcdata          read it\n"
    "  stackshot decode a.kcdata          the same as JSON, for programs\n";

int finished(int status) {
    // A full disk shows at the latest here.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fputs("stackshot: writing to standard output failed\n", stderr);
        return status == 0 ? tools::exit_failure : status;
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{description, "stackshot"};
    app.set_version_flag("--version", "stackshot " STACKSHOT_VERSION);
    app.footer(std::string("\n") + tools::exit_status_help);
    app.require_subcommand(1);
    tools::Action action;
    tools::add_run_command(app, action);
    tools::add_capture_command(app, action);
    tools::add_extract_command(app, action);
    tools::add_decode_command(app, action);
    tools::add_report_command(app, action);
    tools::add_dump_command(app, action);
    tools::add_encode_command(app, action);
    tools::add_compress_command(app, action);
    tools::add_decompress_command(app, action);
    tools::add_verify_command(app, action);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return finished(app.exit(error) == 0 ? tools::exit_complete : tools::exit_usage);
    }
    return finished(action());
}
