#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "test/unit/stackshot/model/balance.hpp"

// How evenly the work of a capture is spread over CPUs. See balance.hpp.

namespace {

struct Shape {
    const char* name;
    std::vector<std::size_t> tasks;  ///< how many threads each has
};

struct Machine {
    const char* name;
    stackshot::CpuIndex cpus, e_cores;
};
constexpr Machine machines[] = {{"model8", 8, 0}, {"model16", 16, 0}, {"model4p4e", 8, 4}};

void figure(const std::string& name, double value) {
    std::printf("%s\t%.3f\ttimes the mean\n", name.c_str(), value);
}

}  // namespace

int main() {
    std::vector<Shape> shapes = {
        {"1000x20", std::vector<std::size_t>(1000, 20)},
        {"5000+100x1", std::vector<std::size_t>(100, 1)},
        {"100x1+5000", std::vector<std::size_t>(100, 1)},
    };
    shapes[1].tasks.insert(shapes[1].tasks.begin(), 5000);
    shapes[2].tasks.push_back(5000);
    for (const Machine& machine : machines) {
        double worst = 0;
        for (const Shape& shape : shapes) {
            const model::Balance balance =
                model::measure_balance(shape.tasks, machine.cpus, machine.e_cores);
            if (!balance.failure.empty()) {
                std::fprintf(stderr, "balance: %s on %s: %s\n", shape.name, machine.name,
                             balance.failure.c_str());
                return 1;
            }
            const std::string name = std::string(machine.name) + "." + shape.name;
            figure("trap.balance_" + name, balance.largest);
            figure("trap.lateness_" + name, balance.late);
            worst = std::max(worst, balance.largest);
        }
        figure(std::string("trap.balance_") + machine.name, worst);
    }
    return 0;
}
