#include "tools/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "kcdata/compression.hpp"
#include "kcdata/inflater.hpp"
#include "kcdata/reader.hpp"
#include "kcdata/resynchronization.hpp"
#include "tools/descriptor.hpp"
#include "tools/field_value.hpp"

namespace tools {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t piece_size = 1 << 16;
/// gzip in base64 in gzip in base64.
constexpr int most_packings = 4;
/// What stands in front of a stackshot in a ktrace file.
constexpr std::size_t ktrace_chunk_header_size = 16;

bool begins_with_magic(Bytes bytes) {
    return bytes.size() >= sizeof(kcdata::ItemHeader) &&
           kcdata::is_begin_magic(kcdata::load_header(bytes.data()).type);
}

bool begins_gzip(Bytes bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

/// Turns base64 text into bytes, a piece at a time. What is no base64 character is passed over;
/// behind = a new text begins.
class Base64 {
  public:
    /// Decodes from the front of `text` until it or `out` is used up; takes what it used off
    /// `text`. Returns how many bytes came out.
    std::size_t decode(Bytes& text, std::span<std::byte> out) {
        std::size_t read = 0, written = 0;
        for (; read < text.size() && written < out.size(); ++read) {
            const std::int8_t digit = digits[std::to_integer<std::size_t>(text[read])];
            if (digit < 0) {
                if (text[read] == std::byte{'='})
                    count_ = 0;
                continue;
            }
            bits_ = bits_ << 6 | static_cast<std::uint32_t>(digit);
            count_ += 6;
            if (count_ >= 8) {
                count_ -= 8;
                out[written++] = static_cast<std::byte>(bits_ >> count_);
            }
        }
        text = text.subspan(read);
        return written;
    }

  private:
    static constexpr auto digits = [] {
        constexpr std::string_view alphabet =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::array<std::int8_t, 256> table{};
        table.fill(-1);
        for (std::size_t i = 0; i < alphabet.size(); ++i)
            table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
        return table;
    }();

    std::uint32_t bits_ = 0;
    int count_ = 0;
};

bool begins_base64(Bytes bytes) {
    std::array<std::byte, 48> start;
    Bytes text = bytes.first(std::min<std::size_t>(bytes.size(), 4096));
    const Bytes decoded(start.data(), Base64().decode(text, start));
    // One more packing, or a buffer; anything else is just text.
    return begins_with_magic(decoded) || begins_gzip(decoded) ||
           (decoded.size() > ktrace_chunk_header_size &&
            begins_with_magic(decoded.subspan(ktrace_chunk_header_size)));
}

}  // namespace

class Input::Opener {
  public:
    Opener(const std::string& path, std::uint64_t limit)
        : path_(path), name_(path == "-" ? "standard input" : path), limit_(limit) {}

    Expected<Input> run(bool buffers) {
        if (auto failure = read())
            return *failure;
        return open_data(buffers);
    }
    Expected<Input> run(std::vector<std::byte> bytes) {
        input_.data_ = HeldBytes(std::move(bytes));
        return open_data(true);
    }

  private:
    Expected<Input> open_data(bool buffers) {
        for (int packing = 0; !begins_with_magic(data()); ++packing) {
            if (data().empty() && input_.problems_.empty())
                return Failure{
                    fmt::format("{}: {}", name_, packing == 0 ? "empty" : "nothing is in it")};
            if (packing == most_packings)
                return Failure{fmt::format("{}: packed more than {} times", name_, most_packings)};
            if (auto failure = unpack())
                return *failure;
        }
        if (!buffers)
            return std::move(input_);
        if (auto failure = find_buffers())
            return *failure;
        if (input_.buffers_.empty())
            return no_buffer();
        return std::move(input_);
    }

    Bytes data() const { return input_.data_.get(); }
    void problem(std::string text) { input_.problems_.push_back(std::move(text)); }

    Failure no_buffer() const {
        if (!input_.problems_.empty())
            return Failure{name_ + ": " + input_.problems_.front()};
        return Failure{
            fmt::format("{}: no kcdata buffer (neither plain nor gzip nor base64)", name_)};
    }
    Failure too_much() const {
        return Failure{
            fmt::format("{}: more than {} bytes when unpacked (--max-size)", name_, limit_)};
    }
    Spool new_spool() const { return Spool(limit_, too_much().text); }

    std::optional<Failure> read() {
        const Descriptor fd(path_ == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                         : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd.valid())
            return system_failure("opening " + name_, errno);
        struct stat status {};
        if (::fstat(fd.get(), &status) != 0)
            return system_failure("reading " + name_, errno);
        if (S_ISREG(status.st_mode) && status.st_size > 0) {
            auto mapped = HeldBytes::map(fd.get(), static_cast<std::size_t>(status.st_size), name_);
            if (!mapped.ok())
                return mapped.failure();
            input_.data_ = std::move(mapped.value());
            // Somebody may have read from standard input before.
            const off_t position = ::lseek(fd.get(), 0, SEEK_CUR);
            input_.data_.skip(
                static_cast<std::size_t>(std::clamp<off_t>(position, 0, status.st_size)));
            return std::nullopt;
        }
        Spool spool = new_spool();
        std::array<std::byte, piece_size> piece;
        for (;;) {
            const ssize_t size = ::read(fd.get(), piece.data(), piece.size());
            if (size < 0 && errno != EINTR)
                return system_failure("reading " + name_, errno);
            if (size == 0)
                return hold(spool);
            if (size > 0)
                if (auto failure = spool.append(Bytes(piece).first(static_cast<std::size_t>(size))))
                    return failure;
        }
    }

    /// What is in the spool takes the place of the data.
    std::optional<Failure> hold(Spool& spool) {
        auto held = spool.take();
        if (!held.ok())
            return held.failure();
        input_.data_ = std::move(held.value());
        return std::nullopt;
    }

    std::optional<Failure> unpack() {
        const Bytes packed = data();
        if (begins_gzip(packed))
            return gunzip();
        if (packed.size() > ktrace_chunk_header_size &&
            begins_with_magic(packed.subspan(ktrace_chunk_header_size))) {
            input_.data_.skip(ktrace_chunk_header_size);
            return std::nullopt;
        }
        if (begins_base64(packed))
            return from_base64();
        return no_buffer();
    }

    /// All members of a gzip file. What comes out in front of damage is kept.
    std::optional<Failure> gunzip() {
        Bytes packed = data();
        z_stream stream{};
        constexpr int gzip_only = 16 + MAX_WBITS;
        if (inflateInit2(&stream, gzip_only) != Z_OK)
            return Failure{"out of memory"};
        const struct End {
            z_stream& stream;
            ~End() { inflateEnd(&stream); }
        } end{stream};
        Spool spool = new_spool();
        std::array<std::byte, piece_size> piece;
        for (;;) {
            if (stream.avail_in == 0) {
                const Bytes next = packed.first(std::min<std::size_t>(packed.size(), 1u << 30));
                packed = packed.subspan(next.size());
                stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(next.data()));
                stream.avail_in = static_cast<uInt>(next.size());
            }
            stream.next_out = reinterpret_cast<Bytef*>(piece.data());
            stream.avail_out = static_cast<uInt>(piece.size());
            const int status = inflate(&stream, Z_NO_FLUSH);
            const Bytes out = Bytes(piece).first(piece.size() - stream.avail_out);
            if (auto failure = spool.append(out))
                return failure;
            if (status == Z_STREAM_END) {
                const Bytes rest(reinterpret_cast<const std::byte*>(stream.next_in),
                                 stream.avail_in + packed.size());
                if (!begins_gzip(rest)) {
                    remark_rest(rest, "behind the gzip data");
                    break;
                }
                inflateReset(&stream);
            } else if (status == Z_BUF_ERROR && stream.avail_in == 0 && packed.empty()) {
                problem(fmt::format("the gzip data is cut off; {} bytes came out", spool.size()));
                break;
            } else if (status != Z_OK && status != Z_BUF_ERROR) {
                problem(fmt::format("the gzip data is damaged ({}); {} bytes came out",
                                    stream.msg != nullptr ? stream.msg : "unknown", spool.size()));
                break;
            }
        }
        return hold(spool);
    }

    std::optional<Failure> from_base64() {
        Bytes text = data();
        Base64 base64;
        Spool spool = new_spool();
        std::array<std::byte, piece_size> piece;
        while (!text.empty()) {
            const std::size_t size = base64.decode(text, piece);
            if (auto failure = spool.append(Bytes(piece).first(size)))
                return failure;
        }
        return hold(spool);
    }

    void remark_rest(Bytes bytes, std::string_view where) {
        if (!is_zero(bytes))
            input_.remarks_.push_back(
                fmt::format("{} bytes {} are passed over", bytes.size(), where));
    }

    /// Goes from buffer to buffer, and inflates those that are compressed.
    std::optional<Failure> find_buffers() {
        const Bytes all = data();
        Spool inflated = new_spool();
        std::vector<std::size_t> inflated_at(1, 0);
        std::size_t offset = 0;
        while (offset != all.size()) {
            const Bytes rest = all.subspan(offset);
            if (!begins_with_magic(rest)) {
                const std::size_t next = next_buffer(all, offset);
                remark_rest(rest.first(next - offset),
                            next == all.size()
                                ? "behind the last buffer"
                                : fmt::format("in front of the buffer at {:#x}", next));
                offset = next;
                continue;
            }
            const std::size_t inflated_before = static_cast<std::size_t>(inflated.size());
            kcdata::CompressedHead head;
            std::size_t end = 0;
            if (kcdata::load_header(rest.data()).type != kcdata::KCDATA_BUFFER_BEGIN_COMPRESSED) {
                end = end_of(rest);
                input_.buffers_.push_back({rest.first(end), offset});
            } else {
                const kcdata::CompressionError error = kcdata::read_compressed_head(rest, head);
                if (auto failure = inflate_buffer(head, error, offset, inflated))
                    return failure;
                end = head.end_offset != 0 ? head.end_offset : rest.size();
                if (inflated.size() != inflated_before) {
                    // Its bytes are known when all are inflated.
                    input_.buffers_.push_back({{}, offset});
                    inflated_at.push_back(static_cast<std::size_t>(inflated.size()));
                }
            }
            offset = behind_zeros(all, offset + end);
        }
        auto held = inflated.take();
        if (!held.ok())
            return held.failure();
        input_.inflated_ = std::move(held.value());
        std::size_t next = 0;
        for (Buffer& buffer : input_.buffers_)
            if (buffer.bytes.empty()) {
                buffer.bytes = input_.inflated_.get().subspan(
                    inflated_at[next], inflated_at[next + 1] - inflated_at[next]);
                ++next;
            }
        return std::nullopt;
    }

    /// Size of the buffer at the beginning of `bytes`; all of them if it has no end.
    static std::size_t end_of(Bytes bytes) {
        kcdata::Reader reader(bytes);
        kcdata::Item item;
        do {
            while (reader.next(item)) {
            }
        } while (reader.resume());
        return reader.error() == kcdata::ReadError::none ? reader.offset() : bytes.size();
    }

    /// Where the next buffer is that has items, or the end: a magic alone may be anything.
    static std::size_t next_buffer(Bytes bytes, std::size_t offset) {
        constexpr unsigned enough = 4;
        while (offset != bytes.size() && !(begins_with_magic(bytes.subspan(offset)) &&
                                           kcdata::items_follow(bytes, offset, enough)))
            ++offset;
        return offset;
    }

    /// Where the next buffer is, if one follows with nothing but zeros between.
    static std::size_t behind_zeros(Bytes bytes, std::size_t offset) {
        if (begins_with_magic(bytes.subspan(offset)))
            return offset;
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
        const auto found =
            std::find_if(begin, bytes.end(), [](std::byte byte) { return byte != std::byte{0}; });
        // The magic of an OS reason itself begins with a zero.
        const std::size_t at = offset + static_cast<std::size_t>(found - begin);
        if (at > offset && begins_with_magic(bytes.subspan(at - 1)))
            return at - 1;
        return at;
    }

    /// Appends the plain form of a compressed buffer: its BEGIN, the items, BUFFER_END.
    std::optional<Failure> inflate_buffer(const kcdata::CompressedHead& head,
                                          kcdata::CompressionError error, std::uint64_t offset,
                                          Spool& out) {
        using kcdata::CompressionError;
        const auto tell = [&](CompressionError what) {
            problem(fmt::format("the compressed buffer at offset {:#x}: {}", offset,
                                kcdata::compression_error_text(what)));
        };
        if (error != CompressionError::none)
            tell(error);
        if (!kcdata::has_stream(error))
            return std::nullopt;
        const auto header = [&](const kcdata::ItemHeader& item) {
            return out.append(std::as_bytes(std::span(&item, 1)));
        };
        if (auto failure = header(head.inner_begin))
            return failure;
        std::vector<std::byte> memory(kcdata::Inflater::memory_size);
        kcdata::Inflater inflater(head, memory, limit_ - std::min(limit_, out.size()));
        std::vector<std::byte> piece(piece_size);
        for (;;) {
            const std::size_t size = inflater.read(piece);
            if (auto failure = out.append(Bytes(piece).first(size)))
                return failure;
            if (size < piece.size())
                break;
        }
        if (inflater.error() == CompressionError::too_large)
            return too_much();
        if (inflater.error() != CompressionError::none) {
            // The one follows from the other.
            if (inflater.error() != error)
                tell(inflater.error());
            return std::nullopt;
        }
        if (auto failure = header({kcdata::KCDATA_TYPE_BUFFER_END, 0, 0}))
            return failure;
        return std::nullopt;
    }

    const std::string& path_;
    std::string name_;
    std::uint64_t limit_;
    Input input_{};
};

Expected<Input> Input::open(const std::string& path, std::uint64_t limit) {
    return Opener(path, limit).run(true);
}

Expected<Input> Input::open_packed(const std::string& path, std::uint64_t limit) {
    return Opener(path, limit).run(false);
}

Expected<Input> Input::of(std::vector<std::byte> bytes, const std::string& name,
                          std::uint64_t limit) {
    return Opener(name, limit).run(std::move(bytes));
}

}  // namespace tools
