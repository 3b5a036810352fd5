package org.millrace.net;

import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/** Both ends of a connection within one process. */
public record Connected(Listener listener, FrameSender sender, FrameReceiver receiver) implements AutoCloseable {

    private static final AtomicLong KEYS = new AtomicLong();

    /** Creates a connection between two networks, or within one network. */
    public static Connected make(Network from, Network to) {
        return make(from, to.listen(), newKey());
    }

    public static Connected make(Network from, Listener listener, ConnectionKey key) {
        Pending<FrameReceiver> accepting = listener.expect(key);
        return await(listener, from.connect(listener.address(), key), accepting);
    }

    /** Waits until both ends of a started connection exist. */
    public static Connected await(Listener listener, Pending<FrameSender> connecting,
            Pending<FrameReceiver> accepting) {
        FrameSender sender = null;
        FrameReceiver receiver = null;
        while (sender == null || receiver == null) {
            sender = sender == null ? connecting.poll() : sender;
            receiver = receiver == null ? accepting.poll() : receiver;
            Thread.onSpinWait();
        }
        return new Connected(listener, sender, receiver);
    }

    public static ConnectionKey newKey() {
        return new ConnectionKey(KEYS.incrementAndGet(), 42);
    }

    /** Drives both ends until a condition holds. Only the timeout of the test limits the wait. */
    public void until(BooleanSupplier holds) {
        while (!holds.getAsBoolean()) {
            sender.progress();
            receiver.progress();
            Thread.onSpinWait();
        }
    }

    /** Drives both ends until a header arrives. */
    public FrameHeader nextHeader() {
        while (true) {
            sender.progress();
            receiver.progress();
            FrameHeader header = receiver.poll();
            if (header != null) {
                return header;
            }
            Thread.onSpinWait();
        }
    }

    /** Polls until the call throws, and returns the exception. */
    public static ConnectionException failureOf(Runnable call) {
        while (true) {
            try {
                call.run();
            } catch (ConnectionException e) {
                return e;
            }
            Thread.onSpinWait();
        }
    }

    /** Closes networks at the same time, because each network waits until its peers have closed their streams. */
    public static void closeAll(Network... networks) {
        CompletableFuture.allOf(Arrays.stream(networks)
                .map(network -> CompletableFuture.runAsync(network::close, Thread.ofPlatform()::start))
                .toArray(CompletableFuture[]::new)).join();
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
        listener.close();
    }
}
