package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.engine.rendezvous.GroupFailure;
import org.millrace.net.ConnectionException;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;
import org.millrace.transport.Connection;
import org.millrace.transport.Connections;

/**
 * A communicator's connections, each made when it is asked for the first time. Whoever asks does not wait: this agent
 * makes them, all at once, none waiting for another, and a connection that is not made in time fails the communicator.
 */
final class Links implements Agent {

    private static final long POLL_NANOS = 20_000;

    private record Key(boolean sends, int peer, int channel, int index) {
    }

    private record Making(Link<?> link, long deadline) {
    }

    private final int rank;
    private final Connections connections;
    private final EngineOptions options;
    private final GroupFailure failure;
    private final EngineThreads threads;
    private final Map<Key, Link<SendPort>> sends = new ConcurrentHashMap<>();
    private final Map<Key, Link<ReceivePort>> receives = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<Making> asked = new ConcurrentLinkedQueue<>();
    private final AtomicInteger missing = new AtomicInteger();
    private final List<Connection> made = new ArrayList<>();
    private final List<Making> inTheMaking = new ArrayList<>();
    private long lastPoll = System.nanoTime();
    private boolean closed;

    Links(int rank, Connections connections, EngineOptions options, GroupFailure failure, EngineThreads threads) {
        this.rank = rank;
        this.connections = connections;
        this.options = options;
        this.failure = failure;
        this.threads = threads;
    }

    /** Asked for by who issues; the device finds what was asked for before. */
    Link<SendPort> send(int peer, int channel, int index) {
        return sends.computeIfAbsent(new Key(true, peer, channel, index),
                _ -> ask(new Link<>(ConnectionName.ofRing(rank, peer, channel, true).toString(),
                        () -> connections.send(peer, channel, index),
                        connection -> new SendPort(connection.name(), connection.info()))));
    }

    /** Asked for by who issues; the device finds what was asked for before. */
    Link<ReceivePort> receive(int peer, int channel, int index) {
        return receives.computeIfAbsent(new Key(false, peer, channel, index),
                _ -> ask(new Link<>(ConnectionName.ofRing(rank, peer, channel, false).toString(),
                        () -> connections.receive(peer, channel, index),
                        connection -> new ReceivePort(connection.name(), connection.info()))));
    }

    /** The links that were asked for so far. Not safe from several threads at a time. */
    List<Link<?>> senders(int index) {
        return ofIndex(sends, index);
    }

    /** The links that were asked for so far. Not safe from several threads at a time. */
    List<Link<?>> receivers(int index) {
        return ofIndex(receives, index);
    }

    private static List<Link<?>> ofIndex(Map<Key, ? extends Link<?>> links, int index) {
        List<Link<?>> found = new ArrayList<>();
        links.forEach((key, link) -> {
            if (key.index == index) {
                found.add(link);
            }
        });
        return found;
    }

    /** Why transports were not possible. */
    List<String> refusals() {
        return connections == null ? List.of() : connections.refusals();
    }

    /**
     * Tells the collectives' links that have no part in an operation so: a peer that sends something for it runs
     * another one. Not safe from several threads at a time.
     */
    void announceWithout(ProxyOp without) {
        receives.forEach((key, link) -> {
            if (key.index == Connections.COLLECTIVE) {
                link.announceUnlessPart(without);
            }
        });
    }

    private <P> Link<P> ask(Link<P> link) {
        missing.incrementAndGet();
        asked.add(new Making(link, System.nanoTime() + options.connectDeadline().toNanos()));
        return link;
    }

    /** Waits until all that was asked for is made: for those who set up. */
    void await() {
        while (missing.get() > 0) {
            failure.throwIfFailed();
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    @Override
    public int doWork() {
        if (missing.get() == 0 || System.nanoTime() - lastPoll < POLL_NANOS) {
            return 0;
        }
        lastPoll = System.nanoTime();
        return makeAll();
    }

    private synchronized int makeAll() {
        if (closed || failure.get() != null) {
            return 0;
        }
        for (Making each = asked.poll(); each != null; each = asked.poll()) {
            inTheMaking.add(each);
        }
        int before = inTheMaking.size();
        inTheMaking.removeIf(this::make);
        return before - inTheMaking.size();
    }

    /** Returns true if there is nothing more to do for the connection. */
    private boolean make(Making making) {
        Connection connection;
        try {
            connection = making.link.poll();
        } catch (ConnectionException lost) {
            failure.suspect(new MillraceException(
                    "the connection " + making.link + " cannot be made: " + lost.getMessage(), lost));
            return true; // it stays missing: whoever waits for it hears of the failure
        }
        if (connection != null) {
            made.add(connection);
            threads.proxies().add(connection.proxies());
            missing.decrementAndGet();
            return true;
        }
        if (making.deadline - System.nanoTime() < 0) {
            throw new MillraceException("the connection " + making.link + " was not made within "
                    + options.connectDeadline().toMillis()
                    + " ms (MILLRACE_CONNECT_DEADLINE): the other rank has not called what belongs to this operation");
        }
        return false;
    }

    @Override
    public String name() {
        return "links";
    }

    /** A connection that cannot be made leaves an operation that cannot run. */
    @Override
    public void onFailure(Throwable thrown) {
        failure.fail(thrown);
    }

    /** Makes no more connections; returns the proxies of those that were made. */
    synchronized List<ProxyConnection> stop() {
        closed = true;
        inTheMaking.forEach(making -> making.link.giveUp());
        inTheMaking.clear();
        return made.stream().flatMap(connection -> connection.proxies().stream()).toList();
    }

    /** Frees what the connections hold, after their proxies have stopped. */
    synchronized void close() {
        made.forEach(Connection::close);
        made.clear();
    }
}
