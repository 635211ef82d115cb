#include "tools/commands.hpp"

namespace tools {

void add_input_options(CLI::App& verb, InputOptions& options) {
    verb.add_option("FILE", options.file,
                    "One or more kcdata buffers: plain, compressed, gzip or base64; - is standard "
                    "input")
        ->type_name("")
        ->required();
    verb.add_option("--max-size", options.max_size,
                    "Refuse what has more bytes when unpacked; K, M, G may follow [4G]")
        ->type_name("SIZE")
        ->transform(CLI::AsSizeValue(false).description(""));
}

}  // namespace tools
