#include "platform/arm64/exception/esr.hpp"
#include "platform/arm64/exception/handlers.hpp"

namespace platform {

const char* name(Vector vector) {
    switch (vector) {
        case Vector::current_el_sp0_sync:
            return "current_el_sp0_sync";
        case Vector::current_el_sp0_irq:
            return "current_el_sp0_irq";
        case Vector::current_el_sp0_fiq:
            return "current_el_sp0_fiq";
        case Vector::current_el_sp0_serror:
            return "current_el_sp0_serror";
        case Vector::current_el_spx_sync:
            return "current_el_spx_sync";
        case Vector::current_el_spx_irq:
            return "current_el_spx_irq";
        case Vector::current_el_spx_fiq:
            return "current_el_spx_fiq";
        case Vector::current_el_spx_serror:
            return "current_el_spx_serror";
        case Vector::lower_el_aarch64_sync:
            return "lower_el_aarch64_sync";
        case Vector::lower_el_aarch64_irq:
            return "lower_el_aarch64_irq";
        case Vector::lower_el_aarch64_fiq:
            return "lower_el_aarch64_fiq";
        case Vector::lower_el_aarch64_serror:
            return "lower_el_aarch64_serror";
        case Vector::lower_el_aarch32_sync:
            return "lower_el_aarch32_sync";
        case Vector::lower_el_aarch32_irq:
            return "lower_el_aarch32_irq";
        case Vector::lower_el_aarch32_fiq:
            return "lower_el_aarch32_fiq";
        case Vector::lower_el_aarch32_serror:
            return "lower_el_aarch32_serror";
        case Vector::stack_overflow:
            return "stack_overflow";
    }
    return "unknown vector";
}

const char* exception_class_name(std::uint64_t esr) {
    switch (ESR_EL1::EC(esr)) {
        case 0b000000:
            return "Unknown reason";
        case 0b000001:
            return "Trapped WF* instruction";
        case 0b000111:
            return "Trapped access to SVE, Advanced SIMD or floating-point";
        case 0b001101:
            return "Branch Target Exception";
        case 0b001110:
            return "Illegal Execution state";
        case 0b010101:
            return "SVC instruction";
        case 0b010110:
            return "HVC instruction";
        case 0b010111:
            return "SMC instruction";
        case 0b011000:
            return "Trapped MSR, MRS or System instruction";
        case 0b100000:
            return "Instruction Abort from a lower Exception level";
        case 0b100001:
            return "Instruction Abort";
        case 0b100010:
            return "PC alignment fault";
        case 0b100100:
            return "Data Abort from a lower Exception level";
        case 0b100101:
            return "Data Abort";
        case 0b100110:
            return "SP alignment fault";
        case 0b101100:
            return "Trapped floating-point exception";
        case 0b101111:
            return "SError exception";
        case 0b110000:
        case 0b110001:
            return "Breakpoint exception";
        case 0b110010:
        case 0b110011:
            return "Software Step exception";
        case 0b110100:
        case 0b110101:
            return "Watchpoint exception";
        case 0b111100:
            return "BRK instruction";
        default:
            return "unknown exception class";
    }
}

}  // namespace platform
