#include <iterator>

#include "tools/export/export.hpp"

namespace tools {

namespace {

constexpr ExportFormat formats[] = {
    {"folded", "a line for each stack with its count, for flame graphs", write_folded},
};

}  // namespace

std::span<const ExportFormat> export_formats() {
    return formats;
}

const ExportFormat* find_export_format(const std::string& name) {
    for (const ExportFormat& format : formats)
        if (format.name == name)
            return &format;
    return nullptr;
}

}  // namespace tools
