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
 * Makes the connections of one rank of one communicator, each over the first transport that can make it. Both ends must
 * ask for the same connection, each in its own time; none waits for another.
 *
 * <p>
 * A connection is named by channel and index: index 0 is the collectives', index 1 is that of sends and receives, as in
 * NCCL.
 */
final class TransportConnections implements AutoCloseable {

    /** Carries what the two ends of a connection tell each other while they are made. Nothing waits. */
    public interface PeerMessages {

        /**
         * Sends a message to a rank.
         *
         * @param tag which message: none is used twice between two ranks
         */
        void send(int peer, long tag, byte[] data);

        /**
         * A message that a rank sent to this one.
         *
         * @return it, once; null if it has not come
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
     * Connections of a rank.
     *
     * @param peers      what all ranks say of themselves, by rank: {@link PeerInfo#exchange}
     * @param transports in the order in which they are asked, the same as in the exchange
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

    /** Says that a connection with a peer behind the ranks connects several of them. */
    public synchronized void add(EndRequest.PeerGroup group, Transport transport) {
        if (group.number() != peers.size() + groups.size()) {
            throw new IllegalArgumentException(group + " is not the next behind " + peers.size() + " ranks");
        }
        groups.add(new Group(group, transport));
    }

    /** {@return what all ranks say of themselves, by rank} */
    public List<PeerInfo> peers() {
        return peers;
    }

    /**
     * Begins to make the sending end of a connection.
     *
     * @param peer  the rank that receives, or the number of a group
     * @param index {@link KernelChannel#COLLECTIVE} or {@link KernelChannel#POINT_TO_POINT}
     * @throws org.millrace.MillraceException if the peer cannot be reached
     */
    public PendingConnection send(int peer, int channel, int index) {
        return begin(peer, channel, index, true, Transport::send);
    }

    /** Begins to make the receiving end of a connection. */
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

    /** A transport's own logger, as each is one of NCCL's subsystems. */
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
     * Makes memory of the user's ready to be sent from and received into, wherever a transport can.
     *
     * @param memory native memory, which outlives what is returned
     */
    public RegisteredMemory register(MemorySegment memory) {
        return new RegisteredMemory(transports, this::transport, transport -> transport.register(memory));
    }

    /** {@return what any memory is to each peer's connections: null to those whose transports need it made ready} */
    public RegisteredMemory allMemory() {
        return new RegisteredMemory(transports, this::transport, Transport::allMemory);
    }

    /** {@return whether some peer's device reads what this rank sends where it lies} */
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
     * Which transports were chosen, and why none before them.
     *
     * @return a line for each end that was begun, as in
     *         {@code "rank 0 -> rank 1, channel 0: SHM (P2P: other process 4711)"}
     */
    public synchronized List<String> describe() {
        return List.copyOf(descriptions);
    }

    /** {@return why transports were not possible: each reason once, as in {@code "P2P: other process 4711"}} */
    public synchronized List<String> refusals() {
        return Arrays.stream(choices)
                .filter(Objects::nonNull)
                .flatMap(choice -> choice.refusals().stream())
                .distinct()
                .toList();
    }

    /**
     * Gives up what is still being made, and frees all connections: their devices and their proxies must have stopped.
     * May be called twice.
     */
    @Override
    public synchronized void close() {
        closed = true;
        pending.forEach(PendingConnection::close);
        made.forEach(TransportConnection::close);
        pending.clear();
        made.clear();
    }

    /** Which transport two ranks use, and why none before it. */
    record TransportChoice(Transport transport, List<String> refusals) {

        /**
         * Asks one transport after another. Both ranks make the same choice, as each offer is known to both.
         *
         * @throws MillraceException if none can connect them; the message says why of each
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
