/* NCCL's element types and reductions. NCCL's function table has the same numbers of types and operators. */
#pragma once

#include "launch.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <type_traits>

enum Operator { SUM, PROD, MIN_MAX, PRE_MUL_SUM, SUM_POST_DIV };
enum Phase { BEFORE, COMBINE, AFTER };

/** A 16-bit floating-point number of IEEE 754. */
using Half = _Float16;

/** The upper half of a float. */
struct Bfloat16 {
  uint16_t bits;
  Bfloat16() = default;
  explicit Bfloat16(float value) {
    uint32_t whole;
    memcpy(&whole, &value, sizeof whole);
    bits = isnan(value) ? 0x7fff : (whole + 0x7fff + (whole >> 16 & 1)) >> 16;
  }
  operator float() const {
    uint32_t whole = uint32_t(bits) << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return value;
  }
};

/**
 * An 8-bit floating-point number with saturation. E4M3 has no infinity: all ones are NaN. E5M2 has the exponents of a
 * half. NCCL computes both in halves.
 */
template <int MANTISSA, int BIAS, int LARGEST, int NOT_A_NUMBER> struct Float8 {
  uint8_t bits;
  Float8() = default;
  explicit Float8(float exact) {
    float value = Half(exact), size = fabsf(value);
    int exponent = std::max(size == 0 ? 1 - BIAS : ilogbf(size), 1 - BIAS);
    // The number of units in the last place, rounded to even. A carry enters the exponent.
    int units = size > 65504 ? LARGEST + 1 : int(nearbyintf(ldexpf(size, MANTISSA - exponent)));
    int code = size > 65504 ? units : units + ((exponent + BIAS - 1) << MANTISSA);
    bits = isnan(value) ? NOT_A_NUMBER : (signbit(value) ? 0x80 : 0) | std::min(code, LARGEST);
  }
  operator float() const {
    int exponent = (bits & 0x7f) >> MANTISSA, mantissa = bits & ((1 << MANTISSA) - 1);
    float value = exponent == 0 ? ldexpf(mantissa, 1 - BIAS - MANTISSA)
        : ldexpf(mantissa + (1 << MANTISSA), exponent - BIAS - MANTISSA);
    if ((bits & 0x7f) > LARGEST) value = MANTISSA == 2 && (bits & 3) == 0 ? INFINITY : NAN;
    return bits & 0x80 ? -value : value;
  }
};

using E4M3 = Float8<3, 7, 0x7e, 0x7f>;
using E5M2 = Float8<2, 15, 0x7b, 0x7f>;

constexpr int ELEMENT_BYTES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

template <class T> T fromArgument(uint64_t argument) {
  T value;
  memcpy(&value, &argument, sizeof value);
  return value;
}

/** Integers and native floating-point numbers are computed as they are, the others in floats. */
template <class T, class F> T compute(T a, T b, F function) {
  if constexpr (std::is_arithmetic_v<T>) return function(a, b);
  else return T(function(float(a), float(b)));
}

template <class T> T combine(int operation, uint64_t argument, T a, T b) {
  if (operation == PROD) return compute(a, b, [](auto x, auto y) { return x * y; });
  if (operation != MIN_MAX) return compute(a, b, [](auto x, auto y) { return x + y; });
  if constexpr (std::is_integral_v<T>) {
    T mask = T(argument);
    return (T) (a ^ mask) < (T) (b ^ mask) ? a : b;
  } else {
    return argument & 1 ? compute(a, b, [](auto x, auto y) { return fmax(x, y); })
        : compute(a, b, [](auto x, auto y) { return fmin(x, y); });
  }
}

/** Divides a sum. Bit 0 of the argument says whether the integers are signed; the divisor follows. */
template <class T> T divide(uint64_t argument, T value) {
  if constexpr (std::is_integral_v<T>) {
    using Signed = std::make_signed_t<T>;
    uint64_t divisor = argument >> 1;
    return argument & 1 ? T(int64_t(Signed(value)) / int64_t(divisor)) : T(uint64_t(value) / divisor);
  } else {
    unsupported("a division after a sum of floating-point numbers");
  }
}

template <class T>
void reduceAs(Phase phase, int operation, uint64_t argument, void *to, const void *from, size_t bytes) {
  T *a = static_cast<T *>(to);
  const T *b = static_cast<const T *>(from);
  for (size_t i = 0; i < bytes / sizeof(T); i++) {
    if (phase == COMBINE) a[i] = combine(operation, argument, a[i], b[i]);
    else if (phase == BEFORE) a[i] = compute(a[i], fromArgument<T>(argument), [](auto x, auto y) { return x * y; });
    else a[i] = divide(argument, a[i]);
  }
}

/**
 * Applies a reduction to elements: the step before it, the combination with other elements, or the step after it. The
 * steps before and after exist for one operator each.
 */
inline void reduce(Phase phase, int operation, int type, uint64_t argument, void *to, const void *from, size_t bytes) {
  if (phase == BEFORE && operation != PRE_MUL_SUM) return;
  if (phase == AFTER && operation != SUM_POST_DIV) return;
  using Function = void(Phase, int, uint64_t, void *, const void *, size_t);
  static Function *const functions[] = {reduceAs<uint8_t>, reduceAs<uint8_t>, reduceAs<uint32_t>, reduceAs<uint32_t>,
      reduceAs<uint64_t>, reduceAs<uint64_t>, reduceAs<Half>, reduceAs<float>, reduceAs<double>, reduceAs<Bfloat16>,
      reduceAs<E4M3>, reduceAs<E5M2>};
  functions[type](phase, operation, argument, to, from, bytes);
}
