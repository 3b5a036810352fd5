package org.millrace.device.gin.expert;

import java.lang.foreign.MemorySegment;

/** What a channel sends to each rank. */
interface TokenSource {

    /** Writes the next token for a rank to a slot; called once for each, in order. */
    void write(int rank, MemorySegment memory, long offset);
}
