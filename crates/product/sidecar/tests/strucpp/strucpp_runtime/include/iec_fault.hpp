// What a program does that cannot go on: written by hand, as iec_std_lib.hpp is.
#pragma once

#include <cstdint>

namespace strucpp {

enum class IecFault : uint8_t { NullReference, ArrayBounds, BadLocation };

[[noreturn]] void iec_runtime_fault(IecFault reason, const char *context = nullptr) noexcept;

} // namespace strucpp
