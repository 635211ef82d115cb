#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/command_line.hpp"
#include "tools/input.hpp"
#include "tools/reception.hpp"

namespace tools {

/// A file of captures that a verb reads.
struct InputOptions {
    std::string file{};
    std::uint64_t max_size = Input::default_limit;

    Expected<Input> open() const { return Input::open(file, max_size); }
    /// How a message names the buffer of this index: by the file alone, if it is the only one.
    std::string place(const Input& input, std::size_t index) const;
};

// Options that several verbs have.
void add_output_option(Verb& verb, ReceptionOptions& options);
/// The argument FILE, and --max-size.
void add_input_options(Verb& verb, InputOptions& options);
void add_max_size_option(Verb& verb, InputOptions& options);
/// The output option, and what else a live line needs.
void add_reception_options(Verb& verb, ReceptionOptions& options);

// Each adds its verb, with its options, its help and what it does.
void add_run_command(CommandLine& line);
void add_capture_command(CommandLine& line);
void add_console_command(CommandLine& line);
void add_request_command(CommandLine& line);
void add_watch_command(CommandLine& line);
void add_extract_command(CommandLine& line);
void add_decode_command(CommandLine& line);
void add_profile_command(CommandLine& line);
void add_report_command(CommandLine& line);
void add_analyze_command(CommandLine& line);
void add_diff_command(CommandLine& line);
void add_dump_command(CommandLine& line);
void add_encode_command(CommandLine& line);
void add_compress_command(CommandLine& line);
void add_decompress_command(CommandLine& line);
void add_verify_command(CommandLine& line);
// What these two print is about `line`, which lives as long as the program.
void add_manual_command(CommandLine& line);
void add_completion_command(CommandLine& line);

}  // namespace tools
