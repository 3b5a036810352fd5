package org.millrace.engine;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.MeshNetwork;
import org.millrace.net.FullMesh;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/** Millrace's own: the ranks reduce for each other, on the threads that ask. */
record MeshProvider(Network network, Listener here) implements CollectiveNetworkProvider {

    /** No connection of a transport has such a key. */
    private static final long KEY = 0x434f4c4c00000000L;

    @Override
    public String name() {
        return "mesh";
    }

    @Override
    public boolean reduceSupport(DataType type, ReduceOp op) {
        return MeshNetwork.reduces(op);
    }

    @Override
    public Place listen(int number) {
        return new Place() {
            @Override
            public byte[] handle() {
                return here.address();
            }

            @Override
            public Pending<CollectiveNetwork> connect(byte[][] handles, int rank) {
                Pending<FullMesh> connections = FullMesh.begin(network, here, handles, rank, KEY + number);
                return new Pending<>() {
                    @Override
                    public @Nullable CollectiveNetwork poll() {
                        FullMesh made = connections.poll();
                        return made == null ? null : new MeshNetwork(rank, network, List.of(made), null);
                    }

                    @Override
                    public void close() {
                        connections.close();
                    }
                };
            }

            @Override
            public void close() {
                // the listener is the communicator's
            }
        };
    }
}
