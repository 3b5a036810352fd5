package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyOp;

/** Several connections over one network connection: each receives exactly the frames sent to it, in order. */
class SharedConnectionTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 64, 8 * 2048, 8 * 64);
    private static final int STEPS = 3000;

    private static final class Channel {
        ConnectionInfo from;
        ConnectionInfo to;
        SendProxy send;
        ReceiveProxy receive;
        long posted;
        long consumed;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8})
    void everyMemberGetsItsOwnFrames(int members) {
        Random random = new Random(members);
        try (Arena arena = Arena.ofConfined()) {
            MemoryFrames frames = new MemoryFrames(random);
            SharedSender senders = new SharedSender(frames.sender(), members);
            SharedReceiver receivers = new SharedReceiver(frames.receiver(), members);
            List<Channel> channels = new ArrayList<>();
            ProxyOp op = new ProxyOp(1, 2, 3, STEPS, 1, 1);
            for (int member = 0; member < members; member++) {
                Channel channel = new Channel();
                channel.from = ConnectionInfo.allocate(arena, LAYOUT, 0);
                channel.to = ConnectionInfo.allocate(arena, LAYOUT, 0);
                OperationQueue sends = new OperationQueue();
                OperationQueue receives = new OperationQueue();
                channel.send = SendProxy.sharing(null, ConnectionName.ofRing(0, 1, member, true), channel.from,
                        MemoryFrames.region(channel.from.buffers()), sends, senders.member(member, sends),
                        (c, f) -> {});
                channel.receive = ReceiveProxy.sharing(null, null, ConnectionName.ofRing(1, 0, member, false),
                        channel.to, MemoryFrames.region(channel.to.buffers()), MemoryFrames.staging(arena, LAYOUT),
                        receives, receivers.member(member), (c, f) -> {});
                sends.add(op);
                receives.add(op);
                channels.add(channel);
            }
            int turns = 0;
            while (channels.stream()
                    .anyMatch(channel -> channel.consumed < STEPS || !channel.send.drained()
                            || !channel.receive.drained())) {
                int member = random.nextInt(members);
                Channel channel = channels.get(member);
                switch (random.nextInt(4)) {
                    case 0 -> post(channel, member);
                    case 1 -> consume(channel, member);
                    case 2 -> channel.send.progress();
                    default -> channel.receive.progress();
                }
                assertTrue(turns++ < 10_000_000, "stuck, seed " + members);
            }
        }
    }

    private static long value(int member, long step) {
        return member * 1_000_000L + step;
    }

    private static void post(Channel channel, int member) {
        if (channel.posted < STEPS && channel.from.sendMem().headAcquire() + ConnectionLayout.SLOTS > channel.posted) {
            channel.from.buffers()
                    .set(ValueLayout.JAVA_LONG, LAYOUT.slotOffset(Protocol.SIMPLE, channel.posted),
                            value(member, channel.posted));
            channel.from.recvMem().sizePlain(ConnectionLayout.slot(channel.posted), 8);
            channel.from.recvMem().tailRelease(++channel.posted);
        }
    }

    private static void consume(Channel channel, int member) {
        while (channel.to.recvMem().tailAcquire() > channel.consumed) {
            assertEquals(value(member, channel.consumed), channel.to.buffers()
                    .get(ValueLayout.JAVA_LONG, LAYOUT.slotOffset(Protocol.SIMPLE, channel.consumed)));
            channel.to.sendMem().headRelease(++channel.consumed);
        }
    }

    @Test
    void aFrameOfNoMemberIsRefused() {
        MemoryFrames frames = new MemoryFrames(null);
        new SharedSender(frames.sender(), 3).member(2, new OperationQueue()).offer(new FrameHeader(), null, 0);
        assertThrows(ConnectionException.class, new SharedReceiver(frames.receiver(), 2).member(0)::poll);
        StepHeader.member(frames.lastOffered(), -1);
        assertThrows(ConnectionException.class, new SharedReceiver(frames.receiver(), 2).member(0)::poll);
    }
}
