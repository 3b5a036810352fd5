package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.ProtocolException;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.PeerMessage;

/** State of the group, as a rank keeps it. The test uses no network. */
class GroupStateTest {

    private static final Duration AT_ONCE = Duration.ofNanos(1);

    private final GroupState group = new GroupState(new RankIdentity(1, 11, "b"), 3);

    @BeforeEach
    void twoRanksAreThere() throws Exception {
        group.present(new RankIdentity(0, 10, "a"));
        group.present(new RankIdentity(1, 11, "b"));
    }

    private String joinFails() {
        return assertThrows(MillraceException.class, () -> group.awaitComplete(Deadline.in(AT_ONCE), "here"))
                .getMessage();
    }

    private String partsFail(Contribution own) {
        return assertThrows(MillraceException.class, () -> group.awaitParts(own, Deadline.in(AT_ONCE))).getMessage();
    }

    private static Contribution barrier(int rank, long sequence) {
        return new Contribution(rank, sequence, Call.BARRIER, new byte[0]);
    }

    @Test
    void theMissingRankIsNamed() throws Exception {
        assertFalse(group.isComplete());
        assertTrue(joinFails()
                .startsWith("rank 1 of 3 cannot join the group at here: rank 2 has not joined within 0 s; "));
        group.refused("somebody");
        assertTrue(joinFails().endsWith("; refused meanwhile: somebody"));
        group.present(new RankIdentity(2, 12, "c"));
        assertTrue(group.isComplete());
        group.awaitComplete(Deadline.in(AT_ONCE), "here");
    }

    @Test
    void aRankIsNotThereBeforeItIsLetIn() throws Exception {
        GroupState two = new GroupState(new RankIdentity(1, 11, "b"), 2);
        two.present(new RankIdentity(0, 10, "a"));
        DeadlineException late = assertThrows(DeadlineException.class,
                () -> two.awaitComplete(Deadline.in(AT_ONCE).of("deadline of shrink"), "here"));
        assertTrue(late.getMessage()
                .endsWith("rank 0 (pid 10 on a) has not admitted it within 0 s (deadline of shrink); allow more time"),
                late.getMessage());
        assertEquals(0, late.peer().orElseThrow());
    }

    @Test
    void whoDoesNotCallIsNamed() throws Exception {
        group.present(new RankIdentity(2, 12, "c"));
        Contribution own = group.contribute(Call.BARRIER, new byte[0]);
        group.contributed(barrier(0, 0));
        assertEquals("barrier (collective call 0) of rank 1: rank 2 (pid 12 on c) has not called it within 0 s",
                partsFail(own));
    }

    @Test
    void aCallThatAllMadeSucceedsWhateverFollows() throws Exception {
        group.present(new RankIdentity(2, 12, "c"));
        Contribution own = group.contribute(Call.BARRIER, new byte[0]);
        group.contributed(barrier(0, 0));
        group.contributed(barrier(2, 0));
        group.departed(0);
        group.failed(new RemoteFailure(2, "rank 2 failed"));
        group.close();
        assertEquals(3, group.awaitParts(own, Deadline.in(AT_ONCE)).length);
    }

    @Test
    void theFirstFailureIsKept() {
        group.failed(new RemoteFailure(2, "first"));
        group.failed(new RemoteFailure(0, "second"));
        assertEquals(new RemoteFailure(2, "first"), group.failure());
        assertTrue(joinFails().endsWith(": first"));
        assertTrue(group.poison(new RemoteFailure(1, "own")));
        assertFalse(group.poison(new RemoteFailure(1, "own again")));
    }

    /**
     * If a rank closes while a call of its own is in progress, that call fails. The other ranks must not receive this
     * failure, even if the call's thread reports it before the shutdown message is sent.
     */
    @Test
    void whoHasLeftFailsNobody() throws Exception {
        group.present(new RankIdentity(2, 12, "c"));
        Contribution own = group.contribute(Call.BARRIER, new byte[0]);
        group.close();
        String message = partsFail(own);
        assertTrue(message.endsWith("this rank has left the group"), message);
        assertFalse(group.poison(new RemoteFailure(1, message)));
    }

    @Test
    void anUnreadMessageIsReplacedOnlyInAGroupThatSurvivesLosses() throws Exception {
        group.arrived(new PeerMessage(0, 1, 7, new byte[0]));
        assertThrows(ProtocolException.class, () -> group.arrived(new PeerMessage(0, 1, 7, new byte[0])));
        GroupState surviving = new GroupState(new RankIdentity(1, 11, "b"), 3).survivingLosses();
        for (int repeat = 0; repeat <= 1 << 16; repeat++) {
            surviving.arrived(new PeerMessage(0, 1, 7, new byte[repeat & 1]));
        }
        assertEquals(0, surviving.take(0, 7).length);
        assertNull(surviving.take(0, 7));
    }

    @Test
    void aSequenceThatIsNotTheNextIsRefused() throws Exception {
        assertThrows(ProtocolException.class, () -> group.contributed(barrier(2, 1)), "one too far");
        group.contributed(barrier(2, 0));
        assertThrows(ProtocolException.class, () -> group.contributed(barrier(2, 0)), "twice");
        group.contributed(barrier(2, 1)); // a fast rank may be one call ahead of a slow rank
        assertThrows(ProtocolException.class, () -> group.contributed(barrier(2, 2)), "ahead of everybody");
        assertThrows(ProtocolException.class, () -> group.contributed(barrier(2, -1)));
        assertThrows(ProtocolException.class,
                () -> group.contributed(new Contribution(0, 0, Call.BARRIER, new byte[MessageCodec.MAX_DATA + 1])));
        assertThrows(ProtocolException.class, () -> group.contributed(barrier(3, 0)));
        assertThrows(ProtocolException.class, () -> group.present(new RankIdentity(-1, 0, "")));
        assertThrows(ProtocolException.class, () -> group.departed(3));
    }
}
