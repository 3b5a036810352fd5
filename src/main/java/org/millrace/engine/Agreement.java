package org.millrace.engine;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.millrace.MismatchException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.Machine;
import org.millrace.bootstrap.RankLetter;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.engine.EngineOptions.TransferOptions;

/**
 * Settings and host names that all ranks have agreed on before any connection is made.
 *
 * @param host     identifier of this rank's host. It is the machine's identifier, unless the user divides the machine
 *                 into several hosts
 * @param nodes    index of each rank's host. Hosts are numbered from 0, in the order of their lowest ranks
 * @param channels number of rings
 */
record Agreement(int ranks, String host, int ranksOnThisHost, int[] nodes, int channels, long bufferBytes) {

    private static final String HOW_DATA_TRAVELS = String.join(", ", Settings.ALGORITHMS.name(),
            Settings.PROTOCOLS.name(), Settings.NET_SHARED_BUFFERS.name(), Settings.P2P_NET_CHUNK_SIZE.name(),
            Settings.P2P_LL_THRESHOLD.name(), Settings.GROUPED_CONNECTIONS.name());

    /**
     * Sends this rank's host name and settings to all ranks, and receives the host names and settings of all ranks. All
     * ranks must call this method.
     */
    public static Agreement reach(ControlPlane control, Configuration configuration) {
        String hostName = configuration.get(Settings.HOST_ID).orElseGet(Machine::host);
        byte[] host = hostName.getBytes(StandardCharsets.UTF_8);
        String algorithms = AlgorithmChoice.of(configuration).text() + ", " + ProtocolChoice.of(configuration).text()
                + "; sends and receives: " + TransferOptions.of(configuration, control.size()).text();
        byte[] algorithmBytes = algorithms.getBytes(StandardCharsets.UTF_8);
        String network = network(configuration.get(Settings.NETWORK));
        byte[] networkBytes = network.getBytes(StandardCharsets.UTF_8);
        ByteBuffer mine = ByteBuffer
                .allocate(4 * Integer.BYTES + Long.BYTES + host.length + algorithmBytes.length + networkBytes.length);
        mine.putInt(EngineOptions.proposedChannels(configuration))
                .putLong(configuration.get(Settings.BUFFER_SIZE))
                .putInt(host.length)
                .put(host)
                .putInt(algorithmBytes.length)
                .put(algorithmBytes)
                .putInt(networkBytes.length)
                .put(networkBytes);
        byte[][] all = control.allGather(mine.array());
        int here = 0;
        int[] nodes = new int[all.length];
        List<ByteBuffer> hosts = new ArrayList<>();
        int channels = Integer.MAX_VALUE;
        for (int rank = 0; rank < all.length; rank++) {
            RankLetter theirs = new RankLetter(rank, "its settings", all[rank]);
            channels = Math.min(channels, theirs.number("its number of channels", 1, Integer.MAX_VALUE));
            requireSame(Settings.BUFFER_SIZE.name(), configuration.get(Settings.BUFFER_SIZE), theirs.longNumber(),
                    control.rank(), rank);
            ByteBuffer theirHost = ByteBuffer.wrap(theirs.sized("the name of a host"));
            here += theirHost.equals(ByteBuffer.wrap(host)) ? 1 : 0;
            if (!hosts.contains(theirHost)) {
                hosts.add(theirHost);
            }
            nodes[rank] = hosts.indexOf(theirHost);
            requireSame(HOW_DATA_TRAVELS, algorithms, theirs.text("a text of how data travels"), control.rank(), rank);
            requireSame(Settings.NETWORK.name(), network, theirs.text("its network"), control.rank(), rank);
            theirs.end();
        }
        return new Agreement(control.size(), hostName, here, nodes, channels, configuration.get(Settings.BUFFER_SIZE));
    }

    /**
     * Returns the name of a network in lower case, for a comparison between ranks. All plugins get the same name,
     * because the plugin's path may differ between hosts.
     */
    private static String network(String name) {
        return name.startsWith(Settings.PLUGIN_PREFIX) ? "a plugin" : name.toLowerCase(Locale.ROOT);
    }

    private static void requireSame(String setting, Object mine, Object theirs, int rank, int other) {
        if (!mine.equals(theirs)) {
            throw new MismatchException(setting + " is " + mine + " on rank " + rank + " and " + theirs + " on rank "
                    + other + ": it must be the same on all ranks", rank, other, null, null);
        }
    }

    public boolean onOneHost() {
        return ranksOnThisHost == ranks;
    }
}
