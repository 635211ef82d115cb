#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/snapshot.hpp"
#include "tools/symbolizer.hpp"
#include "tools/text_sink.hpp"

namespace tools {

/// A capture that is exported.
struct ExportedCapture {
    /// How messages name it.
    std::string place{};
    /// Its plain kcdata.
    std::span<const std::byte> buffer{};
    Snapshot snapshot{};
    /// What kept parts of its file from being read.
    std::vector<std::string> problems{};
    /// Of the kernel it was taken from; nullptr: addresses only.
    Symbolizer* symbols = nullptr;
    /// What the symbols come from; empty: there are none.
    std::string symbols_from{};
};

/// What is wrong with the captures, as "PLACE: what"; empty: nothing.
std::vector<std::string> problems_of(std::span<const ExportedCapture> captures);

/// Writes one file that has all of `captures` into `sink`. What a capture lacks is said in the
/// file, where its format has a place for that.
using Exporter = void (*)(std::span<const ExportedCapture> captures, TextSink& sink);

/// A format for other programs.
struct ExportFormat {
    const char* name;
    const char* summary;
    Exporter write;
    /// A file of it holds one capture.
    bool single = false;
};
std::span<const ExportFormat> export_formats();
/// nullptr: there is none of that name.
const ExportFormat* find_export_format(const std::string& name);

// One file of this folder each.
void write_html(std::span<const ExportedCapture> captures, TextSink& sink);
void write_json(std::span<const ExportedCapture> captures, TextSink& sink);
void write_tree(std::span<const ExportedCapture> captures, TextSink& sink);
void write_folded(std::span<const ExportedCapture> captures, TextSink& sink);
void write_speedscope(std::span<const ExportedCapture> captures, TextSink& sink);
void write_perfetto(std::span<const ExportedCapture> captures, TextSink& sink);
void write_ips(std::span<const ExportedCapture> captures, TextSink& sink);

}  // namespace tools
