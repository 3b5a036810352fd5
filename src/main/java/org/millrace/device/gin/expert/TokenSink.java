package org.millrace.device.gin.expert;

import java.lang.foreign.MemorySegment;

/** Where a channel's tokens from each rank go. */
interface TokenSink {

    /** Takes the next token of a rank from a slot; called once for each, in order. */
    void take(int rank, MemorySegment memory, long offset);
}
