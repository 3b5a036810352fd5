package org.millrace.engine;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.bootstrap.RankLetter;
import org.millrace.bootstrap.RemoteFailure;
import org.millrace.config.ValueTypes;
import org.millrace.device.EmulatedDevice;
import org.millrace.trace.ProcessTrace;

/**
 * Records which operations of a communicator the ranks have started. While a kernel makes no progress, this rank asks
 * the other ranks for their state. If another rank has not started the operation, the kernel waits for that rank, up to
 * {@code MILLRACE_LATE_DEADLINE}. If all ranks have started the operation, or if all ranks wait in different
 * operations, the kernel waits up to {@code MILLRACE_STALL_DEADLINE}. The two deadlines are independent. Ranks send
 * nothing while operations make progress.
 */
final class Attendance implements EmulatedDevice.KernelWatch {

    /** The operations of a kernel that need other ranks. */
    interface Meeting {

        void attend(Sink sink);

        /** Receives the ranks and operations that a kernel needs. */
        interface Sink {

            /** Requires all ranks to have reached the collective with the given number. */
            void collective(long number);

            /**
             * Requires a peer to have reached its half of a transfer between this rank and the peer.
             *
             * @param sends  whether this rank's half is the send
             * @param number ordinal of the transfer; each peer and each direction has a separate count
             */
            void transfer(int peer, boolean sends, long number);
        }
    }

    /** State that a rank has reported about itself. */
    private record Answer(long collectives, long sends, long receives, boolean stands, String doing) {
    }

    // Tags of the messages between ranks: the question about another rank's state, and the answer to this question. The
    // messages that set up connections have tags with other high bytes.
    private static final long QUESTION = 0x7100_0000_0000_0000L;
    private static final long ANSWER = 0x7200_0000_0000_0000L;
    private static final long LONGEST_PAUSE_NANOS = 100_000_000;
    private static final int MAX_TEXT = 500;

    private final ControlPlane control;
    private final LaunchCounts launched;
    private final long stallNanos;
    private final long lateNanos;
    /** The shorter of the stall deadline and the late deadline, in nanoseconds. */
    private final long firstNanos;
    private final long pauseNanos;
    private final boolean recorded = ProcessTrace.isRecorded();
    /** Kernel that is stalled; null while all kernels make progress. Written by the device's thread. */
    private volatile @Nullable Object standing;

    // Accessed by the device's thread only.
    private final @Nullable Answer[] answers;
    private final boolean[] asked;
    private long judged;
    private long nextLook;
    private long thereSince;
    private long allStandSince;
    private boolean warned;

    Attendance(ControlPlane control, LaunchCounts launched, Duration stall, Duration late) {
        this.control = control;
        this.launched = launched;
        stallNanos = stall.toNanos();
        lateNanos = late.toNanos();
        firstNanos = Math.min(stallNanos, lateNanos);
        pauseNanos = Math.min(LONGEST_PAUSE_NANOS, firstNanos / 16);
        answers = new Answer[control.size()];
        asked = new boolean[control.size()];
    }

    // Methods of the connector service's thread.

    /** Answers the questions of other ranks, and reads the operation counts that closing ranks have sent. */
    void answer() {
        launched.watch();
        for (int peer = 0; peer < control.size(); peer++) {
            if (peer != control.rank() && control.receive(peer, QUESTION) != null) {
                Object kernel = standing;
                String text = kernel == null ? "" : kernel.toString();
                byte[] doing = text.substring(0, Math.min(MAX_TEXT, text.length())).getBytes(StandardCharsets.UTF_8);
                ByteBuffer answer = ByteBuffer.allocate(3 * Long.BYTES + 2 * Integer.BYTES + doing.length);
                answer.putLong(launched.collectives()).putLong(launched.sends(peer)).putLong(launched.receives(peer));
                answer.putInt(kernel == null ? 0 : 1).putInt(doing.length).put(doing);
                control.send(peer, ANSWER, answer.array());
            }
        }
    }

    // Methods of the device's thread.

    @Override
    public long stallNanos() {
        return firstNanos / 2;
    }

    @Override
    public boolean timesKernels() {
        return recorded;
    }

    @Override
    public void moved() {
        standing = null;
    }

    @Override
    public @Nullable MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor) {
        long now = System.nanoTime();
        if (judged != stillSince) {
            judged = stillSince;
            nextLook = now;
            thereSince = 0;
            allStandSince = 0;
            warned = false;
            Arrays.fill(answers, null);
        }
        standing = kernel;
        if (now - nextLook < 0) {
            return null;
        }
        nextLook = now + pauseNanos;
        ask();
        return verdict(kernel, missing(kernel), now, now - stillSince, waitingFor);
    }

    private void ask() {
        for (int peer = 0; peer < answers.length; peer++) {
            if (peer != control.rank()) {
                byte[] message = control.receive(peer, ANSWER);
                if (message != null) {
                    answers[peer] = read(new RankLetter(peer, "its progress", message));
                }
                if (message != null || !asked[peer]) {
                    asked[peer] = true;
                    control.send(peer, QUESTION, new byte[0]);
                }
            }
        }
    }

    private static Answer read(RankLetter letter) {
        Answer answer = new Answer(letter.longNumber(), letter.longNumber(), letter.longNumber(),
                letter.number("whether it is stalled", 0, 1) == 1, letter.text("what it does"));
        letter.end();
        return answer;
    }

    private BitSet missing(Object kernel) {
        BitSet missing = new BitSet();
        if (kernel instanceof Meeting meeting) {
            meeting.attend(new Meeting.Sink() {

                @Override
                public void collective(long number) {
                    for (int peer = 0; peer < answers.length; peer++) {
                        require(peer, peer == control.rank()
                                || answers[peer] != null && answers[peer].collectives - number > 0);
                    }
                }

                @Override
                public void transfer(int peer, boolean isSend, long number) {
                    require(peer, peer == control.rank() || answers[peer] != null
                            && (isSend ? answers[peer].receives : answers[peer].sends) - number > 0);
                }

                private void require(int peer, boolean there) {
                    if (!there) {
                        missing.set(peer);
                    }
                }
            });
        }
        return missing;
    }

    private @Nullable MillraceException verdict(Object kernel, BitSet missing, long now, long stood,
            Supplier<String> waitingFor) {
        thereSince = !missing.isEmpty() ? 0 : thereSince == 0 ? now : thereSince;
        allStandSince = !allStand() ? 0 : allStandSince == 0 ? now : allStandSince;
        if (stood < firstNanos) {
            return null;
        }
        String operation = RemoteFailure.withoutRank(control.rank(), kernel.toString());
        int first = missing.isEmpty() ? CommunicatorException.NO_RANK : missing.nextSetBit(0);
        if (missing.isEmpty()) {
            return stood < stallNanos || now - thereSince < stallNanos / 2 ? null
                    : new DeadlineException(kernel + ": nothing moved for " + stallNanos / 1_000_000
                            + " ms (MILLRACE_STALL_DEADLINE): " + waitingFor.get(), control.rank(), first, operation,
                            null);
        }
        boolean isLate = stood > lateNanos;
        boolean isStalled = stood >= stallNanos;
        long stoodTogether = allStandSince == 0 ? 0 : now - allStandSince;
        if (isLate && stoodTogether > firstNanos / 4 || isStalled && stoodTogether > stallNanos / 2) {
            return new MismatchException(kernel + ": the ranks wait for each other: "
                    + missing.stream()
                            .mapToObj(peer -> "rank " + peer + " has not reached it and is stalled in "
                                    + RemoteFailure.withoutRank(peer, answers[peer].doing))
                            .collect(Collectors.joining("; "))
                    + ". All ranks must call the same operations in the same order. State of rank " + control.rank()
                    + ": " + waitingFor.get(), control.rank(), first, operation, null);
        }
        String absent = missing.stream().mapToObj(this::absence).collect(Collectors.joining(", "));
        if (isLate) {
            return new DeadlineException(kernel + ": " + absent + " within " + lateNanos / 1_000_000
                    + " ms (MILLRACE_LATE_DEADLINE): " + waitingFor.get(), control.rank(), first, operation, null);
        }
        if (isStalled && !warned) {
            warned = true;
            String what = kernel + ": " + absent + " for " + stood / 1_000_000 + " ms; the limit is "
                    + ValueTypes.DurationType.text(Duration.ofNanos(lateNanos)) + " (MILLRACE_LATE_DEADLINE)";
            control.tell(listener -> listener.stalled(what));
        }
        return null;
    }

    private String absence(int peer) {
        return "rank " + peer + (answers[peer] == null ? " has not answered" : " has not reached it");
    }

    /**
     * Returns whether all ranks are stalled. If so, no further call of any rank's program can help, because the kernels
     * of a communicator run in order.
     */
    private boolean allStand() {
        for (int peer = 0; peer < answers.length; peer++) {
            if (peer != control.rank() && (answers[peer] == null || !answers[peer].stands)) {
                return false;
            }
        }
        return true;
    }
}
