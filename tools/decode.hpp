#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tools/json_emitter.hpp"

namespace tools {

struct Value;
using List = std::vector<Value>;

/// Keys and values in the order they were added.
class Dictionary {
  public:
    Value* find(std::string_view key);
    /// The value of `key`, which must not be there yet.
    Value& add(std::string_view key, Value value);

    struct Entry;
    const std::vector<Entry>& entries() const { return entries_; }

  private:
    /// From this many entries on there is an index.
    static constexpr std::size_t indexed_size = 16;

    // No initializers: Entry is not complete yet.
    std::vector<Entry> entries_;
    std::unordered_map<std::string, std::size_t> index_;
};

/// One value of a decoded buffer.
struct Value {
    std::variant<std::uint64_t, std::int64_t, std::string, List, Dictionary> content;
};

struct Dictionary::Entry {
    std::string key;
    Value value;
};

/// A buffer, decoded by libkdd's rules into {root key: {...}}, and everything that is wrong with
/// it. What stands before, between and (where the reader can go on) behind the damage is decoded.
struct Decoded {
    Dictionary root{};
    /// "offset 0x...: what is wrong", in the order of the buffer. Empty: complete and sound.
    std::vector<std::string> problems{};
};

Decoded decode(std::span<const std::byte> buffer);

void emit(JsonEmitter& json, const Value& value);
void emit(JsonEmitter& json, const Dictionary& dictionary);

}  // namespace tools
