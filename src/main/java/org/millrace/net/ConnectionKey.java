package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * Identifies one connection of a listener. Both ends know it before they connect.
 *
 * @param high any value
 * @param low  any value; the pair is unique for its listener
 */
public record ConnectionKey(long high, long low) {
    /** Replaces the compiler's version: that version generates code at its first call, which delays the start. */
    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof ConnectionKey key && key.high == high && key.low == low;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(high * 31 + low);
    }

    @Override
    public String toString() {
        return Long.toHexString(high) + ":" + Long.toHexString(low);
    }
}
