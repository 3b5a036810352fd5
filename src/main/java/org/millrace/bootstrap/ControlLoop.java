package org.millrace.bootstrap;

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
 * One rank's end of the control plane, together with the control thread that serves this end. This object is a
 * {@link Coordinator} on rank 0 and a {@link Member} on all other ranks. The thread waits for sockets, timers and
 * callers' requests. All methods run on this thread, except the constructor and methods that are documented as safe
 * from any thread.
 */
abstract class ControlLoop {

    private static final Logger LOG = LogManager.getLogger(ControlLoop.class);
    /**
     * Time to wait for the end of the control thread after the forced stop. The control thread blocks only in its
     * selector.
     */
    private static final Duration FORCED_END = Duration.ofSeconds(5);

    final GroupState group;
    private final Selector selector;
    private final Queue<Runnable> requests = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private final SocketOptions sockets;
    /** Recovers lost streams of control connections; null until a connection needs recovery. */
    private @Nullable Reconnector reconnector;
    /** Time at which the channels are closed by force; null until this rank leaves. Used by the control thread. */
    private @Nullable Deadline forced;

    /**
     * Creates the loop. At its end, the loop's thread closes the selector and all channels that are registered with the
     * selector.
     */
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
     * Leaves the group, and returns when the control thread has ended. After the given time, the thread closes the
     * channels by force. An interrupt does not shorten the wait, because other ranks count a rank without a shutdown
     * message as lost.
     */
    final void leave(Duration patience) {
        leaveLater(patience);
        Deadline deadline = Deadline.in(patience.plus(FORCED_END));
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

    /** Does the same as {@link #leave(Duration)}, but returns immediately. */
    final void leaveLater(Duration patience) {
        request(() -> {
            if (forced == null) {
                leave();
            }
            forced = forced == null ? Deadline.in(patience) : forced.orIn(patience);
        });
    }

    private void run() {
        try {
            while (!finished() && (forced == null || !forced.expired())) {
                long nanos = nanosToNextTick();
                nanos = forced == null ? nanos : Math.min(nanos, forced.remainingNanos());
                selector.select(
                        nanos == Long.MAX_VALUE ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(nanos + 999_999)));
                Runnable request;
                while ((request = requests.poll()) != null) {
                    request.run();
                }
                List<SelectionKey> ready = List.copyOf(selector.selectedKeys());
                selector.selectedKeys().clear();
                for (SelectionKey key : ready) {
                    // The handling of an earlier selection key in this loop may have closed this key's socket channel.
                    if (key.isValid()) {
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

    /** Returns the object that recovers lost streams of control connections; null if they are not recovered. */
    final @Nullable Reconnector reconnector() {
        if (reconnector == null && sockets.reconnectDeadline().isPositive()) {
            try {
                reconnector = Reconnector.shared(sockets);
            } catch (IOException e) {
                LOG.warn("{}: lost control connections are not restored: {}", group.self(), e.getMessage());
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

    /** Returns this machine's address on a network that connects the machine with other ranks. Safe from any thread. */
    abstract InetAddress address();

    /** Sends a message of this rank to the other ranks. A {@link Message.PeerMessage} reaches only its addressee. */
    abstract void tell(Message message);

    /** Starts to leave the group. Soon afterwards, {@link #finished()} returns true. Further calls have no effect. */
    abstract void leave();

    /** Handles a channel that is ready to be read, to be written, or to accept a connection. */
    abstract void ready(SelectionKey key);

    /** Performs all actions that are due. */
    void tick() {}

    /**
     * Returns the time until the next action is due, in nanoseconds; {@code Long.MAX_VALUE} if no action becomes due by
     * time alone.
     */
    long nanosToNextTick() {
        return Long.MAX_VALUE;
    }

    /** Returns true once no connection remains, so that the thread can end. */
    abstract boolean finished();

    /**
     * Releases the resources of the subclass when the thread ends, also after a forced stop. After this call, the
     * thread closes all channels that are still registered with the selector.
     */
    void ended() {}
}
