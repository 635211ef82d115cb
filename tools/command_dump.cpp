#include <cstdio>
#include <memory>
#include <optional>

#include "tools/commands.hpp"
#include "tools/input.hpp"
#include "tools/item_json.hpp"
#include "tools/item_layout.hpp"
#include "tools/item_text.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Shows a kcdata buffer item by item, byte for byte";
constexpr const char* details =
    "\nFor each item: its offset in the file, type, size, padding and flags; below it each field\n"
    "with offset, value and the names of flags; bytes that no field covers in hexadecimal, also\n"
    "those behind the end of the buffer. What is wrong is marked with !! where it stands; behind\n"
    "damage the dump goes on at the next 16-byte boundary where items make sense.\n\n"
    "Of a compressed buffer (BEGIN_COMPRESSED) the stream is shown as it is: `stackshot "
    "decompress\n"
    "FILE | stackshot dump -` shows the items in it. gzip and base64 are unpacked.\n\n"
    "With --json the text is exact: encode makes the same bytes of it, unpacked (unless only some "
    "of\n"
    "the items are chosen). Its form is told by encode --help.\n\n";

struct Options {
    InputOptions input{};
    bool json = false;
    std::string type{};
    std::size_t offset = 0;
    std::size_t limit = SIZE_MAX;
};

/// Whether the stretch is of the type: as an item, an element or a container.
bool is_of(const Stretch& stretch, std::uint32_t type) {
    if (!stretch.is_item())
        return false;
    if (stretch.header.type == type || (stretch.is_array() && stretch.array.element_type == type))
        return true;
    return stretch.header.type == kcdata::KCDATA_TYPE_CONTAINER_BEGIN &&
           stretch.payload.size() == sizeof(type) &&
           std::equal(stretch.payload.begin(), stretch.payload.end(),
                      std::as_bytes(std::span(&type, 1)).begin());
}

std::optional<std::uint32_t> parse_type(const std::string& text) {
    if (const auto type = type_called(text))
        return type;
    const auto number = number_in(text);
    if (!number || *number > UINT32_MAX)
        return std::nullopt;
    return static_cast<std::uint32_t>(*number);
}

int dump_file(const Options& options) {
    std::optional<std::uint32_t> type;
    if (!options.type.empty()) {
        type = parse_type(options.type);
        if (!type) {
            say("no type is called \"{}\"", options.type);
            return exit_usage;
        }
    }
    const std::string& file = options.input.file;
    const auto input = Input::open_packed(file, options.input.max_size);
    if (!input.ok())
        return report_failure(input.failure());
    const std::span<const std::byte> bytes = input.value().data();
    for (const std::string& problem : input.value().problems())
        say("{}: {}", file, problem);

    FileSink sink(stdout);
    ItemTextWriter text(sink);
    ItemJsonWriter json(sink);
    if (options.json)
        json.begin();
    ItemWalk walk(bytes);
    Stretch stretch;
    std::size_t shown = 0;
    bool sound = input.value().problems().empty();
    while (walk.next(stretch) && !text.failed() && !json.failed()) {
        sound = sound && stretch.sound();
        if (stretch.end() <= options.offset || shown == options.limit ||
            (type && !is_of(stretch, *type)))
            continue;
        ++shown;
        if (options.json)
            json.stretch(stretch);
        else
            text.stretch(stretch);
    }
    const ItemProblem problem = walk.problem_at_end();
    if (options.json)
        json.end(problem);
    else if (problem != ItemProblem::none)
        text.problem(bytes.size(), problem);
    if (sound && text.problems() + json.problems() == 0)
        return exit_complete;
    say("{}: damaged; see the {} in the dump", file, options.json ? "notes" : "!!");
    return exit_damaged;
}

}  // namespace

void add_dump_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("dump", summary);
    add_input_options(verb, options->input);
    verb.flag("--json", options->json, "As text that encode makes the same bytes of");
    verb.option("--type", "TYPE", options->type,
                "Only items, arrays and containers of this type: a name or a number");
    verb.option("--offset", "BYTES", options->offset,
                "Only what ends behind this offset of the file");
    verb.option("--limit", "COUNT", options->limit, "No more items than this");
    verb.details(details);
    verb.action([options] { return dump_file(*options); });
}

}  // namespace tools
