package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.RandomFrames;

/** Socket buffers so small that headers and payloads come in pieces, wherever the kernel cuts them. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PartialTransferTest {

    private static final int SLOTS = 4;

    /**
     * The kernel waits for acknowledgements when buffers are smaller than its packets (64 KiB over loopback): the
     * smallest take few frames.
     */
    @ParameterizedTest
    @CsvSource({"1, 4096, 4096, 60, 1", "3, 4096, 4096, 60, 2", "1, 4096, 0, 60, 3", "1, 0, 4096, 60, 4",
            "2, 50000, 30000, 200, 5", "1, 200000, 100000, 1000, 6", "4, 200000, 100000, 1000, 7"})
    void framesArriveWhole(int streams, int sendBuffer, int receiveBuffer, int frames, long seed) {
        try (Arena arena = Arena.ofShared();
                SocketNetwork network = new SocketNetwork(
                        SocketOptions.defaults().withStreams(streams, 30_000).withBuffers(sendBuffer, receiveBuffer));
                Connected ends = Connected.make(network, network)) {
            var sending = new RandomFrames.Sending(ends.sender(), network.register(arena.allocate(SLOTS * 150_000L)),
                    SLOTS, seed, frames);
            var receiving = new RandomFrames.Receiving(ends.receiver(),
                    network.register(arena.allocate(SLOTS * 150_000L)), SLOTS, seed, frames);
            boolean sent = false;
            boolean received = false;
            while (!sent || !received) {
                sent = sending.step();
                received = receiving.step();
            }
        }
    }
}
