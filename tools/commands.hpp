#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/input.hpp"
#include "tools/reception.hpp"

namespace tools {

/// What the chosen command does once the whole command line is understood; returns the exit status.
using Action = std::function<int()>;

/// A file of captures that a verb reads.
struct InputOptions {
    std::string file{};
    std::uint64_t max_size = Input::default_limit;

    Expected<Input> open() const { return Input::open(file, max_size); }
};

// Options that several verbs have.
void add_output_option(CLI::App& verb, ReceptionOptions& options);
/// The argument FILE, and --max-size.
void add_input_options(CLI::App& verb, InputOptions& options);
/// The output option, and what else a live line needs.
void add_reception_options(CLI::App& verb, ReceptionOptions& options);

// Each adds its verb with options and help to `app`, and sets `action` when it is chosen.
void add_run_command(CLI::App& app, Action& action);
void add_capture_command(CLI::App& app, Action& action);
void add_extract_command(CLI::App& app, Action& action);
void add_decode_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_dump_command(CLI::App& app, Action& action);
void add_encode_command(CLI::App& app, Action& action);
void add_compress_command(CLI::App& app, Action& action);
void add_decompress_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

}  // namespace tools
