package org.millrace.bench.jvm;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.Header;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Messages of Aeron between two processes of one host, with a stream each way. The media driver is in the process of
 * rank 0, and has one thread. Ranks poll without pauses.
 */
public final class AeronMessages implements Messages {

    /** The largest MTU, so that 64 KiB are two fragments, and less memory in /dev/shm than by default. */
    private static final String CHANNEL = "aeron:ipc?mtu=65504|term-length=16m";

    private final MemorySegment sent = Arena.global().allocate(JvmRank.LARGEST_TRIP, 64);
    private final MemorySegment received = Arena.global().allocate(JvmRank.LARGEST_TRIP, 64);
    private final UnsafeBuffer outgoing = new UnsafeBuffer(sent.address(), JvmRank.LARGEST_TRIP);
    private final UnsafeBuffer incoming = new UnsafeBuffer(received.address(), JvmRank.LARGEST_TRIP);
    private final FragmentAssembler assembler = new FragmentAssembler(this::store, JvmRank.LARGEST_TRIP);
    private final MediaDriver driver;
    private final Aeron aeron;
    private final ExclusivePublication publication;
    private final Subscription subscription;
    private int arrived;

    /**
     * Connects the two ranks.
     *
     * @param meeting place of the ranks
     */
    public AeronMessages(Meeting meeting) {
        String directory = meeting.directory().resolve("aeron").toString();
        driver = meeting.rank() == 0 ? MediaDriver.launch(new MediaDriver.Context().aeronDirectoryName(directory)
                .threadingMode(ThreadingMode.SHARED)
                .dirDeleteOnShutdown(true)) : null;
        aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(directory));
        publication = aeron.addExclusivePublication(CHANNEL, 1 + meeting.rank());
        subscription = aeron.addSubscription(CHANNEL, 2 - meeting.rank());
        while (!publication.isConnected() || !subscription.isConnected()) {
            Thread.onSpinWait();
        }
    }

    private void store(DirectBuffer buffer, int offset, int length, Header header) {
        buffer.getBytes(offset, incoming, 0, length);
        arrived = length;
    }

    @Override
    public MemorySegment sent() {
        return sent;
    }

    @Override
    public MemorySegment received() {
        return received;
    }

    @Override
    public void send(int bytes) throws IOException {
        long position;
        while ((position = publication.offer(outgoing, 0, bytes)) < 0) {
            if (position != Publication.BACK_PRESSURED && position != Publication.ADMIN_ACTION) {
                throw new IOException("Aeron's offer returned " + position);
            }
            Thread.onSpinWait();
        }
    }

    @Override
    public void receive(int bytes) throws IOException {
        arrived = 0;
        while (arrived == 0) {
            if (subscription.poll(assembler, 1) == 0) {
                if (!subscription.isConnected()) {
                    throw new EOFException("the other rank has closed its publication");
                }
                Thread.onSpinWait();
            }
        }
        if (arrived != bytes) {
            throw new IOException("received a message of " + arrived + " bytes instead of " + bytes);
        }
    }

    @Override
    public void close() {
        aeron.close();
        if (driver != null) {
            driver.close();
        }
    }
}
