#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "kcdata/compressed_writer.hpp"
#include "kcdata/reader.hpp"
#include "tools/capture_file.hpp"
#include "tools/commands.hpp"

namespace tools {

namespace {

constexpr const char* summary = "Makes compressed kcdata of kcdata";
constexpr const char* details =
    "\nA compressed buffer holds the items in one zlib stream; decode, report and the others read "
    "it\n"
    "as it is, and `stackshot decompress` makes the plain buffer of it again, byte for byte. What "
    "is\n"
    "compressed already is compressed anew. A buffer without its end is refused: the result would\n"
    "pass for a whole one.\n\n";

struct Options {
    InputOptions input{};
    std::string output = "-";
    int level = kcdata::default_zlib_parameters.level;
    bool xnu = false;

    kcdata::ZlibParameters parameters() const {
        if (xnu)
            return kcdata::xnu_zlib_parameters;
        kcdata::ZlibParameters result = kcdata::default_zlib_parameters;
        result.level = level;
        return result;
    }
};

/// Bytes that are sure to hold what is made of `plain`: at worst zlib adds an eighth, and some
/// bytes for each flush.
std::size_t largest_result(std::span<const std::byte> plain, bool flush_each) {
    constexpr std::size_t for_a_flush = 64;
    const std::size_t flushes = flush_each ? plain.size() / sizeof(kcdata::ItemHeader) : 0;
    return 1024 + plain.size() + plain.size() / 4 + for_a_flush * flushes;
}

/// Gives `writer` all that is between BEGIN and BUFFER_END, an item at a time. What contradicts
/// itself inside of items is kept as it is.
std::optional<Failure> append_all(kcdata::CompressedWriter& writer,
                                  std::span<const std::byte> plain) {
    kcdata::Reader reader(plain);
    kcdata::Item item;
    const auto failed = [](kcdata::kern_return error) {
        return Failure{fmt::format("compressing failed: {}", kcdata::kern_return_name(error))};
    };
    if (!reader.next(item))
        return Failure{kcdata::read_error_text(reader.error())};
    if (kcdata::load_header(plain.data()).size != 0)
        return Failure{"the BEGIN item has a payload, which a compressed buffer cannot keep"};
    if (const auto error = writer.begin(item.type, item.flags); error != kcdata::KERN_SUCCESS)
        return failed(error);
    std::size_t taken = sizeof(kcdata::ItemHeader);
    do {
        while (reader.next(item)) {
            if (const auto error = writer.append_items(plain.subspan(taken, item.offset - taken));
                error != kcdata::KERN_SUCCESS)
                return failed(error);
            taken = item.offset;
        }
    } while (reader.resume());
    if (reader.error() != kcdata::ReadError::none)
        return Failure{fmt::format("offset {:#x}: {}: not compressed", reader.offset(),
                                   kcdata::read_error_text(reader.error()))};
    if (const auto error = writer.end(); error != kcdata::KERN_SUCCESS)
        return failed(error);
    return std::nullopt;
}

int compress_file(const Options& options) {
    const auto opened = options.input.open();
    if (!opened.ok())
        return report_failure(opened.failure());
    const Input& input = opened.value();
    const std::string& file = options.input.file;
    for (const std::string& text : input.remarks())
        say("{}: {}", file, text);
    if (!input.problems().empty()) {
        for (const std::string& text : input.problems())
            say("{}: {}", file, text);
        return exit_failure;
    }

    const kcdata::ZlibParameters parameters = options.parameters();
    std::vector<std::byte> memory(kcdata::CompressedWriter::memory_size(parameters));
    std::vector<std::byte> result;
    for (const Input::Buffer& buffer : input.buffers()) {
        const std::size_t before = result.size();
        // Its own vector: a writer wants its buffer aligned.
        std::vector<std::byte> compressed(largest_result(buffer.bytes, parameters.flush_each));
        kcdata::CompressedWriter writer(compressed, memory, parameters);
        if (const auto failure = append_all(writer, buffer.bytes)) {
            say("{}: buffer at {:#x}: {}", file, buffer.offset, failure->text);
            return failure->status;
        }
        result.resize(before + writer.used());
        std::copy_n(compressed.begin(), writer.used(),
                    result.begin() + static_cast<std::ptrdiff_t>(before));
    }
    if (const auto failure = write_file(options.output, result))
        return report_failure(*failure);
    return exit_complete;
}

}  // namespace

void add_compress_command(CommandLine& line) {
    auto options = std::make_shared<Options>();
    Verb verb = line.verb("compress", summary);
    add_input_options(verb, options->input);
    verb.option("-o,--output", "FILE", options->output, "The buffer; - is standard output")
        .show_default();
    const Option level = verb.option("--level", "N", options->level,
                                     "From 0, not smaller, to 9, smallest and slowest")
                             .range(0, 9)
                             .show_default();
    verb.flag("--xnu", options->xnu,
              "XNU's parameters: little memory, and every item flushed, so that a buffer that "
              "was cut off can be read up to there")
        .excludes(level);
    verb.details(details);
    verb.action([options] { return compress_file(*options); });
}

}  // namespace tools
