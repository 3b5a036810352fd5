package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Number of system calls that a thread makes to poll several streams. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReadPollTest {

    private static final int STREAMS = 8;
    private static final int PASSES = 1000;

    private final SocketChannel[] remote = new SocketChannel[STREAMS];
    private final SocketChannel[] local = new SocketChannel[STREAMS];
    private final StreamInput[] inputs = new StreamInput[STREAMS];
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(1024);

    private void connect(int streams) throws IOException {
        try (ServerSocketChannel listener = ServerSocketChannel.open()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            for (int i = 0; i < streams; i++) {
                remote[i] = SocketChannel.open(listener.getLocalAddress());
                local[i] = listener.accept();
                local[i].configureBlocking(false);
                inputs[i] = new StreamInput(local[i]);
            }
        }
    }

    @AfterEach
    void close() throws IOException {
        for (int i = 0; i < STREAMS; i++) {
            if (inputs[i] != null) {
                inputs[i].leave();
                local[i].close();
                remote[i].close();
            }
        }
    }

    /** Makes one pass. Returns the number of received bytes. */
    private int pass() throws IOException {
        int bytes = 0;
        for (StreamInput input : inputs) {
            bytes += input == null ? 0 : input.read(buffer.clear(), false);
        }
        return bytes;
    }

    private long reads() {
        long reads = 0;
        for (StreamInput input : inputs) {
            reads += input == null ? 0 : input.reads();
        }
        return reads;
    }

    private void passUntilPatienceEnds() throws IOException {
        for (int i = 0; i < StreamInput.TIMEOUT + 1; i++) {
            pass();
        }
    }

    private void send(int stream) throws IOException {
        remote[stream].write(ByteBuffer.wrap(new byte[100]));
    }

    @Test
    void aPassThatFindsNothingIsOneCall() throws IOException {
        connect(STREAMS);
        passUntilPatienceEnds();
        long reads = reads();
        long looks = StreamInput.ReadPoll.ofThisThread().looks();
        for (int i = 0; i < PASSES; i++) {
            assertEquals(0, pass());
        }
        assertEquals(0, reads() - reads);
        assertEquals(PASSES, StreamInput.ReadPoll.ofThisThread().looks() - looks);
    }

    @Test
    void aPassThatFindsNothingAllocatesNothing() throws IOException {
        connect(STREAMS);
        passUntilPatienceEnds();
        pass();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < PASSES; i++) {
            pass();
        }
        assertEquals(0, threads.getCurrentThreadAllocatedBytes() - before);
    }

    @Test
    void whatArrivesCostsOneReadBesidesTheLook() throws IOException {
        connect(STREAMS);
        passUntilPatienceEnds();
        long reads = reads();
        for (int i = 0; i < PASSES; i++) {
            send(i % STREAMS);
            send((i + 3) % STREAMS);
            int bytes = pass();
            while (bytes < 200) {
                bytes += pass();
            }
        }
        assertEquals(2 * PASSES, reads() - reads);
    }

    /**
     * Two parts, for example a payload and the next header, arrive together and are read separately. The second read
     * needs no further poll.
     */
    @Test
    void whatIsReadInTwoPartsCostsNoSecondLook() throws IOException {
        connect(STREAMS);
        passUntilPatienceEnds();
        long reads = reads();
        long looks = StreamInput.ReadPoll.ofThisThread().looks();
        long passes = 0;
        for (int i = 0; i < PASSES; i++) {
            send(i % STREAMS);
            for (int bytes = 0; bytes < 100; passes++) {
                for (StreamInput input : inputs) {
                    int part = input.read(buffer.clear().limit(60), false);
                    bytes += part == 0 ? 0 : part + input.read(buffer.clear(), true);
                }
            }
        }
        assertEquals(2 * PASSES, reads() - reads);
        assertEquals(passes, StreamInput.ReadPoll.ofThisThread().looks() - looks);
    }

    @Test
    void aThreadWithOneStreamReadsItAtOnce() throws IOException {
        connect(1);
        passUntilPatienceEnds();
        long reads = reads();
        for (int i = 0; i < PASSES; i++) {
            pass();
        }
        assertEquals(PASSES, reads() - reads);
        assertEquals(0, StreamInput.ReadPoll.ofThisThread().looks());
    }

    /** In most passes a thread polls only one stream, because its other streams are idle. */
    @Test
    void aStreamThatAloneIsPolledIsReadAtOnce() throws IOException {
        connect(STREAMS);
        passUntilPatienceEnds();
        long looks = StreamInput.ReadPoll.ofThisThread().looks();
        for (int i = 0; i < PASSES; i++) {
            inputs[0].read(buffer.clear(), false);
        }
        assertTrue(StreamInput.ReadPoll.ofThisThread().looks() - looks <= 1);
        send(1);
        int bytes = 0;
        while (bytes == 0) {
            inputs[0].read(buffer.clear(), false);
            bytes = inputs[1].read(buffer.clear(), false);
        }
        assertEquals(100, bytes);
    }

    @Test
    void anotherThreadReadsWithoutALook() throws Exception {
        connect(STREAMS);
        passUntilPatienceEnds();
        long looks = StreamInput.ReadPoll.ofThisThread().looks();
        send(5);
        FutureTask<Integer> other = new FutureTask<>(() -> {
            int bytes = pass();
            while (bytes == 0) {
                bytes = pass();
            }
            return bytes;
        });
        new Thread(other).start();
        assertEquals(100, other.get());
        assertEquals(looks, StreamInput.ReadPoll.ofThisThread().looks());
    }

    /** Nothing may delay the close of a stream's descriptor, because the peer waits for the end of the stream. */
    @Test
    void aStreamThatLeavesIsClosedAtOnceWhoeverClosesIt() throws Exception {
        connect(STREAMS);
        passUntilPatienceEnds();
        for (int i = 0; i < STREAMS; i++) {
            StreamInput leaving = inputs[i];
            SocketChannel closed = local[i];
            FutureTask<Void> other = new FutureTask<>(() -> {
                leaving.leave();
                closed.close();
                return null;
            });
            new Thread(other).start();
            other.get();
            assertEquals(-1, remote[i].read(buffer.clear()));
            inputs[i] = null;
            remote[i].close();
            if (i + 1 < STREAMS) {
                send(i + 1);
                while (pass() == 0) {
                    Thread.onSpinWait();
                }
            }
        }
    }
}
