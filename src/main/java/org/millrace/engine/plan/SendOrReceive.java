package org.millrace.engine.plan;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.engine.connect.UserRegions;

/**
 * A send or a receive, as the program asked for it.
 *
 * @param sends   whether it is a send
 * @param buffer  the elements, or room for them
 * @param count   how many
 * @param type    what they are
 * @param peer    to whom, or from whom
 * @param regions the memory, if it is used in place
 */
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
