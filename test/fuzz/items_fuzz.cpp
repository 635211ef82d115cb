#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kcdata/reader.hpp"
#include "tools/encode.hpp"
#include "tools/item_json.hpp"
#include "tools/item_text.hpp"
#include "tools/verify.hpp"

namespace {

void check(bool holds) {
    if (!holds)
        std::abort();
}

}  // namespace

class Count final : public tools::VerifyReport {
  public:
    void violation(const tools::Violation& violation) override {
        check(!violation.what.empty());
        ++violations_;
    }
    void buffer(const tools::Verified& buffer) override { check(buffer.items > 0); }
    std::size_t violations() const { return violations_; }

  private:
    std::size_t violations_ = 0;
};

/// What keeps all rules is read to its end.
void check_rules(std::span<const std::byte> bytes) {
    Count usual, strict;
    check(!tools::verify(bytes, {}, usual));
    check(!tools::verify(bytes, {.generation = tools::Generation::marked, .strict = true}, strict));
    if (usual.violations() != 0)
        return;
    kcdata::Reader reader(bytes);
    kcdata::Item item;
    while (reader.next(item)) {
    }
    check(bytes.empty() || reader.error() == kcdata::ReadError::none ||
          reader.error() == kcdata::ReadError::nested_too_deep);
}

/// Any bytes: every byte is in one stretch, and the text of the items makes the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    std::string json_text, shown;
    tools::StringSink json_sink(json_text), text_sink(shown);
    tools::ItemJsonWriter json(json_sink);
    tools::ItemTextWriter text(text_sink);
    json.begin();
    tools::ItemWalk walk(bytes);
    tools::Stretch stretch;
    std::size_t end = 0;
    while (walk.next(stretch)) {
        check(stretch.offset == end);
        check(stretch.end() > end);
        end = stretch.end();
        json.stretch(stretch);
        text.stretch(stretch);
    }
    check(end == size);
    json.end(walk.problem_at_end());

    std::vector<std::byte> made;
    const auto failure = tools::encode(json_text, "text", [&made](std::span<const std::byte> item) {
        made.insert(made.end(), item.begin(), item.end());
    });
    check(!failure);
    check_rules(bytes);
    check(made.size() == size && (size == 0 || std::memcmp(made.data(), data, size) == 0));
    return 0;
}
