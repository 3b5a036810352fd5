package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.KernelChannel;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * Makes the connections of one rank of one communicator. Each connection uses the first transport that supports it.
 * Both ranks must request the connection; they need not do so at the same time. No connection waits for another
 * connection.
 *
 * <p>
 * Channel and index identify a connection. Index 0 is for collectives, and index 1 is for sends and receives, as in
 * NCCL.
 */
final class TransportConnections implements AutoCloseable {

    /** Carries messages between the two ends of a connection that is being made. No method blocks. */
    public interface PeerMessages {

        /** @param tag identity of the message, used only once between two ranks */
        void send(int peer, long tag, byte[] data);

        /**
         * Removes and returns a message that a rank sent to this rank.
         *
         * @return message; null if it has not arrived
         */
        byte @Nullable [] receive(int peer, long tag);
    }

    private final int rank;
    private final List<PeerInfo> peers;
    private final List<Transport> transports;
    private final PeerMessages messages;
    private final EndSettings settings;
    private final @Nullable TransportChoice[] choices;
    private final List<Group> groups = new ArrayList<>();
    private final List<PendingConnection> pending = new ArrayList<>();
    private final List<TransportConnection> made = new ArrayList<>();
    private final List<String> descriptions = new ArrayList<>();
    private boolean closed;

    /**
     * Creates the connections of a rank.
     *
     * @param peers      descriptions of all ranks, by rank, from {@link PeerInfo#exchange}
     * @param transports transports in the order of preference, as passed to the exchange
     */
    public TransportConnections(int rank, List<PeerInfo> peers, List<? extends Transport> transports,
            PeerMessages messages, EndSettings settings) {
        this.rank = rank;
        this.peers = List.copyOf(peers);
        this.transports = List.copyOf(transports);
        this.messages = messages;
        this.settings = settings;
        this.choices = new TransportChoice[peers.size()];
    }

    private record Group(EndRequest.PeerGroup peers, Transport transport) {
    }

    /**
     * Adds a group of peers. A peer group counts as a peer: its number follows the numbers of all ranks and of earlier
     * groups. A connection to this number connects all members of the group.
     */
    public synchronized void add(EndRequest.PeerGroup group, Transport transport) {
        if (group.number() != peers.size() + groups.size()) {
            throw new IllegalArgumentException(group + " is not the next behind " + peers.size() + " ranks");
        }
        groups.add(new Group(group, transport));
    }

    /** {@return the descriptions of all ranks, by rank} */
    public List<PeerInfo> peers() {
        return peers;
    }

    /**
     * Starts the sending end of a connection.
     *
     * @param peer  receiving rank, or the number of a peer group
     * @param index {@link KernelChannel#COLLECTIVE} or {@link KernelChannel#POINT_TO_POINT}
     * @throws org.millrace.MillraceException if the peer cannot be reached
     */
    public PendingConnection send(int peer, int channel, int index) {
        return begin(peer, channel, index, true, Transport::send);
    }

    /** Starts the receiving end of a connection. */
    public PendingConnection receive(int peer, int channel, int index) {
        return begin(peer, channel, index, false, Transport::receive);
    }

    private synchronized PendingConnection begin(int peer, int channel, int index, boolean sends,
            BiFunction<Transport, EndRequest, TransportEnd> maker) {
        if (closed) {
            throw new IllegalStateException("rank " + rank + ": its connections were closed");
        }
        Group group = peer < peers.size() ? null : groups.get(peer - peers.size());
        EndRequest request = new EndRequest(peers.get(rank),
                group == null ? peers.get(peer) : new PeerInfo(peer, group.peers.name(), 0, Map.of()), channel, index,
                sends, settings, group == null ? null : group.peers);
        TransportChoice choice = group == null ? choice(peer) : new TransportChoice(group.transport, List.of());
        String description = request.name() + ": " + choice;
        log(choice.transport().name()).info("{}", description);
        descriptions.add(description);
        PendingConnection end = new PendingConnection(request, choice.transport().name(),
                maker.apply(choice.transport(), request), messages, this::made);
        pending.add(end);
        return end;
    }

    /**
     * Returns the logger of a transport. Each transport has its own logger, because each transport is a subsystem of
     * NCCL.
     */
    private static Logger log(String transport) {
        return LogManager.getLogger(TransportConnections.class.getName() + '.' + transport);
    }

    private TransportChoice choice(int peer) {
        if (choices[peer] == null) {
            choices[peer] = TransportChoice.of(transports, peers.get(rank), peers.get(peer));
        }
        return choices[peer];
    }

    /**
     * Registers user memory for sends and receives. The memory is registered with each transport that can register
     * memory.
     *
     * @param memory native memory, which must outlive the result
     */
    public RegisteredMemory register(MemorySegment memory) {
        return new RegisteredMemory(transports, this::transport, transport -> transport.register(memory));
    }

    /**
     * {@return for each peer, the region through which its transport accesses any memory of this process, registered or
     * not} The region is null for a peer with a transport that requires registration.
     */
    public RegisteredMemory allMemory() {
        return new RegisteredMemory(transports, this::transport, Transport::allMemory);
    }

    /** {@return whether a transport lets some peer's device read the given memory in place} */
    public boolean isRead(MemorySegment memory) {
        for (int peer = 0; peer < peers.size(); peer++) {
            if (peer != rank && transport(peer).isRead(memory, peers.get(rank), peers.get(peer), settings)) {
                return true;
            }
        }
        return false;
    }

    private synchronized Transport transport(int peer) {
        return choice(peer).transport();
    }

    private synchronized void made(PendingConnection end, TransportConnection connection) {
        pending.remove(end);
        made.add(connection);
    }

    /**
     * Returns a line for each end that was started. The line contains the reasons against transports of higher
     * preference, for instance {@code "rank 0 -> rank 1, channel 0: SHM (P2P: other process 4711)"}.
     */
    public synchronized List<String> describe() {
        return List.copyOf(descriptions);
    }

    /**
     * {@return the reasons why transports were not possible, each reason once, such as
     * {@code "P2P: other process 4711"}}
     */
    public synchronized List<String> refusals() {
        return Arrays.stream(choices)
                .filter(Objects::nonNull)
                .flatMap(choice -> choice.refusals().stream())
                .distinct()
                .toList();
    }

    /**
     * Abandons pending connections, and frees all connections. The device and the proxies must have stopped. May be
     * called twice.
     */
    @Override
    public synchronized void close() {
        closed = true;
        pending.forEach(PendingConnection::close);
        made.forEach(TransportConnection::close);
        pending.clear();
        made.clear();
    }

    /** Transport that two ranks use, with the reasons against all transports of higher preference. */
    record TransportChoice(Transport transport, List<String> refusals) {

        /**
         * Chooses the first transport that can connect the ranks. Both ranks choose the same transport, because each
         * rank knows the transports that either rank offers.
         *
         * @throws MillraceException if no transport can connect the ranks; the message states the reason for each
         *                           transport
         */
        static TransportChoice of(List<? extends Transport> transports, PeerInfo here, PeerInfo there) {
            List<String> refusals = new ArrayList<>();
            for (Transport transport : transports) {
                Availability availability = ask(transport, here, there);
                if (availability.yes()) {
                    return new TransportChoice(transport, List.copyOf(refusals));
                }
                refusals.add(transport.name() + ": " + availability.text());
            }
            throw new MillraceException("no transport connects rank " + here.rank() + " and rank " + there.rank() + ": "
                    + String.join("; ", refusals));
        }

        private static Availability ask(Transport transport, PeerInfo here, PeerInfo there) {
            Availability mine = here.offer(transport.name());
            Availability theirs = there.offer(transport.name());
            if (!mine.yes()) {
                return mine;
            }
            return theirs.yes() ? transport.canConnect(here, there)
                    : Availability.no("rank " + there.rank() + ": " + theirs.text());
        }

        @Override
        public String toString() {
            return refusals.isEmpty() ? transport.name() : transport.name() + " (" + String.join("; ", refusals) + ")";
        }
    }
}
