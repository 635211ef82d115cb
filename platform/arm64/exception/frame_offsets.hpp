// The layout of ExceptionFrame for vectors.S; dispatch.cpp asserts that it is the C++ struct's.
#pragma once

#define FRAME_X 0
#define FRAME_SP 248
#define FRAME_ELR 256
#define FRAME_SPSR 264
#define FRAME_ESR 272
#define FRAME_FAR 280
#define FRAME_RECORD 288
#define FRAME_FPSR 304
#define FRAME_FPCR 312
#define FRAME_Q 320
#define FRAME_SIZE 832

// mmu::stack_bit
#define STACK_BIT 14
