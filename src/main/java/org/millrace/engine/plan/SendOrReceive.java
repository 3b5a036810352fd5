package org.millrace.engine.plan;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.engine.connect.UserRegions;

/** A send or a receive, as the program asked for it; with regions of its memory if that is used in place. */
public record SendOrReceive(boolean sends, MemorySegment buffer, long count, DataType type, int peer,
        UserRegions regions) {

    long bytes() {
        return count * type.bytes();
    }

    @Override
    public String toString() {
        return (sends ? "send of " : "receive of ") + count + ' ' + type.label() + (sends ? " to rank " : " from rank ")
                + peer;
    }
}
