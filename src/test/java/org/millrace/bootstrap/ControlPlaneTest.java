package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;

/** Checks functions of the control plane with ranks that behave correctly. */
@Timeout(120)
@Tag("slow")
class ControlPlaneTest {

    @TempDir
    Path folder;

    private String file() {
        return "file:" + folder.resolve("group");
    }

    @AfterEach
    void nothingIsLeftBehind() throws Exception {
        Ranks.assertNoThreadLeft();
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(), files.toList(), "files left behind");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8, 32})
    void ranksGatherThroughAFile(int size) throws Exception {
        gather(file(), size);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8, 32})
    void ranksGatherThroughAPort(int size) throws Exception {
        gather(Ranks.freeTcp(), size);
    }

    private void gather(String rendezvous, int size) throws Exception {
        int rounds = Math.min(50, 256 / size);
        Ranks.onEach(size, rank -> {
            try (ControlPlane plane = ControlPlane.join(rendezvous, rank, size, Ranks.TIMEOUT)) {
                assertEquals(rank, plane.rank());
                assertEquals(size, plane.size());
                assertFalse(Files.exists(folder.resolve("group")), "the file outlives the group's completion");
                for (int round = 0; round < rounds; round++) {
                    byte[] mine = words(rank, round);
                    byte[][] all = plane.allGather(mine);
                    mine[0]++; // the caller may change its array after the call
                    for (int peer = 0; peer < size; peer++) {
                        assertArrayEquals(words(peer, round), all[peer],
                                "part of rank " + peer + " in round " + round + " at rank " + rank);
                        all[peer][0]++; // the caller may change the result, without effect on other ranks
                    }
                    plane.barrier();
                }
                assertNull(plane.failure());
            }
            return null;
        });
    }

    /** Returns the bytes that a rank contributes in a round. The number of bytes differs from round to round. */
    private static byte[] words(int rank, int round) {
        Random random = new Random(1_000L * round + rank);
        byte[] bytes = new byte[1 + random.nextInt(2_000)];
        random.nextBytes(bytes);
        return bytes;
    }

    @Test
    void aPartMayBeAMebibyteAndNoMore() throws Exception {
        int size = 3;
        Ranks.onEach(size, rank -> {
            try (ControlPlane plane = ControlPlane.join(file(), rank, size, Ranks.TIMEOUT)) {
                String message = assertThrows(IllegalArgumentException.class,
                        () -> plane.allGather(new byte[ControlPlane.MAX_GATHER_BYTES + 1])).getMessage();
                assertTrue(message.contains("1048577 bytes by rank " + rank), message);
                for (int round = 0; round < 4; round++) {
                    byte[] mine = new byte[ControlPlane.MAX_GATHER_BYTES];
                    new Random(rank).nextBytes(mine);
                    byte[][] all = plane.allGather(mine);
                    for (int peer = 0; peer < size; peer++) {
                        byte[] expected = new byte[ControlPlane.MAX_GATHER_BYTES];
                        new Random(peer).nextBytes(expected);
                        assertArrayEquals(expected, all[peer]);
                    }
                }
            }
            return null;
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void oneRendezvousServesOneGroupAfterAnother(boolean byFile) throws Exception {
        int size = 3;
        int groups = 5;
        String rendezvous = byFile ? file() : Ranks.freeTcp();
        // No rank waits for the others between two groups. A fast rank would reach the listener of the previous group
        // if that listener were still open.
        List<List<ControlPlane>> byRank = Ranks.onEach(size, rank -> {
            List<ControlPlane> planes = new ArrayList<>();
            for (int group = 0; group < groups; group++) {
                planes.add(ControlPlane.join(rendezvous, rank, size, Ranks.TIMEOUT));
            }
            return planes;
        });
        for (int group = 0; group < groups; group++) {
            byte tag = (byte) group;
            int index = group;
            List<byte[][]> gathered =
                    Ranks.onEach(size, rank -> byRank.get(rank).get(index).allGather(new byte[] {tag, (byte) rank}));
            for (byte[][] all : gathered) {
                for (int rank = 0; rank < size; rank++) {
                    assertArrayEquals(new byte[] {tag, (byte) rank}, all[rank]);
                }
            }
        }
        byRank.forEach(Ranks::closeAll);
    }

    @Test
    void leavingInAnyOrderIsNoFailure() throws Exception {
        int size = 4;
        for (long seed = 1; seed <= 12; seed++) {
            List<ControlPlane> planes = new ArrayList<>(Ranks.join(file(), size));
            Ranks.onEach(size,
                    rank -> planes.stream()
                            .filter(plane -> plane.rank() == rank)
                            .findFirst()
                            .orElseThrow()
                            .allGather(new byte[rank]));
            Collections.shuffle(planes, new Random(seed));
            Ranks.closeAll(planes);
            for (ControlPlane plane : planes) {
                assertNull(plane.failure(), "seed " + seed + ", rank " + plane.rank());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void whoWaitsForARankThatHasLeftIsTold(int leaver) throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 3);
        FutureTask<byte[][]> waiting = Ranks.async(() -> planes.get(2).allGather(new byte[1]));
        planes.get(leaver).close();
        String message = Ranks.failureOf(waiting);
        assertTrue(message.matches("allGather \\(collective call 0\\) of rank 2: rank " + leaver
                + " \\(pid \\d+ on .*\\) has left the group"), message);
        Ranks.closeAll(planes);
    }

    @Test
    void closingEndsTheOwnCall() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 2);
        FutureTask<byte[][]> waiting = Ranks.async(() -> planes.get(1).allGather(new byte[1]));
        planes.get(1).close();
        planes.get(1).close();
        String message = Ranks.failureOf(waiting);
        assertTrue(message.endsWith("this rank has left the group"), message);
        assertThrows(MillraceException.class, planes.get(1)::barrier);
        assertNull(planes.get(0).failure());
        Ranks.closeAll(planes);
    }

    @Test
    void ranksThatCallDifferentThingsAreTold() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 3);
        FutureTask<Object> barrier = Ranks.async(() -> {
            planes.get(0).barrier();
            return null;
        });
        FutureTask<byte[][]> gather = Ranks.async(() -> planes.get(1).allGather(new byte[1]));
        assertThrows(MillraceException.class, planes.get(2)::barrier);
        // the rank detected the disagreement itself, or another rank detected the disagreement first and reported it
        String message = Ranks.failureOf(gather);
        assertTrue(message.matches(
                ".* of rank \\d: rank \\d \\(pid \\d+ on .*\\) called (barrier|allGather) instead; all ranks make the same calls in the "
                        + "same order"),
                message);
        Ranks.await("barrier ends", barrier::isDone);
        // The rank that first detects the disagreement informs the two other ranks, and receives no notice itself.
        Ranks.await("two ranks are told", () -> planes.stream().filter(plane -> plane.failure() != null).count() >= 2);
        Ranks.closeAll(planes);
    }

    @Test
    void aWaitingRankCanBeInterrupted() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 2);
        Thread.currentThread().interrupt();
        String message = assertThrows(MillraceException.class, planes.get(0)::barrier).getMessage();
        assertTrue(message.contains("interrupted"), message);
        assertTrue(Thread.currentThread().isInterrupted());
        planes.get(0).close(); // this close ends the control thread, although the calling thread is interrupted
        assertTrue(Thread.interrupted());
        planes.get(1).close();
    }

    @Test
    void anInterruptedRankStillSendsItsShutdownMessage() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 3);
        Thread.currentThread().interrupt();
        planes.get(2).close();
        assertTrue(Thread.interrupted());
        planes.get(1).close();
        assertNull(planes.get(1).failure());
        assertNull(planes.get(0).failure());
        planes.get(0).close();
    }

    @Test
    void joiningCanBeInterrupted() {
        for (int rank = 0; rank < 2; rank++) {
            int own = rank;
            Thread.currentThread().interrupt();
            String message =
                    assertThrows(MillraceException.class, () -> ControlPlane.join(file(), own, 2, Ranks.TIMEOUT))
                            .getMessage();
            assertTrue(message.contains("interrupted"), message);
            assertTrue(Thread.interrupted());
        }
    }

    /**
     * Another thread asks rank 0 to leave while the control thread closes the listener for the last rank. The last rank
     * has already closed its connection, so no later event wakes the control thread.
     */
    @Test
    void aRequestToLeaveIsServedAlthoughTheListenerIsClosedMeanwhile() throws Exception {
        JoinOptions options = JoinOptions.within(Ranks.TIMEOUT);
        ServerSocketChannel listener =
                Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "rendezvous", "");
        int port = ((InetSocketAddress) listener.getLocalAddress()).getPort();
        CountDownLatch closed = new CountDownLatch(1);
        AtomicReference<ControlLoop> zero = new AtomicReference<>();
        Runnable whileTheListenerIsClosed = () -> {
            try {
                closed.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            zero.get().leaveLater(Ranks.TIMEOUT);
        };
        zero.set(Coordinator.open(
                new GroupState(RankIdentity.local(0, ""), 2), new BootstrapListener(listener,
                        InetAddress.getLoopbackAddress(), Secret.of("", null), null, whileTheListenerIsClosed),
                Selector.open(), options.sockets()));
        zero.get().start();
        RawRank.introduced("tcp:127.0.0.1:" + port, 1, 2).close();
        closed.countDown();
        Ranks.awaitNoThreadLeft();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "group", "udp:127.0.0.1:1", "file:", "file:/", "tcp:", "tcp:host", "tcp::1", "tcp:host:",
                    "tcp:host:x", "tcp:host:0", "tcp:host:65536", "tcp:::1:1"})
    void aRendezvousThatIsNoneIsRefused(String rendezvous) {
        String message =
                assertThrows(IllegalArgumentException.class, () -> ControlPlane.join(rendezvous, 0, 2, Ranks.TIMEOUT))
                        .getMessage();
        assertTrue(message.contains('"' + rendezvous + '"'), message);
    }

    @Test
    void argumentsAreChecked() {
        assertThrows(IllegalArgumentException.class, () -> ControlPlane.join(file(), 0, 0, Ranks.TIMEOUT));
        assertThrows(IllegalArgumentException.class, () -> ControlPlane.join(file(), -1, 2, Ranks.TIMEOUT));
        assertThrows(IllegalArgumentException.class, () -> ControlPlane.join(file(), 2, 2, Ranks.TIMEOUT));
        assertThrows(IllegalArgumentException.class, () -> ControlPlane.join(file(), 0, 2, Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> Ranks.options(Ranks.TIMEOUT, ""));
        assertFalse(Ranks.options(Ranks.TIMEOUT, "hush").toString().contains("hush"));
    }
}
