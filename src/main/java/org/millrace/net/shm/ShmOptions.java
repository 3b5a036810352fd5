package org.millrace.net.shm;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import org.apache.logging.log4j.LogManager;
import org.millrace.file.SharedDirectory;

/**
 * Options of the shared-memory network. The sending side chooses the length of a ring. Both sides must have the same
 * directory. Each side chooses all other options for itself.
 *
 * @param directory         directory of sockets and unsealed rings; it should be in memory
 * @param ringBytes         length of a connection's ring: a power of two from 16 KiB to 1 GiB. Payloads may be longer
 *                          than the ring. The fastest ring is longer than a core's second-level cache, but fits into
 *                          the cache that cores share. If the ring is shorter, each core fetches the ring's lines from
 *                          the other core's cache.
 * @param pieceBytes        length of a piece: a multiple of 64, at most a quarter of the ring. A piece is published to
 *                          the other side as soon as it is copied
 * @param framesInFlight    number of frames that a sender accepts while the ring is full, 1 to 1024
 * @param connectDeadline   time limit for a connection, from the call of connect
 * @param handshakeDeadline time within which a listener's client must send its hello, and the listener must expect the
 *                          client's connection
 * @param singleCopy        whether large payloads are read in the sender's memory
 * @param sealed            whether rings are sealed files outside all directories, if both processes support that
 */
public record ShmOptions(Path directory, int ringBytes, int pieceBytes, int framesInFlight, Duration connectDeadline,
        Duration handshakeDeadline, SingleCopy singleCopy, boolean sealed) {

    private static final int MIN_RING_BYTES = 16 << 10;
    private static final int MAX_RING_BYTES = 1 << 30;
    private static final int MIN_PIECES_PER_RING = 4;
    private static final int MAX_FRAMES_IN_FLIGHT = 1024;

    public ShmOptions {
        require(isRingLength(ringBytes), "ringBytes", ringBytes,
                "a power of two from " + MIN_RING_BYTES + " to " + MAX_RING_BYTES);
        require(pieceBytes >= RingLayout.ALIGNMENT && pieceBytes % RingLayout.ALIGNMENT == 0
                && pieceBytes <= ringBytes / MIN_PIECES_PER_RING, "pieceBytes", pieceBytes,
                "a multiple of " + RingLayout.ALIGNMENT + " up to a quarter of ringBytes, which is " + ringBytes);
        require(framesInFlight >= 1 && framesInFlight <= MAX_FRAMES_IN_FLIGHT, "framesInFlight", framesInFlight,
                "1 to " + MAX_FRAMES_IN_FLIGHT);
        require(connectDeadline.isPositive(), "connectDeadline", connectDeadline, "longer than 0");
        require(handshakeDeadline.isPositive(), "handshakeDeadline", handshakeDeadline, "longer than 0");
    }

    /** Returns whether a ring may have this length. */
    public static boolean isRingLength(long bytes) {
        return bytes >= MIN_RING_BYTES && bytes <= MAX_RING_BYTES && Long.bitCount(bytes) == 1;
    }

    private static void require(boolean holds, String option, Object value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException(
                    "shared-memory option " + option + " is " + value + "; allowed: " + allowed);
        }
    }

    /**
     * Returns options for most machines: rings of 2 MiB in {@code /dev/shm}, pieces of 128 KiB, 16 frames in flight, 30
     * s to connect, 10 s for a handshake. If {@code /dev/shm} is not writable, the options contain the directory for
     * temporary files, and a warning is logged.
     */
    public static ShmOptions defaults() {
        return new ShmOptions(defaultDirectory(), 2 << 20, 128 << 10, 16, Duration.ofSeconds(30),
                Duration.ofSeconds(10), SingleCopy.of(Optional.empty()), true);
    }

    private static Path defaultDirectory() {
        Path usual = SharedDirectory.usual();
        if (!usual.equals(SharedDirectory.MEMORY) && Files.isWritable(usual)) {
            LogManager.getLogger(ShmOptions.class)
                    .warn("{} is not a directory that can be written to: rings are made in {}, which may be slower, "
                            + "as it may lie on a disk", SharedDirectory.MEMORY, usual);
        }
        return usual;
    }

    public ShmOptions withSingleCopy(SingleCopy with) {
        return new ShmOptions(directory, ringBytes, pieceBytes, framesInFlight, connectDeadline, handshakeDeadline,
                with, sealed);
    }
}
