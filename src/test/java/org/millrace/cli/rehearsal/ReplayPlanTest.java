package org.millrace.cli.rehearsal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.millrace.MillraceException;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Group;
import org.millrace.rehearsal.RecordedRun;

class ReplayPlanTest {

    private static final RecordedRun.Process PROCESS = new RecordedRun.Process("here", 1, Optional.empty());

    private final List<Call> calls = new ArrayList<>();

    private void call(int rank, String kind, long sequence, long enqueued, long ended, int peer, long launch) {
        long number = calls.stream().filter(call -> call.group().rank() == rank).count();
        calls.add(new Call(new Group(PROCESS, 7, rank, 2), kind, number, enqueued, ended == 0 ? 0 : enqueued + 1, ended,
                64, 16, 7, sequence, peer, -1, launch));
    }

    private ReplayPlan plan(boolean truncated, boolean overlap) {
        calls.sort(Comparator.comparingLong(Call::enqueued));
        return ReplayPlan.of(new RecordedRun(List.of(PROCESS), List.of(), calls, 0, truncated, List.of(), 1),
                Optional.empty(), overlap);
    }

    private void bothReduce(long sequence, long enqueued, long ended) {
        call(0, "all_reduce", sequence, enqueued, ended, -1, sequence);
        call(1, "all_reduce", sequence, enqueued, ended, -1, sequence);
    }

    @Test
    void whatWasCalledAfterAnEndFollowsThatEndAgain() {
        bothReduce(0, 1000, 2000);
        bothReduce(1, 1200, 3000); // operation 0 had not completed when operation 1 was called
        bothReduce(2, 3500, 4000); // operation 1 had completed when operation 2 was called
        List<ReplayPlan.Launch> launches = plan(false, false).launches(1);
        assertEquals(List.of(0L, 200L, 500L), launches.stream().map(ReplayPlan.Launch::nanos).toList());
        assertEquals(List.of(false, false, true), launches.stream().map(ReplayPlan.Launch::afterEnd).toList());
        launches = plan(false, true).launches(1);
        assertEquals(List.of(0L, 200L, 2300L), launches.stream().map(ReplayPlan.Launch::nanos).toList());
        assertEquals(List.of(false, false, false), launches.stream().map(ReplayPlan.Launch::afterEnd).toList());
    }

    @Test
    void aKernelsOperationsAreAGroup() {
        for (int rank = 0; rank < 2; rank++) {
            for (long launch = 3; launch < 5; launch++) {
                call(rank, RecordedRun.SEND, -1, 1000 * launch, 0, 1 - rank, launch);
                call(rank, RecordedRun.RECEIVE, -1, 1000 * launch + 1, 0, 1 - rank, launch);
            }
        }
        assertEquals(List.of(2, 2), plan(false, false).launches(0).stream().map(each -> each.calls().size()).toList());
    }

    /**
     * A recording under libnccl does not contain kernels, so it does not show groups. A send may need a receive in the
     * same group. Therefore, all transfers between two collectives form a group.
     */
    @Test
    void whereKernelsAreNotKnownTransfersBetweenCollectivesAreAGroup() {
        for (int rank = 0; rank < 2; rank++) {
            call(rank, "all_reduce", 0, 1000, 0, -1, -1);
            call(rank, "all_reduce", 1, 1001, 0, -1, -1);
            call(rank, RecordedRun.SEND, -1, 2000, 0, 1 - rank, -1);
            call(rank, RecordedRun.RECEIVE, -1, 3001, 0, 1 - rank, -1);
            call(rank, "all_reduce", 2, 4000, 0, -1, -1);
        }
        assertEquals(List.of(1, 1, 2, 1),
                plan(false, false).launches(0).stream().map(each -> each.calls().size()).toList());
        assertEquals(1, plan(false, false).warmUp().size(), "one of a kind and size");
    }

    @Test
    void ranksBeginAndEndWithWhatAllHave() {
        for (long sequence = 5; sequence < 20; sequence++) {
            call(0, "all_reduce", sequence, 1000 * sequence, 0, -1, sequence);
            if (sequence >= 8) {
                call(1, "all_reduce", sequence + 1, 1000 * sequence, 0, -1, sequence);
            }
        }
        ReplayPlan plan = plan(true, false);
        for (int rank = 0; rank < 2; rank++) {
            assertEquals(9, plan.calls(rank).getFirst().sequence());
            assertEquals(19, plan.calls(rank).getLast().sequence());
        }
    }

    private String refusal(boolean truncated) {
        return assertThrows(MillraceException.class, () -> plan(truncated, false)).getMessage();
    }

    @Test
    void whatCannotBeDoneAgainIsRefusedWithWhatIsMissing() {
        call(0, RecordedRun.SEND, -1, 1000, 0, 1, 0);
        String alone = refusal(false);
        assertTrue(alone.contains("rank 1 was not recorded"), alone);
        call(1, RecordedRun.RECEIVE, -1, 1000, 0, 0, 0);
        assertTrue(refusal(true).contains("MILLRACE_RECORD_BYTES"));
        call(1, RecordedRun.RECEIVE, -1, 2000, 0, 0, 0);
        String unmet = refusal(false);
        assertTrue(unmet.contains("rank 0 sends 1 times less to rank 1"), unmet);
        calls.clear();
        String none = refusal(false);
        assertTrue(none.contains("no operations"), none);
    }
}
