package org.millrace.net.link;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * Any network behind a link. Each direction has the link of the process that sends. Connections that are closed go on
 * until what was sent has arrived, on a thread of this network's, which is there while there are any.
 */
public final class LinkNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(LinkNetwork.class);
    /** How long a connection that was closed may go on, besides the link's delay. */
    private static final Duration LINGER = Duration.ofSeconds(10);
    private static final long PAUSE_NANOS = 20_000;

    private final Network network;
    private final SharedLine line;
    /** Those that are open, and those that linger; guarded by this. */
    private final Set<LinkSender> open = new HashSet<>();
    private final List<LinkSender> closing = new ArrayList<>();

    LinkNetwork(Network network, LinkSchedule schedule, LongSupplier clock) {
        this.network = network;
        line = new SharedLine(schedule, clock);
    }

    /**
     * A network behind the link that is set.
     *
     * @return the network itself if none is
     * @throws org.millrace.config.ConfigurationException if the link cannot be read; the message says what is allowed
     */
    public static Network of(Configuration configuration, Network network) {
        Optional<LinkSchedule> link = LinkSchedule.of(configuration);
        return link.isEmpty() ? network : new LinkNetwork(network, link.get(), System::nanoTime);
    }

    /**
     * Refuses what cannot be read.
     *
     * @throws org.millrace.config.ConfigurationException if the link is not usable; the message says what is allowed
     */
    public static void require(Configuration configuration) {
        LinkSchedule.of(configuration);
    }

    @Override
    public String name() {
        return network.name();
    }

    @Override
    public Listener listen() {
        return network.listen();
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        Pending<FrameSender> pending = network.connect(address, key);
        return new Pending<>() {
            @Override
            public @Nullable FrameSender poll() {
                FrameSender sender = pending.poll();
                return sender == null ? null : behindTheLink(sender);
            }

            @Override
            public void close() {
                pending.close();
            }
        };
    }

    private synchronized FrameSender behindTheLink(FrameSender sender) {
        LinkSender made = new LinkSender(sender, network, line, this);
        open.add(made);
        return made;
    }

    /** Nobody uses this sender any more: what is on the way arrives first, and then the connection ends. */
    void close(LinkSender sender) {
        synchronized (this) {
            if (!open.remove(sender)) {
                return;
            }
            if (!sender.isDrained()) {
                closing.add(sender);
                if (closing.size() == 1) {
                    Thread.ofPlatform().daemon().name("millrace-link").start(this::linger);
                }
                return;
            }
        }
        sender.closeWire();
    }

    /** {@return whether the sender was open} */
    synchronized boolean forget(LinkSender sender) {
        return open.remove(sender);
    }

    /** Moves what is on the way of connections that were closed, until there are none. */
    private void linger() {
        long deadline = System.nanoTime() + LINGER.plus(line.schedule().longestDelay()).toNanos();
        int seen = 0;
        while (true) {
            List<LinkSender> now;
            synchronized (this) {
                if (closing.isEmpty()) {
                    notifyAll();
                    return;
                }
                now = List.copyOf(closing);
            }
            if (now.size() > seen) {
                deadline = System.nanoTime() + LINGER.plus(line.schedule().longestDelay()).toNanos();
            }
            seen = now.size();
            boolean late = System.nanoTime() - deadline > 0;
            for (LinkSender each : now) {
                boolean goesOn = goesOn(each);
                if (!goesOn || late) {
                    if (goesOn) {
                        LOG.warn("{} was closed, and is ended before all that was sent has arrived", each);
                    }
                    each.closeWire();
                    synchronized (this) {
                        closing.remove(each);
                    }
                }
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    private static boolean goesOn(LinkSender sender) {
        try {
            sender.progress();
            return !sender.isDrained();
        } catch (ConnectionException lost) {
            return false; // its owner has no more calls to learn it from
        } catch (RuntimeException unexpected) {
            LOG.warn("{} was closed, and what it had sent is not delivered", sender, unexpected);
            return false;
        }
    }

    private synchronized void awaitClosing() {
        boolean interrupted = false;
        while (!closing.isEmpty()) {
            try {
                wait();
            } catch (InterruptedException again) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return network.register(memory);
    }

    @Override
    public @Nullable MemoryRegion allMemory() {
        return network.allMemory();
    }

    @Override
    public void awaitPeers() {
        awaitClosing();
        network.awaitPeers();
    }

    @Override
    public void close() {
        List<LinkSender> rest;
        synchronized (this) {
            rest = List.copyOf(open);
        }
        rest.forEach(LinkSender::close);
        awaitClosing();
        network.close();
    }
}
