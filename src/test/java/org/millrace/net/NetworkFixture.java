package org.millrace.net;

import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/** A network under test and memory for it. Both are closed after each test. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class NetworkFixture {

    /** The network under test. */
    protected Network network;
    private Arena arena;

    /** Creates the network under test. The fixture closes this network after each test. */
    protected abstract Network newNetwork();

    @BeforeEach
    void open() {
        arena = Arena.ofShared();
        network = newNetwork();
    }

    @AfterEach
    void close() {
        if (network != null) { // the test is skipped if the machine lacks a requirement of the network
            network.close();
        }
        arena.close();
    }

    /** Returns registered memory with the lifetime of the test. */
    protected MemoryRegion memory(long bytes) {
        return network.register(arena.allocate(bytes, 64));
    }

    protected static FrameHeader header(long bytes, long... words) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        for (int i = 0; i < words.length; i++) {
            header.word(i, words[i]);
        }
        return header;
    }
}
