#include "stackshot/microseconds.hpp"

#include <numeric>

namespace stackshot {

// Let a / b be the ratio and M = ceil(2^k * a / b) = (2^k * a + e) / b, 0 <= e < b. Then
//
//     time * M / 2^k = time * a / b + time * e / (b * 2^k),
//
// and the first term's fraction is at most (b - 1) / b. So the second does not change the whole
// part as long as it is below 1 / b, that is, time * e < 2^k. Here k is 64 + shift, the largest for
// which M fits into 64 bits.
Microseconds::Microseconds(const Timebase& timebase)
    : numerator_(timebase.numer), denominator_(std::uint64_t{timebase.denom} * 1000) {
    const std::uint64_t divisor = std::gcd(numerator_, denominator_);
    numerator_ /= divisor;
    denominator_ /= divisor;
    if (numerator_ >= denominator_)  // ticks of a microsecond or more
        return;
    while (numerator_ << (shift_ + 1) < denominator_)
        ++shift_;
    std::uint64_t remainder = numerator_ << shift_;
    for (unsigned bit = 0; bit < 64; ++bit) {
        remainder <<= 1;
        multiplier_ <<= 1;
        if (remainder >= denominator_) {
            remainder -= denominator_;
            multiplier_ |= 1;
        }
    }
    if (remainder == 0) {
        multiplied_to_ = UINT64_MAX;
        return;
    }
    ++multiplier_;
    const std::uint64_t bound = UINT64_MAX / (denominator_ - remainder);
    multiplied_to_ = bound > UINT64_MAX >> shift_ ? UINT64_MAX : bound << shift_;
}

std::uint64_t Microseconds::divide(std::uint64_t time) const {
    // The fraction's product with the numerator may not fit: multiplied bit by bit, divided at
    // once.
    const std::uint64_t fraction = time % denominator_;
    std::uint64_t quotient = 0;
    std::uint64_t remainder = 0;
    for (unsigned left = 64; left > 0; --left) {
        quotient <<= 1;
        remainder <<= 1;
        if ((numerator_ >> (left - 1) & 1) != 0)
            remainder += fraction;
        quotient += remainder / denominator_;
        remainder %= denominator_;
    }
    return time / denominator_ * numerator_ + quotient;
}

}  // namespace stackshot
