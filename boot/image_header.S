// The header by which boot loaders know an arm64 Image [Linux Documentation/arch/arm64/booting.rst]. It
// begins with an instruction: the image starts at its first byte.

    .section .head, "ax", %progbits
    b       primary_entry
    .word   0
    .quad   0x80000                         // text_offset, from a 2 MiB boundary; not needed, see flags
    .quad   image_size                      // image_size: memory it needs, BSS and stacks included
    .quad   0b1010                          // flags: little-endian, 4 KiB pages, anywhere in RAM
    .quad   0
    .quad   0
    .quad   0
    .ascii  "ARM\x64"
    .word   0
