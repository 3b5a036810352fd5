package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.net.URLClassLoader;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.mesh.MeshNetwork;
import org.millrace.gin.agent.GinMesh;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkChoice;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.socket.stream.SocketOptions;

/** A collective network as another jar has it: it counts what it is asked for, and never reduces by a product. */
public final class CountingCollectives implements CollectiveNetworkProvider {

    static final AtomicInteger REQUESTS = new AtomicInteger();

    /** For {@link java.util.ServiceLoader}. */
    public CountingCollectives() {}

    /** Is found by the communicators that this thread, and those that it starts, make until the loader is closed. */
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
    public Place listen(int channel) {
        Network network = NetworkChoice.parse("shm").open(SocketOptions.defaults(), ShmOptions.defaults());
        Listener here = network.listen();
        return new Place() {
            @Override
            public byte[] handle() {
                return here.address();
            }

            @Override
            public CollectiveNetwork connect(byte[][] handles, int rank, Duration deadline,
                    Supplier<? extends Throwable> abort) {
                GinMesh mesh = GinMesh.connect(network, here, handles, rank, channel, deadline, abort);
                return new Counted(network, new MeshNetwork(rank, network,
                        List.of(new MeshNetwork.Mesh(mesh.senders(), mesh.receivers())), null));
            }

            @Override
            public void close() {
                here.close();
            }
        };
    }

    private record Counted(Network network, CollectiveNetwork beneath) implements CollectiveNetwork {

        @Override
        public boolean reduceSupport(DataType type, ReduceOp op) {
            return op != ReduceOp.PROD && beneath.reduceSupport(type, op);
        }

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
