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
 * A network with emulated links in front of it. Each direction of a connection uses the link from the settings of the
 * sending process. A thread of this network advances frames in flight while the owners of senders do not poll. After a
 * sender is closed, this thread also delivers the frames that were offered before the close.
 */
public final class LinkNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(LinkNetwork.class);
    /** Maximum time until a closed sender has delivered its frames, in addition to the link's delay. */
    private static final Duration LINGER = Duration.ofSeconds(10);
    private static final long PAUSE_NANOS = 20_000;
    /**
     * Time that this network's thread sleeps while no frame is in flight, in nanoseconds. The time may be long, because
     * an owner polls after it has offered a frame.
     */
    private static final long IDLE_NANOS = 200_000;

    private final Network network;
    private final LinkTable links;
    private final int host;
    private final Map<LinkSchedule, SharedLine> lines;
    private final AtomicBoolean warned = new AtomicBoolean();
    /**
     * Open senders. {@link #closing} contains each closed sender, with the time of its close. The monitor of this
     * network guards both collections.
     */
    private final Set<LinkSender> open = new HashSet<>();
    private final Map<LinkSender, Long> closing = new HashMap<>();
    private boolean moves;

    /**
     * @param host       name of this process's host
     * @param clock      time in nanoseconds since any fixed time
     * @param ownersLook whether all owners poll as long as frames are in flight; if so, this network needs no thread
     */
    LinkNetwork(Network network, LinkTable links, String host, LongSupplier clock, boolean ownersLook) {
        this.network = network;
        this.links = links;
        this.host = LinkTable.number(host);
        moves = ownersLook;
        lines = links.all().stream().collect(Collectors.toMap(link -> link, link -> new SharedLine(link, clock)));
    }

    /**
     * Wraps a network in the configured links and the given faults.
     *
     * @return the wrapped network; {@code network} itself if there are neither faults nor links
     * @throws org.millrace.config.ConfigurationException if the setting of the links is not valid; the message lists
     *                                                    the allowed forms
     */
    public static Network of(Configuration configuration, Network network, List<Fault> faults) {
        Optional<LinkTable> links = LinkTable.of(configuration);
        Network faulty = faults.isEmpty() ? network : new FaultyNetwork(network, faults);
        return links.isEmpty() ? faulty
                : new LinkNetwork(faulty, links.get(), LinkTable.host(configuration), System::nanoTime, false);
    }

    /**
     * Refuses a setting of links that has an invalid form or names an unknown host.
     *
     * @param hosts names of all hosts; empty if unknown
     * @throws org.millrace.config.ConfigurationException if a link is not usable; the message lists the allowed forms
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

    /** {@return the line to the host that a listener's address names; null if no link applies} */
    private @Nullable SharedLine line(byte[] address) {
        int there = address.length == Listener.ADDRESS_BYTES ? ByteBuffer.wrap(address).getInt(Listener.HOST_OFFSET)
                : LinkTable.UNKNOWN;
        if (there == LinkTable.UNKNOWN && links.hasPairs() && !warned.getAndSet(true)) {
            LOG.warn("a peer does not send its host's number, so no pair of {} with that host applies; set {} for"
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

    /**
     * Closes a sender for its owner. The wrapped connection is closed after the sender's frames in flight have arrived.
     * This method does not wait for their arrival.
     */
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

    /** Removes a sender from the open senders. Returns whether the sender was open. */
    synchronized boolean forget(LinkSender sender) {
        return open.remove(sender);
    }

    /**
     * Advances frames in flight, for owners that do not poll, until no sender is left. Runs on this network's thread.
     */
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
                    LOG.warn("{} was closed and ends before all sent frames have arrived", each.getKey());
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

    /** A listener that adds the number of its host to its address. */
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
     * The sending line of this process for one link. All connections of the link share the line. Each connection
     * occupies the line for the time that its bytes need, in the order of the calls of {@link #take}. Safe from any
     * thread.
     */
    static final class SharedLine {

        /** Number of ticks per nanosecond. With this unit a frame of 64 bytes takes 512 ticks at 1 Tbit/s. */
        static final int TICKS = 1000;
        private static final double TICKS_PER_SECOND = 1e9 * TICKS;

        private final LinkSchedule schedule;
        private final LongSupplier clock;
        private final long opened;
        /** Time when the line becomes free, in ticks after the line was opened. */
        private final AtomicLong free = new AtomicLong();

        /** @param clock time in nanoseconds since any fixed time */
        SharedLine(LinkSchedule schedule, LongSupplier clock) {
            this.schedule = schedule;
            this.clock = clock;
            opened = clock.getAsLong();
        }

        LinkSchedule schedule() {
            return schedule;
        }

        /** {@return the present time, in ticks after the line was opened} */
        long now() {
            return (clock.getAsLong() - opened) * TICKS;
        }

        LinkShape shape(long now) {
            return schedule.at(now / TICKS);
        }

        /** {@return start of the uninterrupted period that contains {@code now}, in ticks after the line was opened} */
        long upSince(long now) {
            return schedule.upSince(now / TICKS) * TICKS;
        }

        /** {@return time when the line becomes free, in ticks after the line was opened} */
        long free() {
            return free.get();
        }

        /**
         * Occupies the line for a number of bytes. Times are ticks after the line was opened.
         *
         * @param earliest time when the bytes became available
         * @return time when the last byte has left
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

        /** {@return duration of a transfer in ticks; 0 if the rate is 0, which stands for an unlimited rate} */
        static long ticks(long bytes, double bitsPerSecond) {
            return bitsPerSecond == 0 ? 0 : Math.round(bytes * Byte.SIZE * TICKS_PER_SECOND / bitsPerSecond);
        }
    }
}
