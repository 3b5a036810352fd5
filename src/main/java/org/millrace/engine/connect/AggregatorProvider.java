package org.millrace.engine.connect;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.List;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.aggregator.AggregatorConnect;
import org.millrace.collnet.mesh.MeshNetwork;
import org.millrace.net.Pending;
import org.millrace.net.socket.stream.SocketOptions;

/** Aggregators in processes of their own, which the user names. */
record AggregatorProvider(List<InetSocketAddress> aggregators, SocketOptions options,
        String secret) implements CollectiveNetworkProvider {

    private static final SecureRandom RANDOM = new SecureRandom();

    @Override
    public String name() {
        return "aggregators";
    }

    @Override
    public boolean reduceSupport(DataType type, ReduceOp op) {
        return MeshNetwork.reduces(op);
    }

    @Override
    public Place listen(int number) {
        long own = RANDOM.nextLong();
        return new Place() {
            @Override
            public byte[] handle() {
                return ByteBuffer.allocate(Long.BYTES).putLong(own).array();
            }

            @Override
            public Pending<CollectiveNetwork> connect(byte[][] handles, int rank) {
                return new AggregatorConnect(options, aggregators, secret, ByteBuffer.wrap(handles[0]).getLong(),
                        handles.length, rank);
            }

            @Override
            public void close() {
                // ranks are connected back where they say it themselves
            }
        };
    }
}
