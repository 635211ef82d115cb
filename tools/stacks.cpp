#include "tools/stacks.hpp"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "kcdata/records.hpp"

namespace tools {

namespace {

/// The functions of exception entry: what their caller stands at was interrupted, not calling.
bool is_exception_entry(std::string_view function) {
    return function == "exception_entry" || function.starts_with("current_el_") ||
           function.starts_with("lower_el_");
}

}  // namespace

std::string StackFrame::name() const {
    return function.empty() ? fmt::format("{:#018x}", address) : function;
}

std::string StackFrame::place() const {
    return file.empty() || line == 0 ? file : fmt::format("{}:{}", file, line);
}

std::vector<StackFrame> Stacks::kernel_stack(const ThreadSnapshot& thread) const {
    std::vector<StackFrame> frames;
    if (!thread.kernel_stack)
        return frames;
    bool interrupted = false;
    for (std::size_t i = 0; i < thread.kernel_stack->size(); ++i) {
        const std::uint64_t address = (*thread.kernel_stack)[i];
        const std::size_t first = frames.size();
        // A return address belongs to the call before it, which may end its function.
        const bool exact = i == 0 ? first_is_exact(thread, address) : interrupted;
        if (symbols_ != nullptr)
            for (const SourceFrame& source : symbols_->frames(exact ? address : address - 1))
                frames.push_back({.address = address,
                                  .function = short_name(source.function),
                                  .file = source.file,
                                  .line = source.line,
                                  .inlined = source.inlined});
        if (frames.size() == first)
            frames.push_back({.address = address});
        frames[first].index = i;
        for (std::size_t frame = first; frame < frames.size(); ++frame)
            frames[frame].image = images_.find_kernel(address);
        interrupted = is_exception_entry(frames.back().function);
        frames.back().exception_entry = interrupted;
    }
    return frames;
}

std::vector<StackFrame> Stacks::user_stack(const TaskSnapshot& task,
                                           const ThreadSnapshot& thread) const {
    std::vector<StackFrame> frames;
    if (!thread.user_stack)
        return frames;
    for (std::size_t i = 0; i < thread.user_stack->size(); ++i) {
        const std::uint64_t address = (*thread.user_stack)[i];
        frames.push_back({.address = address,
                          .index = i,
                          .user = true,
                          .image = images_.find_user(task, address)});
    }
    return frames;
}

std::vector<StackFrame> Stacks::whole_stack(const TaskSnapshot& task,
                                            const ThreadSnapshot& thread) const {
    std::vector<StackFrame> frames = kernel_stack(thread);
    for (StackFrame& frame : user_stack(task, thread))
        frames.push_back(std::move(frame));
    return frames;
}

/// Whether the thread stands at `pc` or starts there, rather than being about to return there.
bool Stacks::first_is_exact(const ThreadSnapshot& thread, std::uint64_t pc) const {
    if (symbols_ == nullptr || thread.has(kcdata::kThreadOnCore))
        return true;
    const auto symbol = symbols_->symbol(pc);
    return symbol && symbol->offset == 0;
}

std::string short_name(std::string name) {
    constexpr std::string_view unnamed = "(anonymous namespace)::";
    for (std::size_t place = 0; (place = name.find(unnamed)) != std::string::npos;)
        name.erase(place, unnamed.size());
    return name;
}

}  // namespace tools
