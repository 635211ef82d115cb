#include "platform/arm64/image.hpp"

#include "platform/arm64/mmu/mmu.hpp"

namespace platform::image {

extern "C" {
// boot/image.ld
extern const char image_start[];
extern const char image_text_end[];
extern const char image_constants_end[];
extern const char image_end[];
extern const char build_id_note[];
extern const char build_id_note_end[];
extern const char eh_frame_hdr_start[];
extern const char eh_frame_end[];
}

namespace {

std::uint64_t address_of(const char* symbol) {
    return reinterpret_cast<std::uint64_t>(symbol);
}

struct NoteHeader {
    std::uint32_t namesz;
    std::uint32_t descsz;
    std::uint32_t type;
    char name[4];
};
constexpr std::uint32_t NT_GNU_BUILD_ID = 3;

}  // namespace

std::uint64_t link_address() {
    return address_of(image_start);
}

PhysicalAddress load_address() {
    return mmu::translate(link_address()).value_or(PhysicalAddress{});
}

std::size_t size() {
    return address_of(image_end) - address_of(image_start);
}

std::size_t constants_size() {
    return address_of(image_constants_end) - address_of(image_start);
}

CodeRange text() {
    return {address_of(image_start), address_of(image_text_end)};
}

std::span<const std::byte> build_id() {
    const auto* header = reinterpret_cast<const NoteHeader*>(build_id_note);
    const std::size_t size = address_of(build_id_note_end) - address_of(build_id_note);
    if (size < sizeof(NoteHeader) || header->type != NT_GNU_BUILD_ID || header->namesz != 4 ||
        header->descsz > size - sizeof(NoteHeader))
        return {};
    return {reinterpret_cast<const std::byte*>(header + 1), header->descsz};
}

std::span<const std::byte> unwind_tables() {
    return {reinterpret_cast<const std::byte*>(eh_frame_hdr_start),
            address_of(eh_frame_end) - address_of(eh_frame_hdr_start)};
}

}  // namespace platform::image
