package org.millrace.engine;

import java.time.Duration;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.device.stream.EmulatedKernel;
import org.millrace.device.stream.WorkLauncher;
import org.millrace.engine.bootstrap.RemoteFailure;

/** How a rank leaves its communicator: with the others, or by itself when its patience is over. */
record Departure(CommunicatorParts parts, WorkLauncher launcher) {

    private static final Logger LOG = LogManager.getLogger(Departure.class);
    private static final Duration LEAST = Duration.ofMillis(1);

    /** Gives everything up at once. */
    void abort() {
        parts.failure()
                .fail(new AbortedException("rank " + rank() + " aborted the communicator", rank(),
                        CommunicatorException.NOBODY, null, null));
        tearDown();
    }

    /**
     * Waits for the operations under way, and for the other ranks to leave.
     *
     * @throws DeadlineException behind everything else, if operations were given up
     */
    void leave() {
        Duration patience = parts.options().closeDeadline();
        long begun = System.nanoTime();
        DeadlineException givenUp =
                parts.failure().get() == null ? giveUpLate(launcher.drain(patience), patience) : null;
        Duration left = patience.minusNanos(System.nanoTime() - begun);
        // A rank that left at once would look to its slower neighbours like one that was lost.
        if (parts.failure().get() == null && !parts.control().leaveTogether(left.isPositive() ? left : LEAST)) {
            LOG.info("rank {} leaves alone", rank());
        }
        tearDown();
        if (givenUp != null) {
            throw givenUp;
        }
    }

    /** What has not completed in time is given up, here and on the other ranks. Null if all has. */
    private @Nullable DeadlineException giveUpLate(List<EmulatedKernel> late, Duration patience) {
        if (late.isEmpty()) {
            return null;
        }
        String first = late.getFirst().toString();
        String what = "rank " + rank() + " closes the communicator and gives up " + late.size()
                + (late.size() == 1 ? " operation that has" : " operations that have") + " not completed within "
                + patience.toMillis() + " ms (MILLRACE_CLOSE_DEADLINE), first of all "
                + RemoteFailure.withoutRank(rank(), first);
        parts.failure().fail(new AbortedException(what, rank(), CommunicatorException.NOBODY, first, null));
        return new DeadlineException(what, rank(), CommunicatorException.NOBODY, first, null);
    }

    private void tearDown() {
        if (launcher.drain()) {
            parts.tearDown();
        } else {
            parts.leaveOpen("a kernel did not leave the device");
        }
    }

    private int rank() {
        return parts.control().rank();
    }
}
