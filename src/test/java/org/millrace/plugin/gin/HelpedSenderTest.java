package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;

@Timeout(value = 60, unit = TimeUnit.SECONDS)
class HelpedSenderTest {

    private static final int FRAMES = 200_000;

    private final SendHelper helper = new SendHelper(workCount -> Thread.yield());
    private final Wire wire = new Wire();
    private final FrameSender sender = helper.help(wire);
    private final FrameHeader header = new FrameHeader();

    /**
     * Completes a frame in the pass after its offer. Fails if two threads call this sender at once, or if frames are
     * out of order.
     */
    private static final class Wire implements FrameSender {
        private final AtomicBoolean inUse = new AtomicBoolean();
        private final CountDownLatch used = new CountDownLatch(1);
        private int room = 3;
        private long offered;
        private long completed;
        private volatile long byHelper;
        private long byAgent;
        private int closed;
        private volatile boolean tellsAll;
        private @Nullable ConnectionException next;

        private void enter() {
            assertTrue(inUse.compareAndSet(false, true), "two threads use the wire");
            assertEquals(0, closed, "used behind its end");
        }

        @Override
        public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
            enter();
            try {
                if (offered - completed == room) {
                    return false;
                }
                assertEquals(offered, header.word(0));
                assertEquals(offered * 8, offset);
                offered++;
                if (Thread.currentThread().getName().contains("gin-send")) {
                    byHelper++;
                } else {
                    byAgent++;
                }
                return true;
            } finally {
                inUse.set(false);
            }
        }

        @Override
        public int progress() {
            enter();
            try {
                int work = (int) (offered - completed);
                completed = offered;
                room = room % 7 + 1;
                if (tellsAll && next != null) {
                    ConnectionException thrown = next;
                    next = thrown instanceof PeerClosedException ? new ConnectionException("over") : thrown;
                    throw thrown;
                }
                return work;
            } finally {
                inUse.set(false);
                used.countDown();
            }
        }

        @Override
        public long framesCompleted() {
            return completed;
        }

        @Override
        public void close() {
            assertTrue(inUse.compareAndSet(false, true), "closed while another thread uses the wire");
            closed++;
            inUse.set(false);
        }

        @Override
        public void abort() {
            close();
        }
    }

    @AfterEach
    void end() {
        helper.close();
    }

    private boolean offer(long number) {
        header.word(0, number);
        return sender.offer(header, null, number * 8);
    }

    @Test
    void bothThreadsSendInOneOrder() {
        long number = 0;
        while (sender.framesCompleted() < FRAMES || wire.byHelper == 0) {
            for (int burst = 0; burst < 40 && offer(number); burst++) {
                number++;
            }
            sender.progress();
        }
        while (sender.framesCompleted() < number) {
            sender.progress();
        }
        sender.close();
        assertTrue(wire.byHelper > 0, "the helper sent nothing");
        assertEquals(number, wire.byHelper + wire.byAgent);
        assertEquals(1, wire.closed);
    }

    @Test
    void withoutTheHelperTheAgentSends() {
        helper.close();
        for (long number = 0; number < 1000; number++) {
            assertTrue(offer(number));
            while (sender.framesCompleted() <= number) {
                sender.progress();
            }
        }
        assertEquals(1000, wire.byAgent);
        sender.close();
    }

    @Test
    void whatWasSentBeforeThePeerLeftIsCountedBeforeItIsTold() throws InterruptedException {
        wire.next = new PeerClosedException("gone");
        assertTrue(offer(0));
        wire.tellsAll = true;
        assertTrue(wire.used.await(60, TimeUnit.SECONDS));
        assertThrows(PeerClosedException.class, this::progressForEver);
        assertEquals(1, sender.framesCompleted());
        ConnectionException lost = assertThrows(ConnectionException.class, this::progressForEver);
        assertEquals("over", lost.getMessage());
        assertSame(lost, assertThrows(ConnectionException.class, () -> offer(1)));
        sender.abort();
        sender.close();
        assertEquals(2, wire.closed);
    }

    private void progressForEver() {
        while (true) {
            sender.progress();
        }
    }

    @Test
    void nothingIsSentBehindTheEnd() {
        for (int round = 0; round < 200; round++) {
            Wire another = new Wire();
            FrameSender ending = helper.help(another);
            header.word(0, 0);
            ending.offer(header, null, 0);
            ending.progress();
            ending.close();
            assertEquals(1, another.closed);
            assertEquals(1, another.offered, "what needed no waiting was sent first");
        }
    }
}
