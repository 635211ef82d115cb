// The layout of SwitchContext for context_switch.S; context_switch.cpp asserts that it is the C++
// struct's.
#pragma once

#define CONTEXT_X19 0
#define CONTEXT_FP 80
#define CONTEXT_SP 96
#define CONTEXT_D8 112
