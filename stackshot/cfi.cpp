#include "stackshot/cfi.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace stackshot {

static_assert(std::endian::native == std::endian::little, "the tables are read as they are");

namespace {

// Pointer encodings (LSB Core, "DWARF Exception Header Encoding"): a format in the low nibble, what
// it is relative to above.
constexpr std::uint8_t DW_EH_PE_omit = 0xff;
constexpr std::uint8_t DW_EH_PE_format_mask = 0x0f;
constexpr std::uint8_t DW_EH_PE_absptr = 0x00;
constexpr std::uint8_t DW_EH_PE_uleb128 = 0x01;
constexpr std::uint8_t DW_EH_PE_udata2 = 0x02;
constexpr std::uint8_t DW_EH_PE_udata4 = 0x03;
constexpr std::uint8_t DW_EH_PE_udata8 = 0x04;
constexpr std::uint8_t DW_EH_PE_sleb128 = 0x09;
constexpr std::uint8_t DW_EH_PE_sdata2 = 0x0a;
constexpr std::uint8_t DW_EH_PE_sdata4 = 0x0b;
constexpr std::uint8_t DW_EH_PE_sdata8 = 0x0c;
constexpr std::uint8_t DW_EH_PE_application_mask = 0x70;
constexpr std::uint8_t DW_EH_PE_pcrel = 0x10;
constexpr std::uint8_t DW_EH_PE_datarel = 0x30;
constexpr std::uint8_t DW_EH_PE_indirect = 0x80;

// DWARF register numbers (AADWARF64).
constexpr std::uint64_t x29 = 29;
constexpr std::uint64_t x30 = 30;
constexpr std::uint64_t sp = 31;

/// Reads forward through bytes; the first read past the end fails this cursor for good.
class Cursor {
  public:
    /// `address`: of the first of `bytes`. `data_base`: what DW_EH_PE_datarel is relative to.
    Cursor(std::span<const std::byte> bytes, std::uint64_t address, std::uint64_t data_base)
        : bytes_(bytes), address_(address), data_base_(data_base) {}

    bool ok() const { return ok_; }
    bool at_end() const { return offset_ == bytes_.size(); }
    std::uint64_t address() const { return address_ + offset_; }

    template <typename T>
    T read() {
        T value{};
        if (ok_ && sizeof(T) <= bytes_.size() - offset_) {
            std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
            offset_ += sizeof(T);
        } else {
            ok_ = false;
        }
        return value;
    }

    std::uint64_t uleb128() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; ok_; shift += 7) {
            const auto byte = read<std::uint8_t>();
            if (shift < 64)
                value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if ((byte & 0x80) == 0)
                break;
        }
        return value;
    }

    std::int64_t sleb128() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; ok_;) {
            const auto byte = read<std::uint8_t>();
            if (shift < 64)
                value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            shift += 7;
            if ((byte & 0x80) == 0) {
                if ((byte & 0x40) != 0 && shift < 64)
                    value |= ~std::uint64_t{0} << shift;
                break;
            }
        }
        return static_cast<std::int64_t>(value);
    }

    void skip(std::uint64_t size) {
        if (size <= bytes_.size() - offset_)
            offset_ += static_cast<std::size_t>(size);
        else
            ok_ = false;
    }

    /// The next `size` bytes as a cursor of their own, behind which this one goes on.
    Cursor take(std::uint64_t size) {
        const std::size_t start = offset_;
        skip(size);
        Cursor part(bytes_.subspan(start, offset_ - start), address_ + start, data_base_);
        part.ok_ = ok_;
        return part;
    }

    /// A pointer in the form `encoding` names. `supported` turns false if that is an unknown one.
    std::uint64_t pointer(std::uint8_t encoding, bool& supported) {
        std::uint64_t base = 0;
        switch (encoding & DW_EH_PE_application_mask) {
            case 0:
                break;
            case DW_EH_PE_pcrel:
                base = address();
                break;
            case DW_EH_PE_datarel:
                base = data_base_;
                break;
            default:
                supported = false;
        }
        if ((encoding & DW_EH_PE_indirect) != 0)
            supported = false;
        return base + number(encoding & DW_EH_PE_format_mask, supported);
    }

    /// A number in the format `format` names, sign-extended where the format is signed.
    std::uint64_t number(std::uint8_t format, bool& supported) {
        switch (format) {
            case DW_EH_PE_absptr:
            case DW_EH_PE_udata8:
            case DW_EH_PE_sdata8:
                return read<std::uint64_t>();
            case DW_EH_PE_uleb128:
                return uleb128();
            case DW_EH_PE_udata2:
                return read<std::uint16_t>();
            case DW_EH_PE_udata4:
                return read<std::uint32_t>();
            case DW_EH_PE_sleb128:
                return static_cast<std::uint64_t>(sleb128());
            case DW_EH_PE_sdata2:
                return static_cast<std::uint64_t>(std::int64_t{read<std::int16_t>()});
            case DW_EH_PE_sdata4:
                return static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>()});
            default:
                supported = false;
                return 0;
        }
    }

  private:
    std::span<const std::byte> bytes_;
    std::uint64_t address_;
    std::uint64_t data_base_;
    std::size_t offset_ = 0;
    bool ok_ = true;
};

/// What a Common Information Entry says for all functions that name it.
struct CommonInformation {
    std::uint64_t code_alignment = 0;
    std::int64_t data_alignment = 0;
    std::uint8_t pointer_encoding = DW_EH_PE_absptr;
    bool has_augmentation_data = false;
    bool return_address_in_x30 = false;
};

/// Parses a CIE up to its initial instructions, where `entry` is left. `entry` starts behind the
/// length.
CfiStatus parse_common_information(Cursor& entry, CommonInformation& cie) {
    if (entry.read<std::uint32_t>() != 0)
        return CfiStatus::malformed;
    const auto version = entry.read<std::uint8_t>();
    if (!entry.ok())
        return CfiStatus::malformed;
    if (version != 1 && version != 3)
        return CfiStatus::unsupported;

    std::array<char, 8> augmentation{};
    std::size_t length = 0;
    for (;;) {
        const auto character = entry.read<char>();
        if (!entry.ok())
            return CfiStatus::malformed;
        if (character == '\0')
            break;
        if (length == augmentation.size())
            return CfiStatus::unsupported;
        augmentation[length++] = character;
    }
    cie.code_alignment = entry.uleb128();
    cie.data_alignment = entry.sleb128();
    const std::uint64_t return_column = version == 1 ? entry.read<std::uint8_t>() : entry.uleb128();
    if (!entry.ok())
        return CfiStatus::malformed;
    cie.return_address_in_x30 = return_column == x30;
    if (length == 0)
        return CfiStatus::found;
    if (augmentation[0] != 'z')
        return CfiStatus::unsupported;

    cie.has_augmentation_data = true;
    Cursor data = entry.take(entry.uleb128());
    bool supported = true;
    for (std::size_t n = 1; n < length; ++n) {
        switch (augmentation[n]) {
            case 'R':
                cie.pointer_encoding = data.read<std::uint8_t>();
                break;
            case 'L':
                data.skip(1);
                break;
            case 'P': {
                const auto encoding = data.read<std::uint8_t>();
                data.number(encoding & DW_EH_PE_format_mask, supported);
                break;
            }
            case 'S':  // Signal frame: says nothing about where registers are.
            case 'B':  // Return addresses signed with the B key: likewise.
                break;
            default:
                return CfiStatus::unsupported;
        }
    }
    if (!entry.ok() || !data.ok())
        return CfiStatus::malformed;
    return supported ? CfiStatus::found : CfiStatus::unsupported;
}

/// Computes the row of the unwind table that holds at one pc, by running call frame instructions.
class RowMachine {
  public:
    RowMachine(const CommonInformation& cie, std::uint64_t location, std::uint64_t pc)
        : cie_(cie), location_(location), pc_(pc) {}

    CfiStatus run_initial(Cursor instructions) {
        const CfiStatus status = run(instructions);
        initial_ = row_;
        return status;
    }

    /// Runs until the row for the pc is complete.
    CfiStatus run(Cursor instructions) {
        while (!instructions.at_end() && !passed_) {
            const CfiStatus status = step(instructions);
            if (!instructions.ok())
                return CfiStatus::malformed;
            if (status != CfiStatus::found)
                return status;
        }
        return CfiStatus::found;
    }

    CfiStatus rule(FrameRule& rule) const {
        if (!row_.cfa_supported)
            return CfiStatus::unsupported;
        rule = row_.rule;
        return CfiStatus::found;
    }

  private:
    struct Row {
        FrameRule rule{};
        bool cfa_supported = false;
    };

    // Call frame instructions (DWARF 5, section 6.4.2 and 7.24). The first three have an operand in
    // their low six bits.
    enum : std::uint8_t {
        DW_CFA_advance_loc = 0x40,
        DW_CFA_offset = 0x80,
        DW_CFA_restore = 0xc0,
        DW_CFA_nop = 0x00,
        DW_CFA_set_loc = 0x01,
        DW_CFA_advance_loc1 = 0x02,
        DW_CFA_advance_loc2 = 0x03,
        DW_CFA_advance_loc4 = 0x04,
        DW_CFA_offset_extended = 0x05,
        DW_CFA_restore_extended = 0x06,
        DW_CFA_undefined = 0x07,
        DW_CFA_same_value = 0x08,
        DW_CFA_register = 0x09,
        DW_CFA_remember_state = 0x0a,
        DW_CFA_restore_state = 0x0b,
        DW_CFA_def_cfa = 0x0c,
        DW_CFA_def_cfa_register = 0x0d,
        DW_CFA_def_cfa_offset = 0x0e,
        DW_CFA_def_cfa_expression = 0x0f,
        DW_CFA_expression = 0x10,
        DW_CFA_offset_extended_sf = 0x11,
        DW_CFA_def_cfa_sf = 0x12,
        DW_CFA_def_cfa_offset_sf = 0x13,
        DW_CFA_val_offset = 0x14,
        DW_CFA_val_offset_sf = 0x15,
        DW_CFA_val_expression = 0x16,
        DW_CFA_AARCH64_negate_ra_state = 0x2d,
        DW_CFA_GNU_args_size = 0x2e,
    };

    CfiStatus step(Cursor& in) {
        const auto opcode = in.read<std::uint8_t>();
        const std::uint8_t operand = opcode & 0x3f;
        switch (opcode & 0xc0) {
            case DW_CFA_advance_loc:
                advance(operand);
                return CfiStatus::found;
            case DW_CFA_offset:
                set(operand, FrameRule::Saved::at_offset, data_factored(in.uleb128()));
                return CfiStatus::found;
            case DW_CFA_restore:
                restore(operand);
                return CfiStatus::found;
            default:
                break;
        }
        switch (opcode) {
            case DW_CFA_nop:
            case DW_CFA_AARCH64_negate_ra_state:
                break;
            case DW_CFA_advance_loc1:
                advance(in.read<std::uint8_t>());
                break;
            case DW_CFA_advance_loc2:
                advance(in.read<std::uint16_t>());
                break;
            case DW_CFA_advance_loc4:
                advance(in.read<std::uint32_t>());
                break;
            case DW_CFA_offset_extended: {
                const std::uint64_t column = in.uleb128();
                set(column, FrameRule::Saved::at_offset, data_factored(in.uleb128()));
                break;
            }
            case DW_CFA_offset_extended_sf: {
                const std::uint64_t column = in.uleb128();
                set(column, FrameRule::Saved::at_offset,
                    data_factored(static_cast<std::uint64_t>(in.sleb128())));
                break;
            }
            case DW_CFA_restore_extended:
                restore(in.uleb128());
                break;
            case DW_CFA_undefined:
                set(in.uleb128(), FrameRule::Saved::undefined, 0);
                break;
            case DW_CFA_same_value:
                set(in.uleb128(), FrameRule::Saved::in_register, 0);
                break;
            case DW_CFA_register:
            case DW_CFA_val_offset:
            case DW_CFA_val_offset_sf: {
                const std::uint64_t column = in.uleb128();
                in.uleb128();
                set(column, FrameRule::Saved::elsewhere, 0);
                break;
            }
            case DW_CFA_expression:
            case DW_CFA_val_expression: {
                const std::uint64_t column = in.uleb128();
                in.skip(in.uleb128());
                set(column, FrameRule::Saved::elsewhere, 0);
                break;
            }
            case DW_CFA_remember_state:
                if (remembered_count_ == remembered_.size())
                    return CfiStatus::unsupported;
                remembered_[remembered_count_++] = row_;
                break;
            case DW_CFA_restore_state:
                if (remembered_count_ == 0)
                    return CfiStatus::malformed;
                row_ = remembered_[--remembered_count_];
                break;
            case DW_CFA_def_cfa: {
                const std::uint64_t column = in.uleb128();
                set_cfa(column, static_cast<std::int64_t>(in.uleb128()));
                break;
            }
            case DW_CFA_def_cfa_sf: {
                const std::uint64_t column = in.uleb128();
                set_cfa(column, data_factored(static_cast<std::uint64_t>(in.sleb128())));
                break;
            }
            case DW_CFA_def_cfa_register:
                set_cfa(in.uleb128(), row_.rule.cfa_offset);
                break;
            case DW_CFA_def_cfa_offset:
                row_.rule.cfa_offset = static_cast<std::int64_t>(in.uleb128());
                break;
            case DW_CFA_def_cfa_offset_sf:
                row_.rule.cfa_offset = data_factored(static_cast<std::uint64_t>(in.sleb128()));
                break;
            case DW_CFA_def_cfa_expression:
                in.skip(in.uleb128());
                row_.cfa_supported = false;
                break;
            case DW_CFA_GNU_args_size:
                in.uleb128();
                break;
            default:
                return in.ok() ? CfiStatus::unsupported : CfiStatus::malformed;
        }
        return CfiStatus::found;
    }

    void advance(std::uint64_t delta) {
        location_ += delta * cie_.code_alignment;
        passed_ = location_ > pc_;
    }

    std::int64_t data_factored(std::uint64_t factor) const {
        // Unsigned, as the product of two hostile numbers may overflow.
        return static_cast<std::int64_t>(factor * static_cast<std::uint64_t>(cie_.data_alignment));
    }

    static FrameRule::Slot* slot(Row& row, std::uint64_t column) {
        if (column == x29)
            return &row.rule.frame_pointer;
        if (column == x30)
            return &row.rule.return_address;
        return nullptr;
    }

    void set(std::uint64_t column, FrameRule::Saved saved, std::int64_t offset) {
        if (FrameRule::Slot* target = slot(row_, column))
            *target = {saved, offset};
    }

    void restore(std::uint64_t column) {
        if (FrameRule::Slot* target = slot(row_, column))
            *target = *slot(initial_, column);
    }

    void set_cfa(std::uint64_t column, std::int64_t offset) {
        row_.cfa_supported = column == sp || column == x29;
        row_.rule.cfa_base = column == x29 ? FrameRule::Base::fp : FrameRule::Base::sp;
        row_.rule.cfa_offset = offset;
    }

    const CommonInformation& cie_;
    std::uint64_t location_;
    std::uint64_t pc_;
    bool passed_ = false;
    Row row_{};
    Row initial_{};
    std::array<Row, 4> remembered_{};
    std::size_t remembered_count_ = 0;
};

/// One entry of the sorted table: both relative to the address of .eh_frame_hdr.
struct TableEntry {
    std::int32_t function;
    std::int32_t description;
};

std::uint64_t relative(std::uint64_t base, std::int32_t offset) {
    return base + static_cast<std::uint64_t>(std::int64_t{offset});
}

/// The entry of .eh_frame whose length field is at `offset`, as a cursor behind that field.
/// A cursor that is not ok if it does not lie in `tables`.
Cursor entry_at(std::span<const std::byte> tables, std::uint64_t address, std::uint64_t offset) {
    Cursor all(tables, address, address);
    all.skip(offset);
    const auto length = all.read<std::uint32_t>();
    // 0 ends the section; 0xffffffff announces the 64-bit format, which no 32-bit table needs.
    if (length == 0 || length == UINT32_MAX)
        all.skip(UINT64_MAX);
    return all.take(length);
}

}  // namespace

UnwindTables::UnwindTables(std::span<const std::byte> tables, std::uint64_t address)
    : tables_(tables), address_(address) {
    if (tables.empty())
        return;
    Cursor header(tables, address, address);
    const auto version = header.read<std::uint8_t>();
    const auto eh_frame_encoding = header.read<std::uint8_t>();
    const auto count_encoding = header.read<std::uint8_t>();
    const auto table_encoding = header.read<std::uint8_t>();
    bool supported = version == 1 && table_encoding == (DW_EH_PE_datarel | DW_EH_PE_sdata4) &&
                     count_encoding != DW_EH_PE_omit;
    if (eh_frame_encoding != DW_EH_PE_omit)
        header.pointer(eh_frame_encoding, supported);
    const std::uint64_t count = header.number(count_encoding & DW_EH_PE_format_mask, supported);
    first_entry_ = static_cast<std::size_t>(header.address() - address);
    if (!header.ok() || count > (tables.size() - first_entry_) / sizeof(TableEntry))
        header_status_ = CfiStatus::malformed;
    else if (!supported)
        header_status_ = CfiStatus::unsupported;
    else
        header_status_ = CfiStatus::found;
    count_ = header_status_ == CfiStatus::found ? static_cast<std::size_t>(count) : 0;
}

std::uint64_t UnwindTables::function_start(std::size_t n) const {
    TableEntry entry{};
    std::memcpy(&entry, tables_.data() + first_entry_ + n * sizeof(entry), sizeof(entry));
    return relative(address_, entry.function);
}

CfiStatus UnwindTables::find(std::uint64_t pc, FrameRule& rule) const {
    if (header_status_ != CfiStatus::found)
        return header_status_;

    // The last function that starts at or below the pc.
    std::size_t low = 0;
    for (std::size_t high = count_; low < high;) {
        const std::size_t middle = low + (high - low) / 2;
        if (function_start(middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return CfiStatus::no_entry;
    TableEntry found{};
    std::memcpy(&found, tables_.data() + first_entry_ + (low - 1) * sizeof(found), sizeof(found));
    const std::uint64_t description = relative(address_, found.description);

    Cursor fde = entry_at(tables_, address_, description - address_);
    const std::uint64_t pointer_address = fde.address();
    const auto cie_pointer = fde.read<std::uint32_t>();
    if (!fde.ok() || cie_pointer == 0)
        return CfiStatus::malformed;
    Cursor common = entry_at(tables_, address_, pointer_address - cie_pointer - address_);
    if (!common.ok())
        return CfiStatus::malformed;
    CommonInformation cie;
    if (const CfiStatus status = parse_common_information(common, cie); status != CfiStatus::found)
        return status;

    bool supported = true;
    const std::uint64_t start = fde.pointer(cie.pointer_encoding, supported);
    const std::uint64_t size = fde.number(cie.pointer_encoding & DW_EH_PE_format_mask, supported);
    if (cie.has_augmentation_data)
        fde.skip(fde.uleb128());
    if (!supported)
        return CfiStatus::unsupported;
    if (!fde.ok())
        return CfiStatus::malformed;
    if (pc - start >= size)
        return CfiStatus::no_entry;
    if (!cie.return_address_in_x30)
        return CfiStatus::unsupported;

    RowMachine machine(cie, start, pc);
    if (const CfiStatus status = machine.run_initial(common); status != CfiStatus::found)
        return status;
    if (const CfiStatus status = machine.run(fde); status != CfiStatus::found)
        return status;
    return machine.rule(rule);
}

}  // namespace stackshot
