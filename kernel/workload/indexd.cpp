#include <array>

#include "kernel/mutex.hpp"
#include "kernel/semaphore.hpp"
#include "kernel/sleep.hpp"
#include "kernel/workload/daemons.hpp"

namespace kernel::workload {
namespace {

struct Document {
    std::uint64_t number;
    std::uint64_t words;
};

/// Documents on their way from the crawler to the indexers.
class DocumentQueue {
  public:
    void put(const Document& document) {
        free_.wait();
        {
            MutexGuard guard(mutex_);
            documents_[put_++ % documents_.size()] = document;
        }
        filled_.signal();
    }
    Document take() {
        filled_.wait();
        Document document;
        {
            MutexGuard guard(mutex_);
            document = documents_[taken_++ % documents_.size()];
            // In order, and each one once.
            CHECK(document.number == taken_);
        }
        free_.signal();
        return document;
    }

  private:
    static constexpr std::uint32_t size = 8;

    std::array<Document, size> documents_{};
    std::uint64_t put_ = 0, taken_ = 0;
    Mutex mutex_{};
    Semaphore free_{size}, filled_{0};
};

constinit DocumentQueue queue;
constinit std::uint64_t crawled = 0;

constinit Mutex index_mutex;
constinit std::array<std::uint64_t, 512> postings{};
constinit std::uint64_t posting_count = 0;

/// Visits the folder and everything below it, `depth` levels deep.
[[gnu::noinline]] std::uint64_t crawl_folder(Random& random, std::uint32_t depth) {
    queue.put({++crawled, 20 + random.below(200)});
    std::uint64_t documents = 1;
    if (depth > 1)
        documents += crawl_folder(random, depth - 1);
    if (depth > 1 && random.below(depth) == 0)
        documents += crawl_folder(random, depth / 2);
    return documents;
}

void index_crawler(void* argument) {
    const auto depth = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument));
    Random random(1);
    for (;;) {
        crawl_folder(random, depth);
        sleep_milliseconds(30);
    }
}

[[gnu::noinline]] std::uint64_t tokenize(const Document& document) {
    std::uint64_t digest = document.number;
    for (std::uint64_t word = 0; word < document.words; word++)
        digest = digest * 31 + compute(5, word);
    return digest;
}

void add_posting(std::uint64_t digest) {
    MutexGuard guard(index_mutex);
    postings[posting_count++ % postings.size()] = digest;
}

void index_tokenizer(void*) {
    for (;;)
        add_posting(tokenize(queue.take()));
}

/// Quicksort. Only the smaller part is sorted by recursion, so that it is at most 9 deep.
[[gnu::noinline]] void sort_postings(std::uint64_t* begin, std::uint64_t* end) {
    while (end - begin > 1) {
        const std::uint64_t pivot = begin[(end - begin) / 2];
        std::uint64_t *low = begin, *high = end - 1;
        while (low <= high) {
            while (*low < pivot)
                low++;
            while (*high > pivot)
                high--;
            if (low <= high) {
                const std::uint64_t swapped = *low;
                *low++ = *high;
                *high-- = swapped;
            }
        }
        if (high + 1 - begin < end - low) {
            sort_postings(begin, high + 1);
            begin = low;
        } else {
            sort_postings(low, end);
            end = high + 1;
        }
    }
}

void index_merger(void*) {
    for (;;) {
        sleep_milliseconds(50);
        MutexGuard guard(index_mutex);
        sort_postings(postings.data(), postings.data() + postings.size());
        for (std::size_t index = 1; index < postings.size(); index++)
            CHECK(postings[index - 1] <= postings[index]);
    }
}

}  // namespace

void start_indexd(std::uint32_t threads, std::uint32_t depth) {
    Task& task = make_task("indexd");
    make_thread(task, index_crawler, reinterpret_cast<void*>(std::uintptr_t{depth}), {},
                "index.crawler");
    for (std::uint32_t index = 0; index < threads; index++)
        make_thread(task, index_tokenizer, nullptr, {}, "index.tokenizer.%u", index);
    make_thread(task, index_merger, nullptr, {.priority = 28}, "index.merger");
    task_release(task);
}

}  // namespace kernel::workload
