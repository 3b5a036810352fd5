package org.millrace.trace;

import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;

/**
 * The reason why the ranks of a communicator wait.
 *
 * @param culprit   rank that the other ranks wait for; for a connection that makes no progress, its sending rank; null
 *                  if unknown
 * @param peer      rank at the other end of the connection; null if unknown, or if the verdict concerns no connection
 * @param operation awaited operation; null if no rank reports one
 * @param silence   silent link; null if none is silent
 * @param join      incomplete group with the ranks that have not joined, or connection that is not made; null in all
 *                  other cases
 * @param since     time of the last progress, by the host's clock
 * @param still     time without progress
 * @param members   numbers of the processes with the communicator's ranks
 */
public record Verdict(Cause cause, long hash, @Nullable TracedRank culprit, @Nullable TracedRank peer,
        @Nullable Link link, @Nullable Operation operation, String detail, @Nullable TracedSilence silence,
        @Nullable TracedJoin join, long since, Duration still, Set<Long> members) {

    public enum Cause {
        /** A rank has not enqueued the operation that the other ranks execute. */
        NOT_LAUNCHED,
        /** A rank has enqueued the operation. The operation's kernel waits for earlier work and has not begun. */
        NOT_BEGUN,
        GONE,
        /** The processes of all ranks have ended. The verdict names the first rank. */
        ENDED,
        STOPPED,
        /** No data arrives from another host any longer. */
        SILENT,
        CUT,
        /** Data that one rank has sent does not arrive at the other rank. */
        WIRE,
        NOT_CONSUMED,
        /** No trace of this host shows why an operation with ranks of other hosts does not end. */
        ELSEWHERE,
        /** Ranks run different operations, or operations of different sizes. */
        DISAGREEMENT,
        /** A rank's communicator has failed for another reason. */
        FAILED,
        /** A rank has not joined its group, and the other ranks wait in the join. */
        NOT_JOINED,
        /** A rank waits for a connection that is not made. */
        NOT_CONNECTED;

        public String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /**
     * Returns whether {@code other}, from another reading of the traces, has the same cause, subject and culprit as
     * this verdict.
     */
    boolean isSame(Verdict other) {
        return cause == other.cause && subject().equals(other.subject()) && rank() == other.rank() && (culprit == null
                ? other.culprit == null
                : other.culprit != null && culprit.process().identity().equals(other.culprit.process().identity()));
    }

    /** Returns the object without progress: a communicator, the silent link, a group, or a rank that connects. */
    Object subject() {
        return silence != null ? List.of(silence.local(), silence.remote())
                : join == null ? communicator()
                        : join.size() == 0 ? List.of(hash, join.rank(), members) : List.of(join.where(), join.size());
    }

    /** Returns an object that identifies the communicator: its hash, or its processes if the hash is unknown. */
    Object communicator() {
        return hash != 0 ? hash : members;
    }

    /** Returns the rank's number; -1 if unknown. */
    public int rank() {
        return culprit != null ? culprit.rank() : join != null ? join.rank() : -1;
    }

    public int peerRank() {
        return peer == null ? -1 : peer.rank();
    }

    /**
     * Returns whether any of the given processes has a rank of the communicator.
     */
    public boolean concerns(Collection<Long> pids) {
        return members.stream().anyMatch(pids::contains);
    }

    public String sentence() {
        boolean statesState = cause == Cause.GONE || cause == Cause.ENDED || cause == Cause.STOPPED;
        String subjectWords = culprit != null ? statesState ? culprit.wordsWithoutState() : culprit.words()
                : link != null ? link.peerText() : "an end of a connection";
        String operationWords = operation == null ? "" : ", " + words(operation);
        return switch (cause) {
            case NOT_LAUNCHED -> capital(subjectWords) + " has not launched what the others wait in: "
                    + (operation == null ? "an operation" : words(operation)) + detail;
            case NOT_BEGUN -> "The kernel of " + subjectWords + " has not begun" + operationWords + ": " + detail;
            case GONE -> capital(subjectWords) + " is gone" + operationWords + ": " + detail;
            case ENDED -> capital(subjectWords)
                    + (members.size() == 1 ? " has ended"
                            : " was the first to stop running, of " + members.size() + " processes that have all ended")
                    + operationWords + ": " + detail;
            case STOPPED -> capital(subjectWords) + stoppedWords() + operationWords + ": " + detail;
            case SILENT -> (silence != null && silence.isCut()
                    ? "The way from " + subjectWords + " to " + silence.remote() + " is cut"
                    : "The network between " + ends()) + operationWords + ": " + detail;
            case CUT -> "The connection from " + subjectWords + " to " + other() + " has failed" + operationWords + ": "
                    + detail;
            case WIRE ->
                "Bytes from " + subjectWords + " to " + other() + " do not arrive" + operationWords + ": " + detail;
            case NOT_CONSUMED ->
                "The kernel of " + subjectWords + " does not take what has arrived" + operationWords + ": " + detail;
            case ELSEWHERE ->
                capital(subjectWords) + " waits for ranks of other hosts" + operationWords + ": " + detail;
            case DISAGREEMENT -> capital(subjectWords) + " disagrees with "
                    + (operation == null || operation.peer() >= 0 ? other() : "the others") + " on what they run: "
                    + detail;
            case FAILED -> "The communicator of " + subjectWords + " has failed: " + detail;
            case NOT_JOINED, NOT_CONNECTED -> detail;
        } + (still.isZero() ? "" : ". Nothing has " + (silence == null ? "moved" : "come") + " for " + seconds(still));
    }

    /** Returns a text about the way in which the culprit was stopped, and about the way to let the culprit continue. */
    private String stoppedWords() {
        return switch (Objects.requireNonNull(culprit).state()) {
            case TRACED -> " is stopped by a debugger";
            case FROZEN -> " is frozen (its cgroup's cgroup.freeze, or docker pause, which docker unpause ends)";
            case PAUSED -> " lives, and no thread of it runs: it is stopped or frozen, in another container";
            default -> " is stopped (SIGCONT continues it)";
        };
    }

    static String seconds(Duration time) {
        return Math.round(time.toMillis() / 100.0) / 10.0 + " s";
    }

    /**
     * Returns the end of a sentence about the silent link, such as "host1 (10.0.0.1, eth0) and host2 (10.0.0.2) is
     * silent".
     */
    private String ends() {
        TracedSilence link = Objects.requireNonNull(silence);
        String here = link.isElsewhere() ? link.local()
                : Objects.requireNonNull(culprit).process().host() + " (" + link.local() + ")";
        return here + " and " + link.remote()
                + (link.state() == TracedState.OPEN ? " is silent" : " was silent until its connections were lost");
    }

    private String other() {
        return peer != null ? peer.words() : link == null ? "its peer" : link.peerText();
    }

    static String capital(String words) {
        return Character.toUpperCase(words.charAt(0)) + words.substring(1);
    }

    /** Returns an operation as text, such as "AllReduce #4933 (16777216 bytes)". */
    static String words(Operation operation) {
        String number = operation.peer() >= 0 ? " with rank " + operation.peer()
                : operation.sequence() >= 0 ? " #" + operation.sequence() : "";
        String size = operation.bytes() >= 0 ? operation.bytes() + " bytes" : operation.count() + " elements";
        return operation.name() + number + " (" + size + (operation.how().isEmpty() ? "" : ", " + operation.how())
                + ")";
    }

    /** Returns the verdict for programs, by the schema in {@code why-json.md}. Null stands for an unknown value. */
    public Map<String, @Nullable Object> json() {
        Map<String, @Nullable Object> json = new LinkedHashMap<>();
        json.put("verdict", cause.label());
        json.put("communicator", "0x" + Long.toHexString(hash));
        json.put("rank", known(rank()));
        json.put("pid", culprit == null ? null : culprit.process().identity().pid());
        json.put("host", culprit == null ? null : culprit.process().host());
        json.put("state", culprit == null ? null : culprit.state().label());
        json.put("peer", known(peerRank()));
        json.put("peer_pid", peer == null ? null : peer.process().identity().pid());
        json.put("wire", link == null ? null : link.network());
        json.put("channel", link == null ? null : known(link.channel()));
        json.put("step", link == null ? null : known(link.step()));
        json.put("direction", link == null || culprit == null ? null : culprit == link.from() ? "send" : "receive");
        json.put("collective", operation == null ? null : operation.name());
        json.put("sequence", operation == null ? null : known(operation.sequence()));
        json.put("size", operation == null ? null : known(operation.bytes()));
        json.put("local", silence == null ? null : silence.local());
        json.put("remote", silence != null ? silence.remote() : cause == Cause.NOT_JOINED ? join.where() : null);
        json.put("missing", cause == Cause.NOT_JOINED ? join.missing().stream().boxed().toList() : null);
        json.put("connection", cause == Cause.NOT_CONNECTED ? join.activity() : null);
        json.put("still_sec", still.toMillis() / 1000.0);
        json.put("sentence", sentence());
        return json;
    }

    private static @Nullable Long known(long number) {
        return number < 0 ? null : number;
    }
}
