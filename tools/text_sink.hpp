#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tools {

/// Takes text piece by piece, in order.
class TextSink {
  public:
    virtual ~TextSink() = default;
    /// False: it could not be taken, and nothing behind it will be.
    virtual bool write(std::string_view text) = 0;
};

/// Into a file that somebody else opened and closes. After a failure ferror() holds.
class FileSink final : public TextSink {
  public:
    explicit FileSink(std::FILE* file) : file_(file) {}
    bool write(std::string_view text) override {
        return std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    }

  private:
    std::FILE* file_;
};

class StringSink final : public TextSink {
  public:
    explicit StringSink(std::string& text) : text_(text) {}
    bool write(std::string_view text) override {
        text_ += text;
        return true;
    }

  private:
    std::string& text_;
};

/// Keeps nothing but the size.
class CountingSink final : public TextSink {
  public:
    bool write(std::string_view text) override {
        size_ += text.size();
        return true;
    }
    std::uint64_t size() const { return size_; }

  private:
    std::uint64_t size_ = 0;
};

}  // namespace tools
