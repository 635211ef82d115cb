#include "tools/command_line.hpp"

int main(int argc, char** argv) {
    return tools::run_command_line(argc, argv);
}
