#pragma once

#include <cstddef>

#include "kcdata/result.hpp"
#include "kcdata/writer.hpp"
#include "stackshot/request.hpp"

namespace stackshot {

/// Gathers records of what a trap does not stop, such as services outside of the kernel (XNU's
/// exclaves): after the barrier, when the world runs again, and before the buffer is finalized. Its
/// records are those of a later time than the tasks'. They lie behind the counts of tasks and
/// threads.
class PostTrapProducer {
  public:
    /// Bytes that record() appends at most for this request. Thread context.
    virtual std::size_t room(const Request& request) = 0;
    /// Appends its records. Thread context, interrupts on; may block. An error ends the capture;
    /// KERN_INSUFFICIENT_BUFFER_SIZE has it taken again with a larger buffer.
    virtual kcdata::kern_return record(kcdata::Writer& writer, const Request& request) = 0;

  protected:
    ~PostTrapProducer() = default;
};

}  // namespace stackshot
