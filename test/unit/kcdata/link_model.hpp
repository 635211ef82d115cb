#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kcdata/serial/host.hpp"
#include "kcdata/serial/target.hpp"

/// Both ends of the link over a line that a test damages, in virtual time (microseconds).
namespace link_model {

using Bytes = std::vector<std::byte>;
using Time = std::uint64_t;

/// What a line does to what is sent over it.
struct Damage {
    /// Of bytes: how many of a million have a bit flipped, are dropped, or come twice; each about
    /// as often as the others.
    double bytes_per_million = 0;
    /// Of reads: how many of a thousand come late (behind the next one), or twice.
    double reads_per_thousand = 0;
    /// How often, in a second, the line stalls (nothing moves), or is cut (everything is lost), and
    /// for how long.
    double stalls_per_second = 0;
    double cuts_per_second = 0;
    Time stall_time = 300'000;
    Time cut_time = 300'000;
    Time latency = 1'000;
    /// What a read gathers.
    Time read_time = 2'000;
};

/// One direction.
class Wire final : public kcdata::serial::ByteSink {
  public:
    Wire(const Time& now, std::mt19937_64& random) : now_(now), random_(random) {}

    kcdata::kern_return write(std::span<const std::byte> bytes) override {
        for (std::byte byte : bytes) {
            free_ = std::max(free_, now_) + ten_bits();
            ++sent_;
            transmit(byte);
        }
        return kcdata::KERN_SUCCESS;
    }
    /// When the last byte written will be on the line.
    Time free() const { return free_; }
    std::optional<Time> next_arrival() const {
        if (reads_.empty())
            return std::nullopt;
        return reads_.begin()->first;
    }
    /// What has arrived by now, read by read.
    std::vector<Bytes> take() {
        std::vector<Bytes> taken;
        while (!reads_.empty() && reads_.begin()->first <= now_) {
            taken.push_back(std::move(reads_.begin()->second));
            reads_.erase(reads_.begin());
        }
        return taken;
    }

    /// Loses everything from now on for damage_.cut_time, or ends that.
    void begin_cut(bool begin) { cut_until_ = begin ? now_ + damage_.cut_time : 0; }

    Damage damage_{};
    std::uint32_t sender_rate_ = 115200, receiver_rate_ = 115200;
    std::uint64_t sent_ = 0;

  private:
    /// Rounded, but not in the long run.
    Time ten_bits() {
        fraction_ += 10'000'000;
        const Time time = fraction_ / sender_rate_;
        fraction_ %= sender_rate_;
        return time;
    }
    bool happens(double probability) {
        return probability > 0 && std::uniform_real_distribution<>(0, 1)(random_) < probability;
    }
    void transmit(std::byte byte) {
        const Time seconds = free_ / 1'000'000;
        if (seconds != second_) {
            second_ = seconds;
            if (happens(damage_.stalls_per_second))
                stalled_until_ = free_ + damage_.stall_time;
            if (happens(damage_.cuts_per_second))
                cut_until_ = free_ + damage_.cut_time;
        }
        if (free_ < cut_until_)
            return;
        if (sender_rate_ != receiver_rate_)
            byte = static_cast<std::byte>(random_());
        int copies = 1;
        if (happens(damage_.bytes_per_million * 1e-6)) {
            switch (random_() % 3) {
                case 0:
                    byte ^= static_cast<std::byte>(1u << random_() % 8);
                    break;
                case 1:
                    copies = 0;
                    break;
                default:
                    copies = 2;
            }
        }
        for (; copies != 0; --copies)
            arrive(byte);
    }
    void arrive(std::byte byte) {
        const Time when = std::max(free_, stalled_until_) + damage_.latency;
        if (reads_.empty() || when > read_end_ || reads_.find(read_at_) == reads_.end()) {
            read_at_ = when + damage_.read_time;
            read_end_ = read_at_;
            if (happens(damage_.reads_per_thousand * 1e-3))
                read_at_ += 3 * damage_.read_time;
            while (reads_.contains(read_at_))
                ++read_at_;
            doubled_ = happens(damage_.reads_per_thousand * 1e-3);
        }
        reads_[read_at_].push_back(byte);
        if (doubled_)
            reads_[read_at_ + 2 * damage_.read_time + 1].push_back(byte);
    }

    const Time& now_;
    std::mt19937_64& random_;
    Time free_ = 0;
    std::uint64_t fraction_ = 0;
    Time second_ = ~Time{0};
    Time stalled_until_ = 0, cut_until_ = 0;
    std::map<Time, Bytes> reads_;
    Time read_at_ = 0, read_end_ = 0;
    bool doubled_ = false;
};

/// The unikernel, as far as the link sees it: how often what was done, and the objects it has.
class Commands final : public kcdata::serial::TargetCommands {
  public:
    using ObjectDescription = kcdata::serial::ObjectDescription;
    using ObjectKind = kcdata::serial::ObjectKind;
    template <typename T>
    using Result = kcdata::Result<T>;

    Result<ObjectDescription> take_stackshot(
        const kcdata::serial::StackshotRequest& request) override {
        ++stackshots_;
        request_ = request;
        if (stackshot_error_ != kcdata::KERN_SUCCESS)
            return stackshot_error_;
        return add(next_capture_, ObjectKind::capture);
    }
    Result<ObjectDescription> retrieve_retained() override { return kcdata::KERN_NOT_IN_SET; }
    std::size_t list_captures(
        std::span<ObjectDescription, kcdata::serial::max_listed> list) override {
        std::size_t count = 0;
        for (auto one = objects_.rbegin(); one != objects_.rend() && count < list.size(); ++one)
            if (one->description.kind == ObjectKind::capture)
                list[count++] = one->description;
        return count;
    }
    kcdata::kern_return release(std::uint32_t name) override {
        return std::erase_if(objects_,
                             [&](const Object& one) { return one.description.name == name; }) != 0
                   ? kcdata::KERN_SUCCESS
                   : kcdata::KERN_NOT_IN_SET;
    }
    Result<ObjectDescription> write_text(kcdata::serial::Operation operation) override {
        const std::string text = std::string("text of ") + operation_name(operation) + "\n";
        const auto bytes = std::as_bytes(std::span(text));
        return add({bytes.begin(), bytes.end()}, ObjectKind::text);
    }
    kcdata::kern_return run_workload(std::string_view name) override {
        running_ = name;
        ++workloads_run_;
        return kcdata::KERN_SUCCESS;
    }
    kcdata::kern_return stop_workload(std::string_view name) override {
        return name == running_ ? kcdata::KERN_SUCCESS : kcdata::KERN_NOT_IN_SET;
    }
    kcdata::kern_return check_baud_rate(std::uint32_t baud_rate) override {
        return baud_rate <= 3'000'000 ? kcdata::KERN_SUCCESS : kcdata::KERN_INVALID_VALUE;
    }
    void set_baud_rate(std::uint32_t baud_rate) override { rates_.push_back(baud_rate); }
    void reboot() override { ++reboots_; }
    void power_off() override { ++power_offs_; }
    std::span<const std::byte> object(std::uint32_t name, ObjectKind& kind) override {
        for (const Object& one : objects_) {
            if (one.description.name == name) {
                kind = one.description.kind;
                return one.bytes;
            }
        }
        return {};
    }
    void text(std::span<const std::byte> bytes) override {
        for (std::byte byte : bytes)
            text_.push_back(static_cast<char>(byte));
    }

    ObjectDescription add(Bytes bytes, ObjectKind kind) {
        const auto description = kcdata::serial::describe_object(bytes, kind, 1);
        objects_.push_back({description, std::move(bytes)});
        return description;
    }

    struct Object {
        ObjectDescription description;
        Bytes bytes;
    };
    std::vector<Object> objects_;
    Bytes next_capture_;
    kcdata::kern_return stackshot_error_ = kcdata::KERN_SUCCESS;
    kcdata::serial::StackshotRequest request_{};
    std::string running_;
    std::string text_;
    std::vector<std::uint32_t> rates_;
    unsigned stackshots_ = 0, workloads_run_ = 0, reboots_ = 0, power_offs_ = 0;
};

/// What the host program hears.
class Told final : public kcdata::serial::HostHandler {
  public:
    struct TakenAnswer {
        kcdata::serial::AnswerHead head;
        Bytes body;
    };
    void text(std::span<const std::byte> bytes) override {
        for (std::byte byte : bytes)
            text_.push_back(static_cast<char>(byte));
    }
    void damaged(std::uint64_t, std::size_t size) override { damaged_ += size; }
    void connected(const kcdata::serial::HelloAnswer& answer) override {
        ++connected_;
        hello_ = answer;
    }
    void answered(const kcdata::serial::Answer& answer) override {
        answers_.push_back({answer.head, {answer.body.begin(), answer.body.end()}});
    }
    void pulled(const kcdata::serial::ObjectDescription& object, Bytes bytes) override {
        objects_.push_back({object, std::move(bytes)});
    }
    void piece(const kcdata::serial::DataFrame& frame) override {
        pieces_.push_back({frame.offset, static_cast<std::uint32_t>(frame.payload.size())});
        (void)write_data_frame(partial_, kcdata::serial::Encoding::binary, frame);
    }
    void failed(kcdata::serial::LinkError error, kcdata::kern_return result) override {
        errors_.push_back({error, result});
    }
    bool set_baud_rate(std::uint32_t baud_rate) override {
        rates_.push_back(baud_rate);
        return true;
    }

    class File final : public kcdata::serial::ByteSink {
      public:
        kcdata::kern_return write(std::span<const std::byte> bytes) override {
            bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
            return kcdata::KERN_SUCCESS;
        }
        Bytes bytes_;
    };
    struct Error {
        kcdata::serial::LinkError error;
        kcdata::kern_return result;
    };
    std::string text_;
    std::size_t damaged_ = 0;
    unsigned connected_ = 0;
    kcdata::serial::HelloAnswer hello_{};
    std::vector<TakenAnswer> answers_;
    std::vector<Commands::Object> objects_;
    std::vector<kcdata::serial::Range> pieces_;
    File partial_;
    std::vector<Error> errors_;
    std::vector<std::uint32_t> rates_;
};

/// Host, line and unikernel.
class Link {
  public:
    struct Options {
        std::uint32_t baud_rate = 115200;
        std::uint64_t seed = 1;
        Damage damage{};
        kcdata::serial::HostOptions host{};
    };
    explicit Link(const Options& options)
        : options_(options),
          random_(options.seed),
          to_host_(now_, random_),
          to_target_(now_, random_) {
        set_damage(options.damage);
        set_rate(options.baud_rate);
        start_target(1);
        start_host(static_cast<std::uint32_t>(options.seed) * 2 + 1);
    }

    void set_damage(const Damage& damage) {
        to_host_.damage_ = damage;
        to_target_.damage_ = damage;
    }
    void start_target(std::uint32_t boot) {
        target_.emplace(
            commands_, to_host_,
            kcdata::serial::Target::Options{
                .boot = boot, .baud_rate = options_.baud_rate, .max_baud_rate = 3'000'000});
    }
    /// Another host program. What it is told begins anew.
    void start_host(std::uint32_t session) {
        told_ = {};
        told_rates_ = 0;
        host_.emplace(told_, to_target_, session, options_.host);
    }

    /// Until `done`, or until nothing happens any more, at most for `limit`. Whether it was done.
    template <typename Done>
    bool run(Done done, Time limit) {
        const Time end = now_ + limit;
        while (!done()) {
            Time next = end;
            const auto at = [&](std::optional<Time> time) {
                if (time)
                    next = std::min(next, std::max(*time, now_));
            };
            at(to_host_.next_arrival());
            at(to_target_.next_arrival());
            at(host_->deadline());
            at(target_->deadline());
            // It writes the next frame while the last bytes of the one before are in the FIFO.
            const Time fifo = 16 * 10'000'000 / std::max(to_host_.sender_rate_, 1u);
            if (target_->owes())
                at(std::max(to_host_.free(), fifo) - fifo);
            now_ = next;
            if (now_ >= end)
                return done();
            const Time begin = cpu_time_ != nullptr ? cpu_time_() : 0;
            for (const Bytes& bytes : to_target_.take())
                target_->receive(bytes, now_);
            if (target_->owes() && to_host_.free() <= now_ + fifo)
                (void)target_->send_next();
            target_->tick(now_);
            for (const Bytes& bytes : to_host_.take())
                host_->receive(bytes, now_);
            if (const auto due = host_->deadline(); due && *due <= now_)
                host_->tick(now_);
            if (cpu_time_ != nullptr)
                now_ += cpu_time_() - begin;
            follow_rates();
        }
        return true;
    }
    /// Until the host has nothing under way.
    bool settle(Time limit) {
        return run([&] { return !host_->busy(); }, limit);
    }
    bool connect(Time limit = 60'000'000) {
        host_->connect(now_);
        return run([&] { return !host_->busy(); }, limit) && host_->connected();
    }

    /// If there is one, what the ends' code takes passes: microseconds.
    Time (*cpu_time_)() = nullptr;
    Options options_;
    Time now_ = 0;
    std::mt19937_64 random_;
    Wire to_host_, to_target_;
    Commands commands_;
    Told told_;
    std::optional<kcdata::serial::Target> target_;
    std::optional<kcdata::serial::Host> host_;

  private:
    void set_rate(std::uint32_t rate) {
        for (Wire* wire : {&to_host_, &to_target_}) {
            wire->sender_rate_ = rate;
            wire->receiver_rate_ = rate;
        }
    }
    void follow_rates() {
        for (; told_rates_ < told_.rates_.size(); ++told_rates_) {
            to_host_.receiver_rate_ = told_.rates_[told_rates_];
            to_target_.sender_rate_ = told_.rates_[told_rates_];
        }
        for (; target_rates_ < commands_.rates_.size(); ++target_rates_) {
            to_host_.sender_rate_ = commands_.rates_[target_rates_];
            to_target_.receiver_rate_ = commands_.rates_[target_rates_];
        }
    }

    std::size_t told_rates_ = 0, target_rates_ = 0;
};

}  // namespace link_model
