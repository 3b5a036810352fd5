package org.millrace.net.link;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * Any network behind a link. Each direction has the link of the process that sends. A thread of this network's moves
 * what is on the way where owners do not look, and what connections that are closed had sent before.
 */
public final class LinkNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(LinkNetwork.class);
    /** How long a connection that was closed may go on, besides the link's delay. */
    private static final Duration LINGER = Duration.ofSeconds(10);
    private static final long PAUSE_NANOS = 20_000;
    /** Who has just offered a frame looks itself. */
    private static final long IDLE_NANOS = 200_000;

    private final Network network;
    private final SharedLine line;
    /** Those that are open, and those that were closed, with when; guarded by this. */
    private final Set<LinkSender> open = new HashSet<>();
    private final Map<LinkSender, Long> closing = new HashMap<>();
    private boolean moves;

    /** @param ownersLook whether all of them do, for as long as something is on the way: there is no thread then */
    LinkNetwork(Network network, LinkSchedule schedule, LongSupplier clock, boolean ownersLook) {
        this.network = network;
        moves = ownersLook;
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
        return link.isEmpty() ? network : new LinkNetwork(network, link.get(), System::nanoTime, false);
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
        if (!moves) {
            moves = true;
            Thread.ofPlatform().daemon().name("millrace-link").start(this::move);
        }
        return made;
    }

    /** Nobody uses this sender any more: what is on the way arrives first, and then the connection ends. */
    void close(LinkSender sender) {
        synchronized (this) {
            if (!open.remove(sender)) {
                return;
            }
            if (sender.drain()) {
                closing.put(sender, System.nanoTime());
                return;
            }
        }
        sender.closeWire();
    }

    /** {@return whether the sender was open} */
    synchronized boolean forget(LinkSender sender) {
        return open.remove(sender);
    }

    /** Moves what is on the way, until there is no connection, though no owner looks. */
    private void move() {
        long longest = LINGER.plus(line.schedule().longestDelay()).toNanos();
        while (true) {
            List<LinkSender> using;
            Map<LinkSender, Long> ending;
            synchronized (this) {
                if (open.isEmpty() && closing.isEmpty()) {
                    moves = false;
                    return;
                }
                using = List.copyOf(open);
                ending = Map.copyOf(closing);
            }
            boolean busy = false;
            for (LinkSender each : using) {
                busy |= each.drain();
            }
            for (Map.Entry<LinkSender, Long> each : ending.entrySet()) {
                boolean late = System.nanoTime() - each.getValue() > longest;
                boolean goesOn = each.getKey().drain();
                if (goesOn && late) {
                    LOG.warn("{} was closed, and is ended before all that was sent has arrived", each.getKey());
                }
                if (!goesOn || late) {
                    each.getKey().closeWire();
                    synchronized (this) {
                        closing.remove(each.getKey());
                        notifyAll();
                    }
                }
            }
            LockSupport.parkNanos(busy ? PAUSE_NANOS : IDLE_NANOS);
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
