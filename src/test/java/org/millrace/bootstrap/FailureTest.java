package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.Rejected;

/** In a complete group, a rank is lost or reports a failure. All other ranks receive the failure. */
@Timeout(120)
class FailureTest {

    @TempDir
    Path folder;

    @AfterEach
    void noThreadIsLeftBehind() {
        Ranks.assertNoThreadLeft();
    }

    private String file() {
        return "file:" + folder.resolve("group");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void everyOtherRankLearnsThatOneFailed(int failing) throws Exception {
        int size = 3;
        List<ControlPlane> planes = Ranks.join(file(), size);
        List<FutureTask<byte[][]>> blocked = new ArrayList<>();
        for (ControlPlane plane : planes) {
            if (plane.rank() != failing) {
                blocked.add(Ranks.async(() -> plane.allGather(new byte[10])));
            }
        }
        planes.get(failing).fail(new MillraceException("the GPU fell off the bus"));
        planes.get(failing).fail(new MillraceException("and something that follows from it"));
        String expected = RankIdentity.local(failing, "") + " failed: the GPU fell off the bus";
        for (FutureTask<byte[][]> task : blocked) {
            String message = Ranks.failureOf(task);
            assertTrue(message.endsWith(expected), message);
        }
        for (ControlPlane plane : planes) {
            if (plane.rank() == failing) {
                assertNull(plane.failure(), "its own failure is not another rank's");
            } else {
                assertEquals(new RemoteFailure(failing, expected), Ranks.awaitFailure(plane));
            }
            assertThrows(MillraceException.class, plane::barrier, "a failed group makes no more calls");
        }
        Ranks.closeAll(planes);
    }

    /**
     * Ranks 0 and 1 have lost their connection. Rank 1 knows the cause, but rank 0 is the first to report a failure.
     */
    @Test
    void aRankAddsItsReasonToTheReportOfTheRankThatItHadLost() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 3);
        List<GroupFailure> failures = planes.stream().map(GroupFailure::new).toList();
        failures.get(1).suspect(new PeerLostException("a card failed", 1, 0, null, null));
        failures.get(2).suspect(new PeerLostException("a consequence", 2, 1, null, null));
        failures.get(0).fail(new PeerLostException("rank 1 is silent", 0, 1, null, null));
        for (int rank = 1; rank < 3; rank++) {
            Ranks.awaitFailure(planes.get(rank));
            assertTrue(failures.get(rank).watch());
        }
        String both = failures.get(1).get().getMessage();
        assertTrue(both.endsWith("rank 1 is silent; this rank had lost that rank before: a card failed"), both);
        assertTrue(failures.get(2).get().getMessage().endsWith("rank 1 is silent"));
        Ranks.closeAll(planes);
    }

    @Test
    void theOwnFailureEndsTheOwnCall() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 2);
        FutureTask<byte[][]> blocked = Ranks.async(() -> planes.get(1).allGather(new byte[10]));
        planes.get(1).fail(new IllegalStateException());
        assertTrue(Ranks.failureOf(blocked).endsWith("java.lang.IllegalStateException"));
        assertTrue(Ranks.awaitFailure(planes.get(0)).message().endsWith(" failed: java.lang.IllegalStateException"));
        Ranks.closeAll(planes);
    }

    /** Until rank 0's call of closeLater has returned, rank 1 reads nothing, as if it were stopped. */
    @Test
    void aRankThatClosesLaterDoesNotWaitForTheOthers() throws Exception {
        FutureTask<ControlPlane> joining = Ranks.async(() -> ControlPlane.join(file(), 0, 2, Ranks.TIMEOUT));
        try (RawRank one = RawRank.introduced(file(), 1, 2); ControlPlane zero = Ranks.get(joining)) {
            zero.fail(new MillraceException("a kernel is late"));
            zero.closeLater(Ranks.TIMEOUT);
            assertTrue(Ranks.controlThreadOfRankZero().isAlive(), "it waits in the background");
            Message told;
            do {
                told = one.receive();
            } while (!(told instanceof Failed));
        }
    }

    @Test
    void aFailureJustBeforeTheEndIsStillTold() throws Exception {
        List<ControlPlane> planes = Ranks.join(file(), 3);
        String text = "x".repeat(100_000);
        planes.get(2).fail(new MillraceException(text));
        planes.get(2).close();
        String told = Ranks.awaitFailure(planes.get(1)).message();
        assertTrue(
                told.contains(" failed: xxxx") && told.endsWith("...") && told.length() <= MessageCodec.MAX_TEXT_CHARS,
                told.length() + " characters");
        Ranks.closeAll(planes);
    }

    @Test
    void aGroupOfOneHasNobodyToTell() {
        ControlPlane plane = ControlPlane.join("tcp:127.0.0.1:1", 0, 1, Ranks.TIMEOUT);
        assertEquals(1, plane.allGather(new byte[3]).length);
        plane.fail(new MillraceException("alone"));
        assertNull(plane.failure());
        assertThrows(MillraceException.class, plane::barrier);
        plane.close();
    }

    /** Ways in which an accepted rank can fail. */
    enum Fault {
        /** Rank 0's error text depends on whether rank 0 is sending a message when the rank closes its connection. */
        CLOSES("is gone: (it closed its connection without a shutdown message|Connection reset|Connection reset by peer|Broken pipe)") {
            @Override
            void inject(RawRank rank) {
                rank.close();
            }
        },
        IS_RESET("is gone: (Connection reset|Connection reset by peer|Broken pipe)") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.reset();
            }
        },
        ANNOUNCES_TOO_MUCH("announced a message of 4294967295 bytes; the limit is 1048593") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.send(ByteBuffer.allocate(MessageCodec.HEADER_BYTES)
                        .putInt(MessageCodec.MAGIC)
                        .putInt(-1)
                        .put((byte) 6)
                        .flip());
            }
        },
        ANNOUNCES_A_BYTE_TOO_MUCH("announced a message of 1048594 bytes; the limit is 1048593") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.send(ByteBuffer.allocate(MessageCodec.HEADER_BYTES)
                        .putInt(MessageCodec.MAGIC)
                        .putInt(MessageCodec.MAX_BODY + 1)
                        .put((byte) 6)
                        .flip());
            }
        },
        LOSES_THE_FRAME(
                "speaks another protocol than Millrace's control plane: it begins with \"GET / HTT\" \\(an HTTP client\\)") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.send(ByteBuffer.wrap("GET / HTTP/1.1\r\n\r\n".getBytes()));
            }
        },
        SPEAKS_FOR_ANOTHER("sent a Contribution that is not for it to send") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.say(new Contribution(1, 0, Call.BARRIER, new byte[0]));
            }
        },
        RUNS_AHEAD(
                "sent the part of rank 2 for collective call 2 while its part for call 2 is the next, once all ranks have made the call before") {
            @Override
            void inject(RawRank rank) throws Exception {
                for (int sequence = 0; sequence < 3; sequence++) {
                    rank.say(new Contribution(2, sequence, Call.BARRIER, new byte[0]));
                }
            }
        },
        SAYS_WHAT_ONLY_RANK_0_SAYS("sent a Rejected that is not for it to send") {
            @Override
            void inject(RawRank rank) throws Exception {
                rank.say(new Rejected("you"));
            }
        };

        private final String message;

        Fault(String message) {
            this.message = message;
        }

        abstract void inject(RawRank rank) throws Exception;
    }

    @ParameterizedTest
    @EnumSource
    void aLostRankIsToldToAll(Fault fault) throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(file(), 0, 3, Ranks.TIMEOUT));
        RawRank two = RawRank.introduced(file(), 2, 3);
        two.receive(Message.Present.class); // this message must arrive before rank 1 joins and the file is deleted
        try (ControlPlane one = ControlPlane.join(file(), 1, 3, Ranks.TIMEOUT); ControlPlane first = Ranks.get(zero)) {
            FutureTask<byte[][]> blocked = Ranks.async(() -> one.allGather(new byte[1]));
            fault.inject(two);
            RemoteFailure told = Ranks.awaitFailure(first);
            assertEquals(2, told.rank());
            assertTrue(told.message().matches("rank 2 \\(pid 4242 on raw-host\\) " + fault.message), told.message());
            assertEquals(told, Ranks.awaitFailure(one));
            String thrown = Ranks.failureOf(blocked);
            assertTrue(thrown.endsWith(told.message()), thrown);
            two.close();
        }
    }

    @Test
    void aRankThatFailedAndIsGoneIsToldOnce() throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(file(), 0, 2, Ranks.TIMEOUT));
        try (RawRank one = RawRank.introduced(file(), 1, 2); ControlPlane first = Ranks.get(zero)) {
            // the failure names the rank that reported it, even if the message names another rank
            one.say(new Failed(new RemoteFailure(0, "blames another")));
            assertEquals(new RemoteFailure(1, "rank 1 (pid 4242 on raw-host) failed: blames another"),
                    Ranks.awaitFailure(first));
            one.reset();
        }
    }

    @Test
    void aShutdownIsAnswered() throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(file(), 0, 2, Ranks.TIMEOUT));
        try (RawRank one = RawRank.introduced(file(), 1, 2); ControlPlane first = Ranks.get(zero)) {
            one.say(new Departed(1));
            one.awaitEnd();
            String message = assertThrows(MillraceException.class, first::barrier).getMessage();
            assertTrue(message.endsWith("rank 1 (pid 4242 on raw-host) has left the group"), message);
            assertNull(first.failure());
        }
    }

    @Test
    void aRankThatDoesNotAnswerTheShutdownDoesNotHoldUpTheEnd() throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(file(), 0, 2, Ranks.TIMEOUT));
        try (RawRank one = RawRank.introduced(file(), 1, 2)) {
            ControlPlane first = Ranks.get(zero);
            first.close();
            Ranks.assertNoThreadLeft();
            assertEquals(new Departed(0), one.receive(Departed.class));
        }
    }
}
