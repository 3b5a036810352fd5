package org.millrace.engine;

import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.engine.EngineOptions.SharedMemoryOptions;
import org.millrace.engine.TransportConnections.PeerMessages;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.TestOptions;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.socket.SocketOptions;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;

/** Two ranks that create connections to each other. Both run in this thread. A map holds their set-up messages. */
public final class TwoRanks implements AutoCloseable {

    static final ConnectionLayout LAYOUT = new ConnectionLayout(8192, 8192, 65536);

    private record Address(int from, int to, long tag) {
    }

    private final Map<Address, byte[]> sent = new ConcurrentHashMap<>();
    private final List<Runnable> opened = new ArrayList<>();
    final List<Throwable> failures = new ArrayList<>();
    public final TransportConnections[] ranks = new TransportConnections[2];

    public TwoRanks(Path directory, Map<String, String> settings, NetworkOptions.NetworkChoice choice,
            UnaryOperator<Transport> wrap) {
        Configuration configuration = Configuration.load(Map.of(), new java.util.Properties(), settings);
        List<List<Transport>> transports = new ArrayList<>();
        byte[][] told = new byte[2][];
        for (int rank = 0; rank < 2; rank++) {
            Network network = choice.open(SocketOptions.defaults(), TestOptions.shm(directory));
            opened.add(network::close);
            Listener listener = network.listen();
            opened.add(listener::close);
            List<Transport> mine = new ArrayList<>(
                    Transports.of(SharedMemoryOptions.of(configuration), null, directory, network, listener));
            mine.replaceAll(wrap);
            transports.add(mine);
            int self = rank;
            PeerInfo.exchange(rank, "host", mine, bytes -> {
                told[self] = bytes;
                return new byte[0][];
            });
        }
        for (int rank = 0; rank < 2; rank++) {
            int self = rank;
            PeerMessages messages = new PeerMessages() {
                @Override
                public void send(int peer, long tag, byte[] data) {
                    sent.put(new Address(self, peer, tag), data);
                }

                @Override
                public byte[] receive(int peer, long tag) {
                    return sent.remove(new Address(peer, self, tag));
                }
            };
            ranks[rank] =
                    new TransportConnections(rank, PeerInfo.exchange(rank, "host", transports.get(rank), bytes -> told),
                            transports.get(rank), messages,
                            new EndSettings(LAYOUT, 0, (connection, thrown) -> {}, failures::add, null, 0, null,
                                    AbortFlag.of(Arena.global().allocate(AbortFlag.BYTES, AbortFlag.BYTES)),
                                    PayloadCheck.OFF, 0));
        }
    }

    /**
     * Returns rank 0's sending end and rank 1's receiving end. A failure of either end is thrown after both ends have
     * failed or been created.
     */
    public List<TransportConnection> connect() {
        List<PendingConnection> pending = List.of(ranks[0].send(1, 0, KernelChannel.COLLECTIVE),
                ranks[1].receive(0, 0, KernelChannel.COLLECTIVE));
        TransportConnection[] made = new TransportConnection[2];
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (made[0] == null || made[1] == null) {
            for (int end = 0; end < 2; end++) {
                made[end] = made[end] == null ? pending.get(end).poll() : made[end];
            }
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError("not connected in 20 s");
            }
            Thread.onSpinWait();
        }
        return List.of(made);
    }

    /** Closes the connections, and then the resources that they use. After a failure the engine uses the same order. */
    @Override
    public void close() {
        for (TransportConnections connections : ranks) {
            connections.close();
            connections.close();
        }
        for (Runnable each : opened.reversed()) {
            each.run();
        }
    }
}
