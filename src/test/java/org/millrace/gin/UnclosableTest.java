package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.proxy.MemoryFrames;

/**
 * If a connection cannot be closed, its communicator's memory stays allocated. Other communicators are not affected.
 */
class UnclosableTest {

    private final Arena arena = Arena.ofShared();
    private final MemoryFrames back = new MemoryFrames(null);
    private final GinAgent agent = new GinAgent("test");
    private AgentRunner runner;
    private GinCommunicator unclosable;
    private GinCommunicator other;

    @BeforeEach
    void begin() {
        FrameSender sender = new MemoryFrames(null).sender();
        FrameSender broken = (FrameSender) Proxy.newProxyInstance(FrameSender.class.getClassLoader(),
                new Class<?>[] {FrameSender.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("close") || method.getName().equals("abort")) {
                        throw new IllegalStateException("not closed, says the test");
                    }
                    try {
                        return method.invoke(sender, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
        GinOptions options = new GinOptions(64, 8, Duration.ZERO);
        unclosable = new GinCommunicator(0, 0, new FrameSender[] {null, broken},
                new FrameReceiver[] {null, back.receiver()}, options, failure -> {});
        other = new GinCommunicator(0, 0, new FrameSender[] {null, new MemoryFrames(null).sender()},
                new FrameReceiver[] {null, new MemoryFrames(null).receiver()}, options, failure -> {});
        agent.add(unclosable);
        agent.add(other);
        runner = AgentRunner.start(agent, new IdleProfile.Backoff(10, 10, 10_000, 50_000));
    }

    @AfterEach
    void close() {
        runner.close();
        arena.close();
    }

    private void assertMemoryIsLeftAlone() {
        assertFalse(unclosable.isDisconnected());
        assertTrue(back.receiverClosed(), "the other end was closed");
        GinException refused = assertThrows(GinException.class, () -> agent.remove(unclosable, Duration.ZERO));
        assertTrue(refused.getMessage().contains("not closed, says the test"), refused.getMessage());
        assertNull(other.failure());
        agent.remove(other, Duration.ZERO);
        assertTrue(other.isDisconnected());
    }

    @Test
    void whenItFails() {
        unclosable.fail(new GinException("failed by the test"));
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!back.receiverClosed()) {
            assertTrue(deadline - System.nanoTime() > 0, "it was not closed");
            Thread.onSpinWait();
        }
        assertMemoryIsLeftAlone();
        assertEquals("failed by the test", unclosable.failure().getMessage());
    }

    @Test
    void whenItIsRemoved() {
        assertThrows(GinException.class, () -> agent.remove(unclosable, Duration.ZERO));
        assertNotNull(unclosable.failure());
        assertMemoryIsLeftAlone();
    }
}
