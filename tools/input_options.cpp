#include "tools/commands.hpp"

namespace tools {

void add_input_options(Verb& verb, InputOptions& options) {
    verb.argument("FILE", options.file,
                  "One or more kcdata buffers: plain, compressed, gzip or base64; - is standard "
                  "input");
    verb.option("--max-size", "SIZE", options.max_size,
                "Refuse what has more bytes when unpacked; K, M, G may follow [4G]")
        .size();
}

}  // namespace tools
