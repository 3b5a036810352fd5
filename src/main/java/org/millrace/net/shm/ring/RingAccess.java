package org.millrace.net.shm.ring;

import java.io.IOException;
import java.nio.channels.FileChannel;
import org.millrace.net.shm.file.ShmUnavailableException;

/** With what a process reads and writes its rings. Each side's own choice: the bytes are the same. */
public enum RingAccess {

    /** The JDK's memory segments: checked, and unmapped as soon as a connection is closed. */
    SEGMENT {
        @Override
        RingMemory map(FileChannel channel, long bytes) throws IOException {
            return RingMemory.OfSegment.map(channel, bytes);
        }
    },

    /**
     * Chronicle Bytes: unchecked, and unmapped when the garbage collector finds the connection unused. Needs
     * {@code net.openhft:chronicle-bytes} on the class path, and from JDK 23 on
     * {@code --sun-misc-unsafe-memory-access=allow} on the command line to run without a warning.
     */
    CHRONICLE {
        @Override
        RingMemory map(FileChannel channel, long bytes) throws IOException {
            try {
                return RingMemory.OfChronicle.map(channel, bytes);
            } catch (LinkageError e) {
                throw new ShmUnavailableException("rings cannot be accessed with Chronicle Bytes: " + e
                        + "; put net.openhft:chronicle-bytes on the class path "
                        + "and --sun-misc-unsafe-memory-access=allow on the command line, or choose SEGMENT in the shared-memory options",
                        e);
            }
        }
    };

    abstract RingMemory map(FileChannel channel, long bytes) throws IOException;
}
