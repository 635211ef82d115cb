#pragma once

#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tools_test {

/// Reads a digraph by the grammar of the DOT language (graphviz.org/doc/info/lang.html), and throws
/// what is wrong. Strings are in UTF-8; ports, HTML strings and concatenation are not read.
class DotGrammar {
  public:
    struct Edge {
        std::string from, to;
    };

    explicit DotGrammar(std::string_view text) : text_(text) {
        expect("digraph");
        name = id();
        statements();
        blanks();
        if (at_ != text_.size())
            fail("something behind the graph");
    }

    std::string name{};
    /// Of each label in the order of the text, as it shows.
    std::vector<std::string> labels{};
    std::vector<Edge> edges{};
    std::size_t nodes = 0;

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(what + " at " + std::to_string(at_) + ": " +
                                 std::string(text_.substr(at_, 40)));
    }
    void blanks() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
            ++at_;
    }
    bool takes(std::string_view token) {
        blanks();
        if (!text_.substr(at_).starts_with(token))
            return false;
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!takes(token))
            fail("no " + std::string(token));
    }
    static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

    /// A name, a number or a quoted string.
    std::string id() {
        blanks();
        std::string value;
        if (at_ < text_.size() && text_[at_] == '"') {
            for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
                if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
                    ++at_;
                    if (text_[at_] != '"' && text_[at_] != '\\')
                        fail("an escape that is not shown as it is");
                } else if (static_cast<unsigned char>(text_[at_]) < 0x20) {
                    fail("a control character");
                }
                value += text_[at_];
            }
            if (at_ == text_.size())
                fail("a string without end");
            ++at_;
            return value;
        }
        while (at_ < text_.size() && is_name(text_[at_]))
            value += text_[at_++];
        if (value.empty())
            fail("no ID");
        return value;
    }

    void statements() {
        expect("{");
        while (!takes("}")) {
            statement();
            takes(";");
        }
    }

    void statement() {
        const std::string first = id();
        if (first == "subgraph") {
            id();
            statements();
        } else if (takes("=")) {
            const std::string value = id();
            if (first == "label")
                labels.push_back(value);
        } else if (takes("->")) {
            edges.push_back({first, id()});
            attributes();
        } else {
            if (first != "node" && first != "edge" && first != "graph")
                ++nodes;
            attributes();
        }
    }

    void attributes() {
        if (!takes("["))
            return;
        while (!takes("]")) {
            const std::string key = id();
            expect("=");
            const std::string value = id();
            if (key == "label")
                labels.push_back(value);
            if (!takes(","))
                takes(";");
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace tools_test
