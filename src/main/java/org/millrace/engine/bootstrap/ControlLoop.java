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

/**
 * The control thread of one rank: waits for its sockets, its timers and its callers' requests, and lets the
 * {@link ControlRole} act on them.
 */
final class ControlLoop {

    private static final Logger LOG = LogManager.getLogger(ControlLoop.class);
    /** For a forced end: the thread never blocks except in its selector. */
    private static final Duration FORCED_END = Duration.ofSeconds(5);

    private final GroupState group;
    private final ControlRole side;
    private final Selector selector;
    private final Queue<Runnable> requests = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private volatile boolean stopping;

    /** Takes over the selector and every channel that is registered with it. */
    ControlLoop(GroupState group, ControlRole side, Selector selector) {
        this.group = group;
        this.side = side;
        this.selector = selector;
        this.thread = Thread.ofPlatform().daemon().name("millrace-control-" + group.self().rank()).unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    /** See {@link ControlRole#address()}. */
    InetAddress address() {
        return side.address();
    }

    /** Says something to the other ranks. Does not wait. */
    void say(Message message) {
        request(() -> side.say(message));
    }

    private void request(Runnable request) {
        requests.add(request);
        selector.wakeup();
    }

    /**
     * Leaves the group, and returns when the thread has ended: at the latest when that time has passed and the channels
     * were closed by force. An interrupt does not shorten this, because a rank that does not say goodbye counts as
     * lost.
     */
    void leave(Duration patience) {
        request(side::leave);
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
            while (!stopping && !side.finished()) {
                long nanos = side.nanosToNextTick();
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
                        side.ready(key);
                    }
                }
                side.tick();
            }
        } catch (Throwable e) {
            LOG.error("the control thread of {} stopped", group.self(), e);
            group.failed(
                    new RemoteFailure(group.self().rank(), "the control thread of " + group.self() + " stopped: " + e));
        } finally {
            closeAll();
        }
    }

    private void closeAll() {
        try {
            side.ended();
            for (SelectionKey key : selector.keys()) {
                key.channel().close();
            }
            selector.close();
        } catch (IOException e) {
            LOG.debug("closing the channels of {}", group.self(), e);
        }
    }
}
