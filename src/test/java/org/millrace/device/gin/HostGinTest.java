package org.millrace.device.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinOptions;
import org.millrace.gin.Window;

/** Every operation of the device side, through the queues and a network. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class HostGinTest {

    private static final int LARGE = 64 << 20;

    static Stream<Object[]> networksAndFormats() {
        return Stream.of("shm", "socket", "ucx")
                .flatMap(network -> Stream.of(GinDescriptorFormat.values())
                        .map(format -> new Object[] {network, format}));
    }

    private static void fill(MemorySegment memory, long seed) {
        Random random = new Random(seed);
        for (long at = 0; at + 8 <= memory.byteSize(); at += 8) {
            memory.set(ValueLayout.JAVA_LONG, at, random.nextLong());
        }
    }

    @ParameterizedTest
    @MethodSource("networksAndFormats")
    void putsOfAllSizesAtOddOffsetsArriveBeforeTheirSignals(String network, GinDescriptorFormat format)
            throws Exception {
        int largest = format == GinDescriptorFormat.V30 ? LARGE : 5 << 20;
        long[] sizes = {0, 1, 7, 8, 63, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, largest};
        try (GinRanks group = new GinRanks(network, 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] source = group.memory(largest + 64);
            MemorySegment[] target = group.memory(largest + 64);
            Window[] sources = group.windows(communicators, source);
            Window[] targets = group.windows(communicators, target);
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(1, 4, 4).withFormat(format));
            fill(source[0], 1);
            fill(source[1], 2);
            group.run(rank -> {
                HostGin gin = new HostGin(devices[rank], 0);
                GinTeam world = devices[rank].world();
                int peer = 1 - rank;
                long reached = 0;
                for (int i = 0; i < sizes.length; i++) {
                    long sourceOffset = 1 + i;
                    long targetOffset = 3 + 2L * i;
                    gin.put(world, peer, targets[rank], targetOffset, sources[rank], sourceOffset, sizes[i],
                            RemoteAction.add(1, i + 1L), 2);
                    reached += i + 1;
                    gin.waitSignal(1, reached);
                    gin.waitCounter(2, i + 1);
                    long differs = MemorySegment.mismatch(source[peer], sourceOffset, sourceOffset + sizes[i],
                            target[rank], targetOffset, targetOffset + sizes[i]);
                    assertEquals(-1, differs, "first different byte of " + sizes[i]);
                    GinBarrier.world(gin, 0).sync();
                }
                gin.flush();
                assertTrue(gin.isFlushed());
                assertEquals(reached, gin.readSignal(1));
                gin.resetSignal(1);
                gin.resetCounter(2);
                assertEquals(0, gin.readSignal(1));
                assertEquals(0, gin.readCounter(2));
            });
            assertNull(communicators[0].failure());
        }
    }

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void valuesOfOneToEightBytesStoreNothingElse(GinDescriptorFormat format) throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] target = group.memory(256);
            Window[] targets = group.windows(communicators, target);
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(1, 1, 1).withFormat(format));
            group.run(rank -> {
                HostGin gin = new HostGin(devices[rank], 0);
                for (int peer = 0; peer < 2; peer++) { // the peer is either the second rank or this rank itself
                    for (int bytes = 1; bytes <= 8; bytes++) {
                        long to = 128L * rank + 1 + 12 * bytes;
                        if (bytes % 2 == 0) {
                            gin.putValue(devices[rank].world(), peer, targets[rank], to, 0x8182838485868788L, bytes,
                                    RemoteAction.increment(0));
                        } else {
                            while (!gin.tryPutValue(devices[rank].world(), peer, targets[rank], to, 0x8182838485868788L,
                                    bytes, RemoteAction.increment(0))) {
                                Thread.yield();
                            }
                        }
                    }
                }
                gin.waitSignal(0, 16);
                for (int from = 0; from < 2; from++) {
                    for (int bytes = 1; bytes <= 8; bytes++) {
                        long at = 128L * from + 1 + 12 * bytes;
                        for (int i = -1; i <= bytes; i++) {
                            byte expected = i < 0 || i == bytes ? 0 : (byte) (0x8182838485868788L >>> 8 * i);
                            assertEquals(expected, target[rank].get(ValueLayout.JAVA_BYTE, at + i),
                                    bytes + " bytes from rank " + from + ", byte " + i);
                        }
                    }
                }
            });
        }
    }

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void indicesAndSignalsWrap(GinDescriptorFormat format) throws Exception {
        int puts = 100;
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(4096);
            Window[] windows = group.windows(communicators, memory);
            // The queue's indices wrap at 2^32. If they are read as signed numbers, they also wrap at 2^31.
            for (int first : new int[] {-50, Integer.MAX_VALUE - 50}) {
                GinDeviceCommunicator[] devices = group.devices(communicators,
                        GinRequirements.of(1, 2, 1).withFormat(format).withQueues(8, first));
                group.run(rank -> {
                    HostGin gin = new HostGin(devices[rank], 0);
                    GinTeam world = devices[rank].world();
                    int peer = 1 - rank;
                    gin.signal(world, peer, RemoteAction.add(0, -3)); // the signal is now 2^64 - 3
                    gin.waitSignal(0, -3);
                    GinBarrier.world(gin, 0).sync();
                    for (int i = 0; i < puts; i++) {
                        for (int to = 0; to < 2; to++) {
                            gin.put(world, to, windows[rank], 8, windows[rank], 0, 8, RemoteAction.increment(1), 0);
                        }
                        gin.signal(world, peer, RemoteAction.increment(0));
                        gin.waitSignal(0, i - 2L);
                    }
                    gin.waitSignal(1, 2 * puts);
                    gin.waitCounter(0, 2 * puts);
                    assertEquals(puts - 3, gin.readSignal(0));
                    gin.flush();
                    gin.resetSignal(0);
                    gin.increaseSignalShadow(0, 5);
                    GinBarrier.world(gin, 0).sync();
                    gin.signal(world, peer, RemoteAction.add(0, 5));
                    gin.waitSignalMeetShadow(0);
                    assertEquals(5, gin.readSignal(0));
                    GinBarrier.world(gin, 0).sync();
                });
                for (GinDeviceCommunicator device : devices) {
                    device.close();
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void getsOfAllSizesAtOddOffsetsHaveArrivedAfterAFlush(String network) throws Exception {
        long[] sizes =
                {0, 1, 7, 8, 63, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, network.equals("shm") ? LARGE : 5 << 20};
        try (GinRanks group = new GinRanks(network, 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] source = group.memory(LARGE + 64);
            MemorySegment[] target = group.memory(LARGE + 64);
            Window[] sources = group.windows(communicators, source);
            Window[] targets = group.windows(communicators, target);
            fill(source[0], 1);
            fill(source[1], 2);
            GinDeviceCommunicator[] devices = group.devices(communicators, GinRequirements.of(1, 1, 1));
            group.run(rank -> {
                HostGin gin = new HostGin(devices[rank], 0);
                for (int peer = 0; peer < 2; peer++) { // the peer is either the second rank or this rank itself
                    for (int i = 0; i < sizes.length; i++) {
                        long from = 1 + i;
                        long to = 3 + 2L * i;
                        target[rank].asSlice(0, Math.min(sizes[i] + 64, 4096)).fill((byte) 0);
                        gin.get(devices[rank].world(), peer, sources[rank], from, targets[rank], to, sizes[i]);
                        gin.flush();
                        long differs = MemorySegment.mismatch(source[peer], from, from + sizes[i], target[rank], to,
                                to + sizes[i]);
                        assertEquals(-1, differs, "first different byte of " + sizes[i] + " from rank " + peer);
                        assertEquals(0, target[rank].get(ValueLayout.JAVA_BYTE, to - 1));
                        if (sizes[i] < 4096) {
                            assertEquals(0, target[rank].get(ValueLayout.JAVA_BYTE, to + sizes[i]));
                        }
                    }
                }
                GinBarrier.world(gin, 0).sync();
            });
            assertNull(communicators[0].failure());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void getsReadThePeersMemory(String network) throws Exception {
        int bytes = 5 << 20;
        try (GinRanks group = new GinRanks(network, 3)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] source = group.memory(bytes);
            MemorySegment[] target = group.memory(3L * bytes);
            Window[] sources = group.windows(communicators, source);
            Window[] targets = group.windows(communicators, target);
            for (int rank = 0; rank < 3; rank++) {
                fill(source[rank], rank);
            }
            GinDeviceCommunicator[] devices = group.devices(communicators, GinRequirements.of(2, 1, 1));
            group.run(rank -> {
                HostGin gin = new HostGin(devices[rank], 1);
                for (int peer = 0; peer < 3; peer++) {
                    for (int part = 0; part < 50; part++) { // more gets than a peer answers at the same time
                        long from = (long) bytes * part / 50;
                        long length = (long) bytes * (part + 1) / 50 - from;
                        gin.get(devices[rank].world(), peer, sources[rank], from, targets[rank],
                                (long) peer * bytes + from, length);
                    }
                }
                gin.flush();
                for (int peer = 0; peer < 3; peer++) {
                    assertEquals(-1, MemorySegment.mismatch(source[peer], 0, bytes, target[rank], (long) peer * bytes,
                            (peer + 1L) * bytes), "rank " + rank + " got of " + peer);
                }
                GinBarrier.world(gin, 0).sync();
            });
        }
    }

    @ParameterizedTest
    @EnumSource(value = GinDescriptorFormat.class, names = "V28", mode = EnumSource.Mode.EXCLUDE)
    void aSignalMayLieInAWindow(GinDescriptorFormat format) throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(64);
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(1, 1, 0).withFormat(format));
            group.run(rank -> {
                HostGin gin = new HostGin(devices[rank], 0);
                for (int peer = 0; peer < 2; peer++) {
                    gin.putValue(devices[rank].world(), peer, windows[rank], 8L * rank, rank + 1, 8,
                            RemoteAction.add(windows[rank], 40, 1L << 40));
                    gin.signal(devices[rank].world(), peer, RemoteAction.increment(0));
                }
                gin.waitSignal(0, 2);
                assertEquals(2L << 40, memory[rank].get(ValueLayout.JAVA_LONG, 40));
                assertEquals(1, memory[rank].get(ValueLayout.JAVA_LONG, 0));
                assertEquals(2, memory[rank].get(ValueLayout.JAVA_LONG, 8));
            });
        }
    }

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void manyBlocksShareAQueueThatIsOftenFull(GinDescriptorFormat format) throws Exception {
        int blocks = 4;
        int each = 2000;
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            MemorySegment[] memory = group.memory(8L * 2 * blocks * each);
            Window[] windows = group.windows(communicators, memory);
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(1, 1, 1).withFormat(format).withQueues(4, -100));
            GinRanks.call(2 * blocks, index -> () -> {
                int rank = index % 2;
                int block = index / 2;
                HostGin gin = new HostGin(devices[rank], 0);
                GinTeam world = devices[rank].world();
                for (int i = 0; i < each; i++) {
                    long at = 8L * (block * each + i);
                    memory[rank].set(ValueLayout.JAVA_LONG, at, at + rank);
                    long to = 8L * blocks * each + at;
                    if (block % 2 == 0) { // half of the blocks call put, which waits for room
                        gin.put(world, 1 - rank, windows[rank], to, windows[rank], at, 8, RemoteAction.increment(0),
                                -1);
                    } else {
                        while (!gin.tryPut(world, 1 - rank, windows[rank], to, windows[rank], at, 8,
                                RemoteAction.increment(0), -1)) {
                            Thread.yield();
                        }
                    }
                }
                return null;
            });
            for (int rank = 0; rank < 2; rank++) {
                new HostGin(devices[rank], 0).waitSignal(0, (long) blocks * each);
                for (int i = 0; i < blocks * each; i++) {
                    assertEquals(8L * i + 1 - rank, memory[rank].get(ValueLayout.JAVA_LONG, 8L * (blocks * each + i)),
                            "rank " + rank + ", word " + i);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void aFullQueueRefusesWithoutClaiming(GinDescriptorFormat format) throws Exception {
        try (GinRanks group = new GinRanks("shm", 2)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator device = new GinDeviceCommunicator(communicators[0],
                    GinRequirements.of(1, 1, 0).withFormat(format).withQueues(4, -2));
            device.close(); // no agent empties the queue from now on
            HostGinContext context = new HostGinContext(group.arena, 0, 2,
                    GinRequirements.of(1, 1, 0).withFormat(format).withQueues(4, -2));
            GinPoster poster = new GinPoster(context, 0, 0, new GinPoster.BlockWait(communicators[0], 1));
            long[] words = new long[GinDescriptorFormat.MAX_WORDS];
            format.begin(words, 1, 0);
            for (int i = 0; i < 4; i++) {
                assertTrue(poster.tryPost(1, words, null), "place " + i);
            }
            assertFalse(poster.tryPost(1, words, null));
            context.cis.release(1, -1);
            assertFalse(poster.tryPost(1, words, words), "two in one place");
            assertTrue(poster.tryPost(1, words, null));
            assertEquals(3, context.pis.acquire(1));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void teamsAndBarriersOfWorldAndRail(int lsaSize) throws Exception {
        int ranks = 4;
        int rounds = 50;
        try (GinRanks group = new GinRanks("shm", ranks)) {
            GinCommunicator[] communicators = group.connect(GinOptions.defaults());
            GinDeviceCommunicator[] devices =
                    group.devices(communicators, GinRequirements.of(2, 1, 0).withLsaSize(lsaSize));
            java.util.concurrent.atomic.AtomicInteger[] entered =
                    new java.util.concurrent.atomic.AtomicInteger[ranks + 1];
            java.util.Arrays.setAll(entered, i -> new java.util.concurrent.atomic.AtomicInteger());
            group.run(rank -> {
                GinTeam rail = devices[rank].rail();
                GinTeam lsa = devices[rank].lsa();
                assertEquals(ranks, rail.ranks() * lsa.ranks());
                assertEquals(rank, lsa.toWorld(rank, lsa.rank()));
                assertEquals(rank % lsaSize + lsaSize * (rail.ranks() - 1), rail.toWorld(rank, rail.ranks() - 1));
                HostGin gin = new HostGin(devices[rank], 1);
                for (int round = 1; round <= rounds; round++) {
                    entered[rank % lsaSize].incrementAndGet();
                    GinBarrier.rail(gin, 0).sync();
                    assertTrue(entered[rank % lsaSize].get() >= round * rail.ranks(),
                            "a rank passed the rail's barrier before another came");
                    entered[ranks].incrementAndGet();
                    GinBarrier.world(gin, 0).sync();
                    assertTrue(entered[ranks].get() >= round * ranks,
                            "a rank passed the world's barrier before another came");
                }
            });
        }
    }
}
