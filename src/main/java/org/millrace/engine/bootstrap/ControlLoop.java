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
 * End of the control plane on one rank, {@link Coordinator} on rank 0 and {@link Member} elsewhere, and its thread. The
 * thread waits for sockets, timers and callers' requests. All methods run on this thread, except the constructor and
 * methods that are documented as safe from any thread.
 */
abstract class ControlLoop {

    private static final Logger LOG = LogManager.getLogger(ControlLoop.class);
    /** Time for a forced end. The thread never blocks except in its selector. */
    private static final Duration FORCED_END = Duration.ofSeconds(5);

    final GroupState group;
    private final Selector selector;
    private final Queue<Runnable> requests = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private final SocketOptions sockets;
    /** Recovers lost connections; null until one is needed. */
    private @Nullable Reconnector reconnector;
    private volatile boolean stopping;

    /** Takes over the selector and all channels that are registered with it. */
    ControlLoop(GroupState group, Selector selector, SocketOptions sockets) {
        this.sockets = sockets;
        this.group = group;
        this.selector = selector;
        this.thread = Thread.ofPlatform().daemon().name("millrace-control-" + group.self().rank()).unstarted(this::run);
    }

    final void start() {
        thread.start();
    }

    /** Sends a message to the other ranks. Does not wait. Safe from any thread. */
    final void say(Message message) {
        request(() -> tell(message));
    }

    private void request(Runnable request) {
        requests.add(request);
        selector.wakeup();
    }

    /**
     * Leaves the group, and returns when the thread has ended. When the given time has passed, it closes the channels
     * by force. An interrupt does not shorten this, because a rank without a shutdown message counts as lost.
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
                    if (key.isValid()) { // The message of one key may have closed the channel of another.
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

    /** Returns the object that recovers lost connections; null if they are not recovered. */
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

    /**
     * Returns an address of this machine that connects it with other ranks. Safe from any thread.
     */
    abstract InetAddress address();

    /** Sends a message to the other ranks in this rank's name. */
    abstract void tell(Message message);

    /** Starts to leave the group. Soon afterwards, {@link #finished()} returns true. Further calls have no effect. */
    abstract void leave();

    /** Handles a channel of this rank that can be read, written or accepted from. */
    abstract void ready(SelectionKey key);

    /** Performs all actions that are due. */
    void tick() {}

    /**
     * Returns the time until the next action is due, in nanoseconds; {@code Long.MAX_VALUE} if none is due without a
     * message.
     */
    long nanosToNextTick() {
        return Long.MAX_VALUE;
    }

    /** Returns true once all work is done. */
    abstract boolean finished();

    /** Releases all other resources when the thread ends, perhaps by force. The thread then closes all channels. */
    void ended() {}
}
