#include "tools/verb_description.hpp"

namespace tools {

bool is_file_value(const std::string& name) {
    return name == "FILE" || name == "[FILE...]" || name == "BEFORE" || name == "AFTER" ||
           name == "LOG" || name == "LINE" || name == "TARGET";
}

}  // namespace tools
