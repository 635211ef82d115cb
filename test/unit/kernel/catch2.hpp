#pragma once

// Included behind the kernel's headers: from here on CHECK is Catch2's, not the kernel's.
#undef CHECK
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
