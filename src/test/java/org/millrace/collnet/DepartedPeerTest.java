package org.millrace.collnet;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;
import org.millrace.net.auto.NetworkOptions.NetworkChoice;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** A rank closes when its own requests are complete. Its peers still receive all frames that it has sent. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DepartedPeerTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    /**
     * The sending connection to the closed rank may report the close before the receiving connection has delivered that
     * rank's last frames.
     */
    @Test
    void whatARankSentBeforeItLeftIsTakenIn() throws Exception {
        try (Arena arena = Arena.ofShared();
                Network network = shm();
                Network ofPeer = shm();
                MemoryRegion memory = network.register(arena.allocate(64, 64));
                MemoryRegion ofPeerMemory = ofPeer.register(arena.allocate(64, 64));
                Listener here = network.listen();
                Listener there = ofPeer.listen();
                ExecutorService other = Executors.newSingleThreadExecutor()) {
            byte[][] addresses = {here.address(), there.address()};
            Future<FullMesh> peers =
                    other.submit(() -> FullMesh.connect(ofPeer, there, addresses, 1, 5, 0, TIMEOUT, () -> null));
            FullMesh own = FullMesh.connect(network, here, addresses, 0, 5, 0, TIMEOUT, () -> null);
            AtomicBoolean left = new AtomicBoolean();
            own.senders()[1] = new Forwarding.Sender(own.senders()[1]) {
                @Override
                public int progress() {
                    if (left.get()) {
                        throw new PeerClosedException("rank 1 has left");
                    }
                    return super.progress();
                }
            };
            own.receivers()[1] = new Forwarding.Receiver(own.receivers()[1]) {
                @Override
                public FrameHeader poll() {
                    return left.get() ? super.poll() : null;
                }
            };
            try (MeshNetwork rank = new MeshNetwork(0, network, List.of(own), null)) {
                MeshNetwork peer = new MeshNetwork(1, ofPeer, List.of(peers.get()), null);
                memory.segment().set(ValueLayout.JAVA_LONG, 0, 10);
                ofPeerMemory.segment().set(ValueLayout.JAVA_LONG, 8, 11);
                int asked = rank.iallgather(memory, 0, memory, 0, 8, 0, 16);
                int ofPeerAsked = peer.iallgather(ofPeerMemory, 8, ofPeerMemory, 0, 8, 0, 16);
                while (peer.test(ofPeerAsked) == MeshNetwork.PENDING) {
                    assertEquals(MeshNetwork.PENDING, rank.test(asked));
                }
                left.set(true);
                while (rank.test(asked) == MeshNetwork.PENDING) {
                    Thread.onSpinWait();
                }
                assertEquals(11, memory.segment().get(ValueLayout.JAVA_LONG, 8));
                peer.close();
            }
        }
    }

    private static Network shm() {
        return NetworkChoice.parse("shm").open(SocketOptions.defaults(), ShmOptions.defaults());
    }
}
