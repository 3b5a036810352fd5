package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.MeshNetwork;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** A collective network of another jar. It counts requests, and does not support products. */
public final class CountingCollectives implements CollectiveNetworkProvider {

    static final AtomicInteger REQUESTS = new AtomicInteger();

    /** Creates the provider for {@link java.util.ServiceLoader}. */
    public CountingCollectives() {}

    /**
     * Makes this provider visible to the communicators of this thread, and of threads that it starts, until the loader
     * is closed.
     */
    static URLClassLoader find() {
        REQUESTS.set(0);
        return new URLClassLoader(new URL[] {CountingCollectives.class.getResource("/collectives/")},
                CountingCollectives.class.getClassLoader());
    }

    @Override
    public String name() {
        return "counting";
    }

    @Override
    public boolean reduceSupport(DataType type, ReduceOp op) {
        return op != ReduceOp.PROD && MeshNetwork.reduces(op);
    }

    @Override
    public Place listen(int number) {
        Network network =
                NetworkOptions.NetworkChoice.parse("shm").open(SocketOptions.defaults(), ShmOptions.defaults());
        Listener here = network.listen();
        return new Place() {
            @Override
            public byte[] handle() {
                return here.address();
            }

            @Override
            public Pending<CollectiveNetwork> connect(byte[][] handles, int rank) {
                Pending<FullMesh> connections = FullMesh.begin(network, here, handles, rank, number, 0);
                return new Pending<>() {
                    @Override
                    public CollectiveNetwork poll() {
                        FullMesh made = connections.poll();
                        return made == null ? null
                                : new Counted(network, new MeshNetwork(rank, network, List.of(made), null));
                    }

                    @Override
                    public void close() {
                        connections.close();
                    }
                };
            }

            @Override
            public void close() {
                here.close();
            }
        };
    }

    private record Counted(Network network, CollectiveNetwork beneath) implements CollectiveNetwork {

        @Override
        public MemoryRegion register(MemorySegment memory) {
            return beneath.register(memory);
        }

        @Override
        public int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
                DataType type, ReduceOp.BuiltIn op) {
            REQUESTS.incrementAndGet();
            return beneath.iallreduce(send, sendOffset, receive, receiveOffset, count, type, op);
        }

        @Override
        public int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
                long bytesPerRank, long windowOffset, long windowBytes) {
            REQUESTS.incrementAndGet();
            return beneath.iallgather(send, sendOffset, receive, receiveOffset, bytesPerRank, windowOffset,
                    windowBytes);
        }

        @Override
        public int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
                long bytesPerRank, long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op) {
            REQUESTS.incrementAndGet();
            return beneath.ireducescatter(send, sendOffset, receive, receiveOffset, bytesPerRank, windowOffset,
                    windowBytes, type, op);
        }

        @Override
        public long test(int request) {
            return beneath.test(request);
        }

        @Override
        public void close() {
            beneath.close();
            network.close();
        }
    }
}
