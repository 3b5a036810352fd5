package org.millrace.transport.shared;

import java.lang.foreign.MemorySegment;

/** Memory that both ends of a connection reach, each in its own way. */
interface CommonMemory {

    /** The ways to get such memory. */
    interface Source {

        /** Makes memory of zeros. */
        CommonMemory create(long bytes);

        /** Reaches memory that the other end made, with what its {@link CommonMemory#handle} said. */
        CommonMemory open(byte[] handle, long bytes);
    }

    /** All of it; of the global scope, not to be touched after {@link #close}. */
    MemorySegment segment();

    /** What the other end needs to reach it. */
    byte[] handle();

    /** This end needs it no longer. May be called twice. */
    void close();
}
