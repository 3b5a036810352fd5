package org.millrace.engine;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.ObjIntConsumer;
import org.jspecify.annotations.Nullable;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.PeerLostException;
import org.millrace.abi.KernelChannel;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.bootstrap.RemoteFailure;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.Port;
import org.millrace.device.ReceivePort;
import org.millrace.device.SendPort;
import org.millrace.engine.Connector.State;
import org.millrace.failure.RepeatedFailure;
import org.millrace.net.ConnectionException;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Connectors of a communicator. Each connection is made at its first use. The requesting thread does not wait. The
 * {@link ConnectorService} makes all requested connections concurrently, and no connection waits for another
 * connection. If a connection is not made in time, the communicator fails.
 */
final class Connectors {

    private static final long AWAIT_NANOS = 20_000;

    private record Key(int peer, int channel, int index) {
    }

    private final DeviceCommunicator device;
    private final @Nullable TransportConnections connections;
    private volatile Duration connectDeadline;
    private volatile Duration arrivalDeadline;
    private volatile @Nullable Attendance attendance;
    private final GroupFailure failure;
    private final ProxyAgent proxies;
    private final ObjIntConsumer<TransportConnection> counter;
    private final ConnectorService service;
    private final LongSupplier turnedAway;
    private final DirectTraces direct;
    private final Map<Key, Connector<SendPort>> sends = new ConcurrentHashMap<>();
    private final Map<Key, Connector<ReceivePort>> receives = new ConcurrentHashMap<>();
    /** Receive connectors of collectives. Each collective is announced to all of these connectors. */
    private final List<Connector<ReceivePort>> collectiveReceives = new CopyOnWriteArrayList<>();
    private final ConcurrentLinkedQueue<Connector<?>> asked = new ConcurrentLinkedQueue<>();
    private final AtomicInteger missing = new AtomicInteger();
    /** Connectors that are being connected. Service's thread only. */
    private final List<Connector<?>> connecting = new ArrayList<>();
    /** Completed connections. Service's thread only, until it has acknowledged that it stopped. */
    private final List<TransportConnection> made = new ArrayList<>();

    /**
     * @param connections creates the ends; null if there is only one rank
     * @param failure     receives connection failures; the service's thread polls it for failures of other ranks
     * @param counter     called with 1 for each connection that was made, and with -1 for each connection that was
     *                    closed
     * @param turnedAway  returns the number of clients that this rank's listener has refused
     * @param direct      records the progress of connections without proxies
     */
    Connectors(DeviceCommunicator device, @Nullable TransportConnections connections, Duration connectDeadline,
            GroupFailure failure, ProxyAgent proxies, ObjIntConsumer<TransportConnection> counter,
            ConnectorService service, LongSupplier turnedAway, DirectTraces direct) {
        this.device = device;
        this.connections = connections;
        this.connectDeadline = connectDeadline;
        this.arrivalDeadline = connectDeadline;
        this.failure = failure;
        this.proxies = proxies;
        this.counter = counter;
        this.service = service;
        this.turnedAway = turnedAway;
        this.direct = direct;
        failure.onEvent(service::wake);
        service.add(this);
    }

    /**
     * Sets the object that answers other ranks in each pass of the service's thread. Other ranks' messages wake that
     * thread. Both time limits apply to connections that are requested from now on.
     *
     * @param arrival maximum time to wait for a peer that has not yet begun a connection
     * @param connect maximum time for both ends to connect after the peer has begun
     */
    void serve(Attendance ranks, Duration arrival, Duration connect) {
        attendance = ranks;
        arrivalDeadline = arrival;
        connectDeadline = connect;
        service.wake();
    }

    /**
     * Returns the connector for sends to a peer. The first call with these arguments creates the connector. Called by
     * the thread that issues operations. The device finds a connector only after its creation.
     */
    Connector<SendPort> send(int peer, int channel, int index) {
        return sends.computeIfAbsent(new Key(peer, channel, index), _ -> ask(new Connector<>(
                device.channel(channel).send(peer, index), deadlines(peer),
                () -> connections.send(peer, channel, index),
                connection -> traced(new SendPort(connection.name(), connection.info()), connection, channel, index))));
    }

    /**
     * Returns the connector for receives from a peer. The first call with these arguments creates the connector. Called
     * by the thread that issues operations. The device finds a connector only after its creation.
     */
    Connector<ReceivePort> receive(int peer, int channel, int index) {
        return receives.computeIfAbsent(new Key(peer, channel, index), _ -> {
            Connector<ReceivePort> made = new Connector<>(device.channel(channel).receive(peer, index), deadlines(peer),
                    () -> connections.receive(peer, channel, index),
                    connection -> traced(new ReceivePort(connection.name(), connection.info()), connection, channel,
                            index));
            if (index == KernelChannel.COLLECTIVE) {
                collectiveReceives.add(made);
            }
            return ask(made);
        });
    }

    /** Registers a port for tracing if its connection has no proxies. Proxies trace their connections themselves. */
    private <P extends Port> P traced(P port, TransportConnection connection, int channel, int index) {
        if (connection.proxies().isEmpty()) {
            direct.add(connection.name(), channel, index, port instanceof SendPort, connection.transport(), port);
        }
        return port;
    }

    private Connector.Deadlines deadlines(int peer) {
        return new Connector.Deadlines(peer, System.nanoTime(), arrivalDeadline, connectDeadline);
    }

    private <P> Connector<P> ask(Connector<P> connector) {
        missing.incrementAndGet();
        asked.add(connector);
        service.wake();
        return connector;
    }

    /**
     * Returns the send connectors that were requested so far, either for collectives or for sends and receives. Must
     * not be called by several threads at a time.
     */
    List<Connector<?>> senders(int index) {
        return ofIndex(sends, index);
    }

    /**
     * Returns the receive connectors that were requested so far, either for collectives or for sends and receives. Must
     * not be called by several threads at a time.
     */
    List<Connector<?>> receivers(int index) {
        return ofIndex(receives, index);
    }

    private static List<Connector<?>> ofIndex(Map<Key, ? extends Connector<?>> connectors, int index) {
        List<Connector<?>> found = new ArrayList<>();
        connectors.forEach((key, connector) -> {
            if (key.index == index) {
                found.add(connector);
            }
        });
        return found;
    }

    /** Returns the reasons why transports were not possible. */
    List<String> refusals() {
        return connections == null ? List.of() : connections.refusals();
    }

    /**
     * Announces an operation to each receive connector of collectives that moves no data of this operation. If a peer
     * nevertheless sends data to such a connector, the peer runs a different operation. The connector can then report
     * this difference. Not safe from several threads at a time.
     */
    void announceWithout(long opCount, long signature, long count) {
        for (int i = 0; i < collectiveReceives.size(); i++) {
            Connector<ReceivePort> connector = collectiveReceives.get(i);
            if (!connector.hasPart(opCount)) {
                connector.announce(ProxyOp.without(opCount, signature, count));
            }
        }
    }

    /**
     * Waits until all requested connections are made. Used in the set-up of a communicator. The exception does not
     * advise a close or a shrink, because the caller does not have this communicator yet.
     *
     * @throws MillraceException if the communicator fails, or the thread is interrupted
     */
    void await() {
        while (missing.get() > 0) {
            Throwable failed = failure.get();
            if (failed != null) {
                throw RepeatedFailure.of(
                        "rank " + device.rank() + ": " + RemoteFailure.withoutRank(device.rank(), failed.getMessage()),
                        failed);
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new OperationInterruptedException("rank " + device.rank()
                        + ": interrupted while waiting for the connections of the communicator, of which "
                        + missing.get() + " missed", device.rank(), null, null);
            }
            LockSupport.parkNanos(AWAIT_NANOS);
        }
    }

    // Methods of the service's thread.

    /** Advances the connections in progress and handles failures. Returns the amount of work done. */
    int progress() {
        Attendance ranks = attendance;
        if (ranks != null) {
            ranks.answer();
        }
        if (failure.watch()) {
            return 1;
        }
        if (failure.get() != null) {
            return 0;
        }
        try {
            return connectAll();
        } catch (RuntimeException | Error thrown) {
            failure.fail(thrown); // An operation cannot run if its connection cannot be made.
            return 1;
        }
    }

    private int connectAll() {
        for (Connector<?> each = asked.poll(); each != null; each = asked.poll()) {
            connecting.add(each);
        }
        int work = 0;
        for (Iterator<Connector<?>> each = connecting.iterator(); each.hasNext();) {
            Connector<?> connector = each.next();
            State before = connector.state();
            if (isOver(connector)) {
                each.remove();
            }
            work += connector.state() == before ? 0 : 1;
        }
        return work;
    }

    /** Returns true if the connector needs no further work. */
    private boolean isOver(Connector<?> connector) {
        TransportConnection connection;
        try {
            connection = connector.progress();
        } catch (ConnectionException lost) {
            failure.suspect(
                    new PeerLostException("the connection " + connector + " cannot be made: " + lost.getMessage(),
                            device.rank(), connector.peer(), null, lost));
            // The connector stays counted in `missing`, so that a waiting caller continues to wait until it receives
            // the failure.
            return true;
        }
        if (connection != null) {
            made.add(connection);
            proxies.add(connection.proxies());
            counter.accept(connection, 1);
            missing.decrementAndGet();
            return true;
        }
        if (connector.isOverdue()) {
            String setting = connector.overdueSetting();
            connector.giveUp(State.FAILED);
            long refused = turnedAway.getAsLong();
            throw new DeadlineException(
                    "the connection " + connector + " was not made within " + setting + ": "
                            + (refused == 0 ? "the other rank has not called what belongs to this operation"
                                    : "either the other rank has not called what belongs to this operation, or "
                                            + "unauthenticated clients keep this rank's port busy: " + refused
                                            + " of their connections were refused"),
                    device.rank(), connector.peer(), null, null);
        }
        return false;
    }

    /**
     * Returns the time until these connectors need the next pass, in nanoseconds; 0 while connections are being made. A
     * wake-up of the service causes an earlier pass.
     */
    long idleNanos() {
        if (failure.get() != null) {
            return Long.MAX_VALUE;
        }
        return connecting.isEmpty() ? failure.nanosToWatch() : 0;
    }

    /** Abandons all connections in progress. */
    void stopped() {
        connecting.forEach(connector -> connector.giveUp(State.STOPPED));
        connecting.clear();
    }

    // Methods for closing the communicator.

    /**
     * Stops making connections. Returns false if the service's thread does not acknowledge in time. May be called
     * twice.
     */
    boolean stop(Duration patience) {
        return service.remove(this).await(patience);
    }

    /** Returns the proxies of all connections that were made. Must be called after {@link #stop}. */
    List<ProxyConnection> proxies() {
        return made.stream().flatMap(connection -> connection.proxies().stream()).toList();
    }

    /** Frees the resources of the connections, after their proxies have stopped. */
    void close() {
        for (TransportConnection connection : made) {
            connection.close();
            counter.accept(connection, -1);
        }
        made.clear();
    }
}
