#include "kcdata/schema.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kcdata/format.hpp"
#include "kcdata/types.hpp"

using namespace kcdata;

namespace {

std::vector<std::string> split(const std::string& line, char separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (true) {
        const std::size_t end = line.find(separator, begin);
        parts.push_back(line.substr(begin, end - begin));
        if (end == std::string::npos)
            return parts;
        begin = end + 1;
    }
}

/// One line of kcdata-types.tsv.
struct ReferenceRow {
    std::uint32_t id;
    std::string name, kind, field, field_type, offset, size, count, type_key, field_key, notes;
};

/// The reference's lines about types that items can have; its lines about the items that make up
/// the format, second names and structs without a type are left out.
std::vector<ReferenceRow> read_reference(const std::filesystem::path& path) {
    std::vector<ReferenceRow> rows;
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    REQUIRE(split(line, '\t').size() == 11);
    while (std::getline(file, line)) {
        const auto cells = split(line, '\t');
        REQUIRE(cells.size() == 11);
        if (cells[0] == "-" || cells[2] == "alias")
            continue;
        const auto id = static_cast<std::uint32_t>(std::stoul(cells[0], nullptr, 16));
        if (id == 0 || id == KCDATA_TYPE_ARRAY || id == KCDATA_TYPE_CONTAINER_BEGIN ||
            id == KCDATA_TYPE_CONTAINER_END || id == KCDATA_TYPE_BUFFER_END ||
            (id >= KCDATA_TYPE_ARRAY_PAD0 && id <= KCDATA_TYPE_ARRAY_PADf))
            continue;
        rows.push_back({id, cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7],
                        cells[8], cells[9], cells[10]});
    }
    return rows;
}

FieldType type_named(const std::string& name) {
    static const std::map<std::string, FieldType> names = {
        {"char", FieldType::character}, {"i8", FieldType::i8},   {"u8", FieldType::u8},
        {"i16", FieldType::i16},        {"u16", FieldType::u16}, {"i32", FieldType::i32},
        {"u32", FieldType::u32},        {"i64", FieldType::i64}, {"u64", FieldType::u64},
    };
    REQUIRE(names.contains(name));
    return names.at(name);
}

std::string word_behind(const std::string& text, const std::string& words) {
    const std::size_t at = text.find(words);
    return at == std::string::npos ? "" : split(text.substr(at + words.size()), ' ')[0];
}

/// The shape that the reference's words about a type come to.
Shape shape_of(const std::vector<ReferenceRow>& rows) {
    const ReferenceRow& first = rows[0];
    if (first.id >= KCDATA_TYPE_STRING_DESC && first.id <= KCDATA_TYPE_INT64_DESC)
        return Shape::described;
    if (first.id == KCDATA_TYPE_TYPEDEFINTION)
        return Shape::type_definition;
    if (first.id == KCDATA_TYPE_NESTED_KCDATA)
        return Shape::nested;
    if (first.kind == "marker")
        return Shape::buffer;
    if (first.kind == "container")
        return Shape::container;
    if (first.type_key.starts_with("Type_0x") || first.notes.starts_with("no built-in descriptor"))
        return Shape::opaque;
    if (first.type_key.ends_with("(merged, not printed)"))
        return Shape::merged;
    // A basic value is printed under its field's key; the reference then gives no other.
    return first.field_key == first.type_key ? Shape::basic : Shape::structure;
}

}  // namespace

TEST_CASE("a type is found by its id, and an unknown id is unknown") {
    const Type* type = find_type(0x905);
    REQUIRE(type != nullptr);
    CHECK(type->name == "STACKSHOT_KCTYPE_TASK_SNAPSHOT");
    CHECK(type->fields.size() == 16);
    for (const Type& each : schema())
        REQUIRE(find_type(each.id) == &each);
    for (std::uint32_t unknown : {0u, 0x11u, 0x80au, 0x957u, 0xffffffffu})
        CHECK(find_type(unknown) == nullptr);
}

TEST_CASE("the schema holds together: ids ascend, fields follow each other, keys are short") {
    std::uint32_t previous = 0;
    for (const Type& type : schema()) {
        INFO(type.name);
        REQUIRE(type.id > previous);
        previous = type.id;
        std::size_t end = 0;
        std::size_t decoded = 0;
        for (const Field& field : type.fields) {
            INFO(field.name);
            REQUIRE(field.offset == end);
            end += field.size();
            decoded += field.decoded ? 1 : 0;
            REQUIRE(!field.key.empty());
            REQUIRE(field.key.size() <= Field::max_key);
            REQUIRE(field.element_size() == size_of(field.read_as));
        }
        switch (type.shape) {
            case Shape::basic:
                REQUIRE(decoded == 1);
                REQUIRE(type.fields[0].decoded);
                break;
            case Shape::structure:
            case Shape::merged:
                REQUIRE(decoded >= 1);
                REQUIRE(!type.key.empty());
                break;
            case Shape::described:
                REQUIRE(type.fields.size() == 2);
                REQUIRE(type.fields[1].offset == description_size);
                break;
            case Shape::type_definition:
                break;
            case Shape::container:
                REQUIRE(!type.key.empty());
                REQUIRE(type.fields.empty());
                break;
            case Shape::nested:
            case Shape::buffer:
                REQUIRE(type.fields.empty());
                break;
            case Shape::opaque:
                REQUIRE(type.key.empty());
                break;
        }
    }
}

TEST_CASE("the schema says of every type what the reference table says") {
    const std::filesystem::path path =
        std::filesystem::path(SHARED_DIR) / "reference" / "kcdata-types.tsv";
    if (!std::filesystem::exists(path))
        SKIP("no reference table at " << path.string());
    std::map<std::uint32_t, std::vector<ReferenceRow>> reference;
    for (const ReferenceRow& row : read_reference(path))
        reference[row.id].push_back(row);
    REQUIRE(reference.size() > 200);

    for (const auto& [id, rows] : reference) {
        INFO(rows[0].name << " " << std::hex << id);
        const Type* type = find_type(id);
        REQUIRE(type != nullptr);
        CHECK(type->name == rows[0].name);
        const Shape shape = shape_of(rows);
        CHECK(type->shape == shape);

        std::string key = rows[0].type_key;
        if (key == "-" || shape == Shape::nested || shape == Shape::opaque)
            key = "";
        CHECK(type->key == key.substr(0, key.find(" (")));

        std::size_t index = 0;
        for (const ReferenceRow& row : rows) {
            // Two kinds of fields are not ours to name: a list of structs, and a layout that
            // comes with the buffer.
            if (row.field.empty() || row.field_type.starts_with("struct ") ||
                row.notes.starts_with("no built-in descriptor") || id == XNUPOST_KCTYPE_TESTCONFIG)
                continue;
            INFO(row.field);
            REQUIRE(index < type->fields.size());
            const Field& field = type->fields[index++];
            CHECK(field.name == row.field);
            const std::string in_header = word_behind(row.notes, "header says ");
            CHECK(field.type == type_named(in_header.empty()
                                               ? row.field_type.substr(0, row.field_type.find('['))
                                               : in_header));
            CHECK(field.offset == std::stoul(row.offset));
            if (row.size.empty())
                CHECK(field.count == Field::unbounded);
            else
                CHECK(field.size() == std::stoul(row.size));
            if (!row.count.empty())
                CHECK(field.count == std::stoul(row.count));
            if (shape == Shape::opaque)
                continue;
            CHECK(field.decoded == (row.field_key != "(not decoded)"));
            if (field.decoded)
                CHECK(field.key == row.field_key);
            std::string printed_as = word_behind(row.notes, "libkdd reads it as ");
            if (printed_as.empty())
                printed_as = word_behind(row.notes, "libkdd prints as ");
            CHECK(field.read_as ==
                  (printed_as.empty() ? field.type : type_named(split(printed_as, ';')[0])));
        }
        CHECK(index == type->fields.size());
    }
    // And nothing beyond it.
    CHECK(schema().size() == reference.size());
}
