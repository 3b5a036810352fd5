package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * Tells the connections of one listener apart; both ends know it before they connect.
 *
 * @param high any value
 * @param low  any value; the pair is unique for its listener
 */
public record ConnectionKey(long high, long low) {
    /** Not as the compiler would have it, with code that is made when it is first called: a start waits for it. */
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
