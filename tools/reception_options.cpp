#include "tools/commands.hpp"

namespace tools {

void add_output_option(CLI::App& verb, ReceptionOptions& options) {
    verb.add_option("-o,--output", options.output,
                    "Where the capture goes, further ones to NAME-2.EXT and so on; - is standard "
                    "output")
        ->type_name("FILE")
        ->capture_default_str();
}

void add_reception_options(CLI::App& verb, ReceptionOptions& options) {
    add_output_option(verb, options);
    verb.add_option("--log", options.log,
                    "Where every byte of the line goes, console text and frames")
        ->type_name("FILE");
    verb.add_option("--count", options.count, "Captures to wait for")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""))
        ->capture_default_str();
    verb.add_option("--timeout", options.timeout,
                    "Seconds until a capture must have begun, and then between its parts; 0: no "
                    "limit")
        ->type_name("S")
        ->capture_default_str();
    verb.add_flag("-q,--quiet", options.hide_console, "Do not show the console");
}

}  // namespace tools
