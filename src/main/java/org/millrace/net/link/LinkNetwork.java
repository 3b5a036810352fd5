package org.millrace.net.link;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * Any network behind links. Each direction has the link of the process that sends. A thread of this network's moves
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
    private final LinkTable links;
    private final int host;
    private final Map<LinkSchedule, SharedLine> lines;
    private final AtomicBoolean warned = new AtomicBoolean();
    /** Those that are open, and those that were closed, with when; guarded by this. */
    private final Set<LinkSender> open = new HashSet<>();
    private final Map<LinkSender, Long> closing = new HashMap<>();
    private boolean moves;

    /**
     * A network behind links.
     *
     * @param host       what this process's is called
     * @param ownersLook whether all of them do, for as long as something is on the way: there is no thread then
     */
    LinkNetwork(Network network, LinkTable links, String host, LongSupplier clock, boolean ownersLook) {
        this.network = network;
        this.links = links;
        this.host = LinkTable.number(host);
        moves = ownersLook;
        lines = links.all().stream().collect(Collectors.toMap(link -> link, link -> new SharedLine(link, clock)));
    }

    /**
     * A network with faults, behind the links that are set.
     *
     * @return the network itself if there are none
     * @throws org.millrace.config.ConfigurationException if the link cannot be read; the message says what is allowed
     */
    public static Network of(Configuration configuration, Network network, List<Fault> faults) {
        Optional<LinkTable> links = LinkTable.of(configuration);
        Network faulty = faults.isEmpty() ? network : new FaultyNetwork(network, faults);
        return links.isEmpty() ? faulty
                : new LinkNetwork(faulty, links.get(), LinkTable.host(configuration), System::nanoTime, false);
    }

    /**
     * Refuses what cannot be read.
     *
     * @param hosts what all hosts are called; empty if nobody knows
     * @throws org.millrace.config.ConfigurationException if the link is not usable; the message says what is allowed
     */
    public static void require(Configuration configuration, Collection<String> hosts) {
        LinkTable.of(configuration).filter(_ -> !hosts.isEmpty()).ifPresent(links -> links.require(hosts));
    }

    @Override
    public String name() {
        return network.name();
    }

    @Override
    public Listener listen() {
        return new NamedListener(network.listen(), host);
    }

    /** {@return the line to where a listener is; null if there is no link} */
    private @Nullable SharedLine line(byte[] address) {
        int there = address.length == Listener.ADDRESS_BYTES ? ByteBuffer.wrap(address).getInt(Listener.HOST_OFFSET)
                : LinkTable.UNKNOWN;
        if (there == LinkTable.UNKNOWN && links.hasPairs() && !warned.getAndSet(true)) {
            LOG.warn("a peer does not tell its host, and so no pair of {} with that host's name is taken; set {} for"
                    + " all processes", Settings.LINK.name(), Settings.LINK.name());
        }
        LinkSchedule link = links.between(host, there);
        return link == null ? null : lines.get(link);
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        SharedLine line = line(address);
        Pending<FrameSender> pending = network.connect(address, key);
        return line == null ? pending : pending.map(sender -> behind(line, sender));
    }

    private synchronized FrameSender behind(SharedLine line, FrameSender sender) {
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
        long longest = links.all()
                .stream()
                .map(link -> LINGER.plus(link.longestDelay()))
                .max(Comparator.naturalOrder())
                .orElse(LINGER)
                .toNanos();
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

    /** A listener whose address tells its host. */
    private record NamedListener(Listener listener, int host) implements Listener {

        @Override
        public byte[] address() {
            return ByteBuffer.wrap(listener.address()).putInt(HOST_OFFSET, host).array();
        }

        @Override
        public Pending<FrameReceiver> expect(ConnectionKey key) {
            return listener.expect(key);
        }

        @Override
        public void attend() {
            listener.attend();
        }

        @Override
        public long dropped() {
            return listener.dropped();
        }

        @Override
        public void close() {
            listener.close();
        }

        @Override
        public String toString() {
            return listener.toString();
        }
    }

    /**
     * The outgoing line of a process, which its connections share: each takes it for the time that its bytes need, in
     * the order in which they ask. Safe from any thread.
     */
    static final class SharedLine {

        /** Ticks a nanosecond: a frame of 64 bytes takes 512 at 1 Tbit/s. */
        static final int TICKS = 1000;
        private static final double TICKS_PER_SECOND = 1e9 * TICKS;

        private final LinkSchedule schedule;
        private final LongSupplier clock;
        private final long opened;
        /** From when the line is free, in ticks since it was opened. */
        private final AtomicLong free = new AtomicLong();

        /** @param clock nanoseconds, from any beginning */
        SharedLine(LinkSchedule schedule, LongSupplier clock) {
            this.schedule = schedule;
            this.clock = clock;
            opened = clock.getAsLong();
        }

        LinkSchedule schedule() {
            return schedule;
        }

        /** {@return ticks since the line was opened} */
        long now() {
            return (clock.getAsLong() - opened) * TICKS;
        }

        LinkShape shape(long now) {
            return schedule.at(now / TICKS);
        }

        /** {@return from when on the line has been up} */
        long upSince(long now) {
            return schedule.upSince(now / TICKS) * TICKS;
        }

        /** {@return from when the line is free} */
        long free() {
            return free.get();
        }

        /**
         * Takes the line.
         *
         * @param earliest when the bytes were there
         * @return when the last of the bytes has left
         */
        long take(long earliest, long bytes, LinkShape shape) {
            long needed = ticks(bytes, shape.bitsPerSecond());
            while (true) {
                long from = free.get();
                long until = Math.max(from, earliest) + needed;
                if (free.compareAndSet(from, until)) {
                    return until;
                }
            }
        }

        /** {@return how long bytes take at a rate; none if it is 0, which is no limit} */
        static long ticks(long bytes, double bitsPerSecond) {
            return bitsPerSecond == 0 ? 0 : Math.round(bytes * Byte.SIZE * TICKS_PER_SECOND / bitsPerSecond);
        }
    }
}
