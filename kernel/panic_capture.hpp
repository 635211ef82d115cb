#pragma once

namespace kernel {

class BootArguments;
class StoppedForGood;

/// Takes the boot argument `stackshot.panic_kib`, how much memory the capture in a panic has, in
/// KiB, and reserves it and a stack: in a panic nothing is allocated. 0: no capture. Left out:
/// stackshot::panic_memory_size(). Once, on the boot CPU, with the stackshot system and memory
/// ready.
void reserve_panic_capture(BootArguments& arguments);

/// Captures the world that a panic stopped, sends the capture, or says why there is none, and goes
/// on with `then`, which does not return. Takes no lock, and what it reads of the kernel may be
/// corrupt. On a stack of its own, for it is not known how much is left of the one that panicked.
[[noreturn]] void capture_in_panic(StoppedForGood& stopped, void (*then)());

}  // namespace kernel
