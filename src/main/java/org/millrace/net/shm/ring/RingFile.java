package org.millrace.net.shm.ring;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.millrace.net.shm.file.PrivateFile;
import org.millrace.net.shm.file.ShmUnavailableException;

/** Making, mapping and deleting the file that holds a ring. */
public final class RingFile {

    private RingFile() {}

    /**
     * Makes a file with a ring in it and maps it. All its bytes are written: memory that is only promised would kill
     * the process, with a SIGBUS, when it is touched and nothing is left to give.
     *
     * @param access how this process will use it
     * @param first  position of the first byte
     * @throws ShmUnavailableException if there is not so much shared memory
     */
    public static RingMemory create(Path file, RingAccess access, int capacity, long first) {
        long bytes = RingLayout.fileBytes(capacity);
        try (FileChannel channel = PrivateFile.create(file, bytes)) {
            RingMemory ring = access.map(channel, bytes);
            RingLayout.initialize(ring, capacity, first);
            return ring;
        } catch (ShmUnavailableException e) {
            PrivateFile.delete(file);
            throw e;
        } catch (IOException e) {
            PrivateFile.delete(file);
            throw PrivateFile.noRoom("a ring", bytes, file, "take TCP instead (MILLRACE_NET=socket)", e);
        }
    }

    /**
     * Maps a ring that the peer made.
     *
     * @throws ShmUnavailableException if it cannot be opened, or is not as the peer said
     */
    public static RingMemory open(Path file, RingAccess access, int capacity) {
        long bytes = RingLayout.fileBytes(capacity);
        try (FileChannel channel = PrivateFile.open(file)) {
            if (channel.size() != bytes) {
                throw new ShmUnavailableException(
                        "the ring " + file + " has " + channel.size() + " bytes, and the peer said " + bytes);
            }
            RingMemory ring = access.map(channel, bytes);
            String problem = RingLayout.problem(ring, capacity);
            if (problem != null) {
                ring.close();
                throw new ShmUnavailableException("the peer's ring " + file + " is damaged: " + problem);
            }
            return ring;
        } catch (IOException e) {
            throw new ShmUnavailableException(
                    "cannot open the peer's ring " + file + ": " + e + "; do both processes see the same directory?",
                    e);
        }
    }
}
