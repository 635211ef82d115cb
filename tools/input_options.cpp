#include <fmt/core.h>

#include "tools/commands.hpp"

namespace tools {

std::string InputOptions::place(const Input& input, std::size_t index) const {
    if (input.buffers().size() == 1)
        return file;
    return fmt::format("{}: buffer {} at {:#x}", file, index + 1, input.buffers()[index].offset);
}

void add_input_options(Verb& verb, InputOptions& options) {
    verb.argument("FILE", options.file,
                  "One or more kcdata buffers: plain, compressed, gzip or base64; - is standard "
                  "input");
    add_max_size_option(verb, options);
}

void add_max_size_option(Verb& verb, InputOptions& options) {
    verb.option("--max-size", "SIZE", options.max_size,
                "Refuse what has more bytes when unpacked; K, M, G may follow [4G]")
        .size();
}

}  // namespace tools
