package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/** Connections of one rank, each over the first transport that can make it. */
public final class TransportConnections implements Connections {

    private static final Logger LOG = LogManager.getLogger(TransportConnections.class);

    private final int rank;
    private final List<PeerInfo> peers;
    private final List<Transport> transports;
    private final PeerMessages messages;
    private final EndSettings settings;
    private final TransportChoice[] choices;
    private final List<PendingConnection> making = new ArrayList<>();
    private final List<Connection> made = new ArrayList<>();
    private final List<String> descriptions = new ArrayList<>();
    private boolean closed;

    /**
     * Connections of a rank.
     *
     * @param rank       this rank
     * @param peers      what all ranks say of themselves, by rank: {@link PeerInfo#exchange}
     * @param transports in the order in which they are asked, the same as in the exchange
     * @param messages   carries what two ends tell each other
     * @param settings   what all connections have in common
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

    @Override
    public PendingConnection send(int peer, int channel, int index) {
        return begin(peer, channel, index, true, Transport::send);
    }

    @Override
    public PendingConnection receive(int peer, int channel, int index) {
        return begin(peer, channel, index, false, Transport::receive);
    }

    private synchronized PendingConnection begin(int peer, int channel, int index, boolean sends,
            BiFunction<Transport, EndRequest, TransportEnd> maker) {
        if (closed) {
            throw new IllegalStateException("rank " + rank + ": its connections were closed");
        }
        EndRequest request = new EndRequest(peers.get(rank), peers.get(peer), channel, index, sends, settings);
        TransportChoice choice = choice(peer);
        String description = request.name() + ": " + choice;
        LOG.info("{}", description);
        descriptions.add(description);
        PendingConnection end = new PendingConnection(request, choice.transport().name(),
                maker.apply(choice.transport(), request), messages, this::made);
        making.add(end);
        return end;
    }

    private TransportChoice choice(int peer) {
        if (choices[peer] == null) {
            choices[peer] = TransportChoice.of(transports, peers.get(rank), peers.get(peer));
        }
        return choices[peer];
    }

    @Override
    public RegisteredMemory register(MemorySegment memory) {
        return new TransportRegions(transports, this::transport, transport -> transport.register(memory));
    }

    @Override
    public RegisteredMemory allMemory() {
        return new TransportRegions(transports, this::transport, Transport::allMemory);
    }

    private synchronized Transport transport(int peer) {
        return choice(peer).transport();
    }

    private synchronized void made(PendingConnection end, Connection connection) {
        making.remove(end);
        made.add(connection);
    }

    @Override
    public synchronized List<String> describe() {
        return List.copyOf(descriptions);
    }

    @Override
    public synchronized List<String> refusals() {
        return Arrays.stream(choices)
                .filter(Objects::nonNull)
                .flatMap(choice -> choice.refusals().stream())
                .distinct()
                .toList();
    }

    @Override
    public synchronized void close() {
        closed = true;
        making.forEach(PendingConnection::close);
        made.forEach(Connection::close);
        making.clear();
        made.clear();
    }
}
