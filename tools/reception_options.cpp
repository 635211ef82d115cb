#include <climits>

#include "tools/commands.hpp"

namespace tools {

void add_output_option(Verb& verb, ReceptionOptions& options) {
    verb.option("-o,--output", "FILE", options.output,
                "Where the capture goes, further ones to NAME-2.EXT and so on; - is standard "
                "output")
        .show_default();
}

void add_reception_options(Verb& verb, ReceptionOptions& options) {
    add_output_option(verb, options);
    verb.option("--log", "FILE", options.log,
                "Where every byte of the line goes, console text and frames");
    verb.option("--count", "N", options.count, "Captures to wait for")
        .range(1, UINT_MAX)
        .show_default();
    verb.option("--timeout", "S", options.timeout,
                "Seconds until a capture must have begun, and then between its parts; 0: no "
                "limit")
        .show_default();
    verb.flag("-q,--quiet", options.hide_console, "Do not show the console");
}

}  // namespace tools
