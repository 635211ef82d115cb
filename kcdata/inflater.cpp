#include "kcdata/inflater.hpp"

#include <algorithm>

#include "kcdata/zlib_pieces.hpp"

namespace kcdata {

Inflater::Inflater(const CompressedHead& head, std::span<std::byte> memory, std::uint64_t limit)
    : finished_(head.finished()),
      allowed_(finished_ ? head.total_in : limit),
      missing_(finished_ ? head.total_out - head.stream.size() : 0),
      memory_(memory),
      input_(head.stream) {
    memory_.serve(stream_);
    if (allowed_ > limit)
        end(CompressionError::too_large);
    else if (inflateInit2(&stream_, MAX_WBITS) == Z_OK)
        initialized_ = true;
    else
        end(CompressionError::insufficient_memory);
}

Inflater::~Inflater() {
    if (initialized_)
        inflateEnd(&stream_);
}

std::size_t Inflater::read(std::span<std::byte> out) {
    std::size_t size = 0;
    while (!done_) {
        const std::uint64_t left = allowed_ - total_;
        if (left == 0) {
            // A byte more would be one too many; there is none where the stream ends.
            std::byte excess{};
            if (step(std::span(&excess, 1)) != 0)
                end(finished_ ? CompressionError::wrong_totalin : CompressionError::too_large);
        } else if (size == out.size()) {
            break;
        } else {
            const std::size_t count = step(out.subspan(
                size, static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - size))));
            size += count;
            total_ += count;
        }
        if (at_stream_end_)
            end_of_stream();
    }
    return size;
}

std::size_t Inflater::step(std::span<std::byte> out) {
    feed(stream_, input_);
    const uInt room = give_room(stream_, out);
    switch (inflate(&stream_, Z_NO_FLUSH)) {
        case Z_OK:
            break;
        case Z_STREAM_END:
            at_stream_end_ = true;
            break;
        case Z_BUF_ERROR:
            // There was room: it is the input that is missing.
            end(CompressionError::truncated_stream);
            break;
        case Z_MEM_ERROR:
            end(CompressionError::insufficient_memory);
            break;
        default:
            end(CompressionError::bad_stream);
            break;
    }
    return room - stream_.avail_out;
}

void Inflater::end_of_stream() {
    if (done_)
        return;
    if (!finished_)
        return end(CompressionError::none);
    const bool whole_input = stream_.avail_in == 0 && input_.empty() && missing_ == 0;
    if (total_ != allowed_)
        end(CompressionError::wrong_totalin);
    else
        end(whole_input ? CompressionError::none : CompressionError::wrong_totalout);
}

void Inflater::end(CompressionError error) {
    done_ = true;
    error_ = error;
}

}  // namespace kcdata
