// What boot/entry.S knows of secondary_entry.hpp; secondary.cpp asserts that it is so.
#pragma once

#define SECONDARY_COUNT 64
#define SECONDARY_KEY_BIT 31
#define SECONDARY_START_STACK_TOP 0
#define SECONDARY_START_SIZE 24
#define EARLY_STACK_LOG2_SIZE 10
