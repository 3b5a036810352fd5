package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * Identifies one connection of a listener. Both ends know the key before they connect.
 *
 * @param high upper half of the key; any value
 * @param low  lower half of the key; any value. Both halves together are unique for a listener
 */
public record ConnectionKey(long high, long low) {
    /**
     * Compares two keys. For a record without this method, the JVM would generate the code of the comparison at the
     * first call. The generation would delay the start of the process.
     */
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
