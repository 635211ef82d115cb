#include "kcdata/names.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kcdata/format.hpp"
#include "kcdata/schema.hpp"
#include "kcdata/types.hpp"

using namespace kcdata;

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// The lines of a table without its first, as cells; none if there is no such table.
std::vector<std::vector<std::string>> read_table(const std::filesystem::path& path) {
    std::vector<std::vector<std::string>> rows;
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line))
        rows.push_back(split(line, '\t'));
    return rows;
}

std::uint64_t number(const std::string& text) {
    return text.starts_with('-') ? static_cast<std::uint64_t>(std::stoll(text, nullptr, 0))
                                 : std::stoull(text, nullptr, 0);
}

/// "name=part ..., rest"
std::string named(const ValueNames* names, std::uint64_t value) {
    REQUIRE(names != nullptr);
    std::string text;
    const std::uint64_t rest =
        names->for_each_name(value, [&](const ValueName& name, std::uint64_t part) {
            text += std::string(name.name) + "=" + std::to_string(part) + " ";
        });
    return text + std::to_string(rest);
}

bool holds(const ValueNames& names, const std::string& name, std::uint64_t value) {
    const ValueName* found = names.find(name);
    return found != nullptr && found->value == value;
}

}  // namespace

TEST_CASE("flags are named bit by bit, and what has no name is left over") {
    const ValueNames* names = field_value_names(STACKSHOT_KCTYPE_THREAD_SNAPSHOT, "ths_ss_flags");
    CHECK(named(names, 0) == "0");
    CHECK(named(names, 0x2 | 0x800 | 0x4000'0000'0000'0000) ==
          "kKernel64_p=2 kThreadOnCore=2048 4611686018427387904");
    // The same bit means another thing in another record.
    CHECK(named(field_value_names(STACKSHOT_KCTYPE_TASK_SNAPSHOT, "ts_ss_flags"), 0x2 | 0x800) ==
          "kKernel64_p=2 kTaskIsBoosted=2048 0");
    CHECK(named(field_value_names(STACKSHOT_KCTYPE_THREAD_DELTA_SNAPSHOT, "tds_ss_flags"), 0x8) ==
          "kStacksPCOnly=8 0");
    CHECK(named(field_value_names(STACKSHOT_KCTYPE_TASK_DELTA_SNAPSHOT, "tds_ss_flags"), 0x8) ==
          "kTerminatedSnapshot=8 0");
}

TEST_CASE("an enumeration has one name for a value, or none") {
    const ValueNames* waits = field_value_names(STACKSHOT_KCTYPE_THREAD_WAITINFO, "wait_type");
    CHECK(named(waits, 0) == "kThreadWaitNone=0 0");
    CHECK(named(waits, 0x3) == "kThreadWaitPortSetReceive=3 0");
    CHECK(named(waits, 0x80) == "128");
    // Signed: -1 of 16 bits.
    CHECK(named(field_value_names(STACKSHOT_KCTYPE_PORTLABEL, "portlabel_id"), UINT64_MAX) ==
          "STACKSHOT_PORTLABELID_MISSING=" + std::to_string(UINT64_MAX) + " 0");
}

TEST_CASE("a name of several bits stands for the number in them; a value of two names has one") {
    CHECK(named(find_value_names("item flags"), 0x8c) ==
          "KCDATA_FLAGS_STRUCT_PADDING_MASK=12 KCDATA_FLAGS_STRUCT_HAS_PADDING=128 0");
    const ValueNames* groups =
        field_value_names(STACKSHOT_KCTYPE_THREAD_GROUP_SNAPSHOT, "tgs_flags");
    CHECK(named(groups, 0x2) == "kThreadGroupApplication=2 0");
    REQUIRE(groups->find("kThreadGroupUIApp") != nullptr);
    CHECK(groups->find("kThreadGroupUIApp")->value == 0x2);
}

TEST_CASE("a described value is named by its description, other fields are plain numbers") {
    CHECK(named(described_value_names("system_state_flags"), 2) == "kKernel64_p=2 0");
    CHECK(named(described_value_names("stackshot_in_flags"), 0x10004) ==
          "STACKSHOT_GET_GLOBAL_MEM_STATS=4 STACKSHOT_KCDATA_FORMAT=65536 0");
    CHECK(described_value_names("stackshot_in_pid") == nullptr);
    CHECK(field_value_names(STACKSHOT_KCTYPE_TASK_SNAPSHOT, "ts_pid") == nullptr);
    CHECK(field_value_names(STACKSHOT_KCTYPE_TASK_SNAPSHOT, "ths_ss_flags") == nullptr);
    CHECK(field_value_names(0x80a, "ts_ss_flags") == nullptr);
    CHECK(find_value_names("nothing") == nullptr);
}

TEST_CASE("names ascend within a set, and none is there twice") {
    for (const ValueNames& group : value_name_groups()) {
        INFO(group.group);
        std::set<std::string_view> seen;
        std::uint64_t previous = 0;
        for (const ValueName& name : group.names) {
            CHECK(seen.insert(name.name).second);
            CHECK(name.value >= previous);
            previous = name.value;
        }
        CHECK(find_value_names(group.group) == &group);
    }
}

TEST_CASE("the names are those of the reference table, and belong to the fields it says") {
    const std::filesystem::path path =
        std::filesystem::path(SHARED_DIR) / "reference" / "kcdata-enums.tsv";
    if (!std::filesystem::exists(path))
        SKIP("no reference table at " << path.string());
    std::size_t names = 0;
    std::map<std::string, std::vector<std::vector<std::string>>> reference;
    for (const auto& row : read_table(path))
        reference[row.at(0)].push_back(row);
    REQUIRE(reference.size() == 23);

    for (const auto& [group, rows] : reference) {
        INFO(group);
        const ValueNames* ours = find_value_names(group);
        REQUIRE(ours != nullptr);
        CHECK(ours->names.size() == rows.size());
        for (const auto& row : rows) {
            INFO(row.at(1));
            CHECK(holds(*ours, row.at(1), number(row.at(2))));
            ++names;
        }
        // Whatever field of the schema the table names for the set has all its names.
        for (const std::string& word : split(rows[0].at(3), ' ')) {
            std::size_t fields = 0, named_fields = 0;
            for (const Type& type : schema()) {
                for (const Field& field : type.fields) {
                    if (field.name != word)
                        continue;
                    ++fields;
                    const ValueNames* set = field_value_names(type.id, field.name);
                    // One name of a field stands in two records, with a set each.
                    if (set == nullptr || !holds(*set, rows[0].at(1), number(rows[0].at(2))))
                        continue;
                    ++named_fields;
                    for (const auto& row : rows)
                        CHECK(holds(*set, row.at(1), number(row.at(2))));
                }
            }
            INFO(word);
            CHECK((fields == 0) == (named_fields == 0));
            CHECK(named_fields >= (word == "tds_ss_flags" ? 1 : fields));
        }
    }
    CHECK(names > 150);
    CHECK(value_name_groups().size() == reference.size() + 1);
}

TEST_CASE("the STACKSHOT_* flags are those of the reference table") {
    const std::filesystem::path path =
        std::filesystem::path(SHARED_DIR) / "reference" / "stackshot-flags.tsv";
    if (!std::filesystem::exists(path))
        SKIP("no reference table at " << path.string());
    const ValueNames* ours = find_value_names("stackshot_flags");
    REQUIRE(ours != nullptr);
    std::size_t rows = 0;
    for (const auto& row : read_table(path)) {
        // Another call has flags of its own.
        if (!row.at(0).starts_with("STACKSHOT_") ||
            row.at(3).starts_with("microstackshot call only"))
            continue;
        INFO(row.at(0));
        CHECK(holds(*ours, row.at(0), number(row.at(1))));
        ++rows;
    }
    CHECK(rows == ours->names.size());
}
