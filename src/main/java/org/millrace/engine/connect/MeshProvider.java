package org.millrace.engine.connect;

import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.mesh.MeshNetwork;
import org.millrace.gin.agent.GinMesh;
import org.millrace.net.Listener;
import org.millrace.net.Network;

/** Millrace's own: the ranks reduce for each other, on the threads that ask. */
record MeshProvider(Network network, Listener here) implements CollectiveNetworkProvider {

    /** No connection of a transport has such a key. */
    private static final long KEY = 0x434f4c4c00000000L;

    @Override
    public String name() {
        return "mesh";
    }

    @Override
    public Place listen(int channel) {
        return new Place() {
            @Override
            public byte[] handle() {
                return here.address();
            }

            @Override
            public CollectiveNetwork connect(byte[][] handles, int rank, Duration deadline,
                    Supplier<? extends @Nullable Throwable> abort) {
                GinMesh mesh = GinMesh.connect(network, here, handles, rank, KEY + channel, deadline, abort);
                return new MeshNetwork(rank, network, List.of(new MeshNetwork.Mesh(mesh.senders(), mesh.receivers())),
                        null);
            }

            @Override
            public void close() {
                // the listener is the communicator's
            }
        };
    }
}
