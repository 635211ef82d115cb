#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/reception.hpp"

namespace tools {

/// What the chosen command does once the whole command line is understood; returns the exit status.
using Action = std::function<int()>;

// Options that several verbs have.
void add_output_option(CLI::App& verb, ReceptionOptions& options);
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

}  // namespace tools
