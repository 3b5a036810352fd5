package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.SocketOptions;

/**
 * One rank's end of the control plane, {@link Coordinator} on rank 0 and {@link Member} elsewhere, and its thread,
 * which waits for its sockets, its timers and its callers' requests. All but the constructor and what is said to be
 * safe from any thread is called on that thread.
 */
abstract class ControlLoop {

    private static final Logger LOG = LogManager.getLogger(ControlLoop.class);
    /** For a forced end: the thread never blocks except in its selector. */
    private static final Duration FORCED_END = Duration.ofSeconds(5);

    final GroupState group;
    private final Selector selector;
    private final Queue<Runnable> requests = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private final SocketOptions sockets;
    /** Null while none is needed. */
    private @Nullable Reconnector reconnector;
    private volatile boolean stopping;

    /** Takes over the selector and every channel that is registered with it. */
    ControlLoop(GroupState group, Selector selector, SocketOptions sockets) {
        this.sockets = sockets;
        this.group = group;
        this.selector = selector;
        this.thread = Thread.ofPlatform().daemon().name("millrace-control-" + group.self().rank()).unstarted(this::run);
    }

    final void start() {
        thread.start();
    }

    /** Says something to the other ranks. Does not wait. Safe from any thread. */
    final void say(Message message) {
        request(() -> tell(message));
    }

    private void request(Runnable request) {
        requests.add(request);
        selector.wakeup();
    }

    /**
     * Leaves the group, and returns when the thread has ended: at the latest when that time has passed and the channels
     * were closed by force. An interrupt does not shorten this, because a rank without a shutdown message counts as
     * lost.
     */
    final void leave(Duration patience) {
        request(this::leave);
        join(Deadline.in(patience));
        stopping = true;
        selector.wakeup();
        join(Deadline.in(FORCED_END));
    }

    private void join(Deadline deadline) {
        boolean interrupted = false;
        while (thread.isAlive() && !deadline.expired()) {
            try {
                thread.join(Duration.ofNanos(Math.max(1, deadline.remainingNanos())));
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        try {
            while (!stopping && !finished()) {
                long nanos = nanosToNextTick();
                selector.select(
                        nanos == Long.MAX_VALUE ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos + 999_999)));
                Runnable request;
                while ((request = requests.poll()) != null) {
                    request.run();
                }
                List<SelectionKey> ready = List.copyOf(selector.selectedKeys());
                selector.selectedKeys().clear();
                for (SelectionKey key : ready) {
                    if (key.isValid()) { // one key's message may have closed another's channel
                        ready(key);
                    }
                }
                tick();
            }
        } catch (Throwable e) {
            LOG.error("the control thread of {} stopped", group.self(), e);
            group.failed(
                    new RemoteFailure(group.self().rank(), "the control thread of " + group.self() + " stopped: " + e));
        } finally {
            closeAll();
        }
    }

    /** What makes lost connections again; null if nothing does. */
    final @Nullable Reconnector reconnector() {
        if (reconnector == null && sockets.reconnectDeadline().isPositive()) {
            try {
                reconnector = Reconnector.shared(sockets);
            } catch (IOException e) {
                LOG.warn("{}: control connections are not made again when they are lost: {}", group.self(),
                        e.getMessage());
            }
        }
        return reconnector;
    }

    final void closeReconnector() {
        if (reconnector != null) {
            reconnector.close();
            reconnector = null;
        }
    }

    private void closeAll() {
        try {
            ended();
            closeReconnector();
            for (SelectionKey key : selector.keys()) {
                key.channel().close();
            }
            selector.close();
        } catch (IOException e) {
            LOG.debug("closing the channels of {}", group.self(), e);
        }
    }

    /** An address of this machine that other ranks have reached, or were reached from. Safe from any thread. */
    abstract InetAddress address();

    /** Says something to the other ranks in this rank's name. */
    abstract void tell(Message message);

    /** Begins to leave the group; {@link #finished()} turns true soon after. More calls do nothing more. */
    abstract void leave();

    /** A channel of this rank's can be read, written or accepted from. */
    abstract void ready(SelectionKey key);

    /** Does what is due by now. */
    void tick() {}

    /** How long nothing is due; {@code Long.MAX_VALUE} for as long as nobody says anything. */
    long nanosToNextTick() {
        return Long.MAX_VALUE;
    }

    /** True once nothing is left to do. */
    abstract boolean finished();

    /** The thread ends, perhaps by force, and closes all channels: nothing else may be left behind. */
    void ended() {}
}
