package org.millrace.trace;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.Link.Sign;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.Verdict.Cause;

/**
 * Finds the reason why a communicator's ranks wait. If several problems exist, the verdict names the problem that
 * causes the others. A process that has ended or is stopped may cause a problem of a connection, and a connection may
 * cause a problem of a kernel. If several kernels do not take arrived data, the verdict names a kernel that could take
 * its data. A kernel without room to post its result is not named, because this kernel waits for the next rank.
 */
public final class Hang extends HangingGroup {

    private Hang(Links links, Duration quiet) {
        super(links, quiet);
    }

    /** Reads the traces of processes. */
    @FunctionalInterface
    public interface Reading {

        /** {@return all processes with a trace, in their current state} */
        List<TracedProcess> read() throws IOException;
    }

    /**
     * Returns verdicts on the processes of this host. The operating system provides the states of the processes. Files
     * are read one after the other while ranks continue, so one reading may combine different moments. A verdict of the
     * first reading is therefore reported only if a second reading leads to the same verdict. Such a verdict was true
     * at a moment between the two readings. The rank that waits in the first reading did not advance before the second
     * reading. The rank that is behind in the second reading was also behind in the first.
     *
     * @param quiet time without progress after which a connection counts as waiting
     */
    public static List<Verdict> verdicts(Reading reading, Duration quiet) throws IOException {
        List<Verdict> first = verdicts(reading.read(), quiet, ProcessState::of);
        return first.isEmpty() ? first
                : verdicts(reading.read(), quiet, ProcessState::of).stream()
                        .filter(second -> first.stream().anyMatch(second::isSame))
                        .toList();
    }

    /**
     * Returns the ranks of each open communicator, with the states of the ranks' processes. A communicator is open
     * until its program closes it.
     */
    public static List<List<TracedRank>> communicators(List<TracedProcess> processes) {
        return Links.of(processes, ProcessState::of).stream().map(Links::members).toList();
    }

    /** Returns a verdict for each communicator with a waiting rank. */
    static List<Verdict> verdicts(List<TracedProcess> processes, Duration quiet,
            Function<TracedProcess, ProcessState> states) {
        List<Verdict> verdicts = new ArrayList<>();
        for (Links communicator : Links.of(processes, states)) {
            Verdict verdict = new Hang(communicator, quiet).verdict();
            if (verdict != null) {
                verdicts.add(verdict);
            }
        }
        verdicts.addAll(JoiningGroup.connections(processes, states, quiet, verdicts));
        verdicts.addAll(JoiningGroup.verdicts(processes, states, quiet, verdicts));
        for (TracedProcess process : processes) {
            if (process.alive()) {
                verdicts.addAll(unreported(process, states.apply(process), verdicts, quiet));
            }
        }
        return verdicts;
    }

    /**
     * Returns a verdict for each silent link of a process, except links that verdicts about this process already name.
     * No communicator with a trace is known to wait because of the remaining links.
     */
    private static List<Verdict> unreported(TracedProcess process, ProcessState state, List<Verdict> told,
            Duration quiet) {
        TracedRank rank = new TracedRank(process, state, 0, process.rank(), null);
        Set<Long> self = Set.of(process.identity().pid());
        Set<Object> ends = new HashSet<>();
        return process.silences()
                .stream()
                .filter(link -> link.state() == TracedState.OPEN && Silence.counts(link, process.read(), quiet))
                .filter(link -> ends.add(List.of(link.local(), link.remote())))
                .map(link -> new Silence(rank, link).verdict(0, null, process.read(), self))
                .filter(verdict -> told.stream()
                        .noneMatch(other -> other.subject().equals(verdict.subject()) && other.concerns(self)))
                .toList();
    }

    /**
     * Returns the number of living processes that recently had a late heartbeat. A late heartbeat means that the
     * process had no core. No verdict names these processes, or ranks that wait for these processes.
     */
    public static long withoutCore(List<TracedProcess> processes, Duration quiet) {
        return processes.stream()
                .filter(process -> process.alive() && process.isBeating()
                        && process.read() - process.lastLate() < lateNanos(quiet))
                .count();
    }

    private @Nullable Verdict verdict() {
        Verdict verdict = gone();
        if (verdict != null) {
            return verdict;
        }
        List<Link> waiting =
                links.all().stream().filter(link -> link.sign() != Sign.NONE && stillness(link) >= 0).toList();
        boolean failed = links.members().stream().anyMatch(TracedRank::hasFailed);
        GinQueue queue = standingQueue();
        EngineHang engine = new EngineHang(links, quiet);
        NcclHang nccl = new NcclHang(links, quiet);
        boolean stalled = kernels.areReported() ? engine.isStalled() : nccl.waitsInOperations();
        if (waiting.isEmpty() && !failed && !stalled && queue == null) {
            Duration connecting = connecting();
            return connecting.compareTo(quiet) < 0 ? null : stopped(waiting, connecting);
        }
        boolean lost = failed || waiting.stream().anyMatch(link -> link.sign() == Sign.FAILED);
        Silence silence = Silence.longest(links.members(), lost, quiet);
        if (silence != null) {
            return silence.verdict(links.hash(), operation(silence.of()), now(), pids());
        }
        verdict = firstOf(() -> stopped(waiting, still(waiting)),
                () -> new Disagreement(links, quiet).disagreement(waiting), () -> failedConnection(waiting));
        if (failed) { // The kernels of a failed communicator have ended, so no kernel takes arrived data any longer.
            return verdict == null ? failedRank() : verdict;
        }
        if (verdict != null) {
            return verdict;
        }
        verdict =
                kernels.areReported() ? stalled ? engine.find(waiting) : null : hadCores() ? nccl.find(waiting) : null;
        return verdict == null && queue != null
                ? verdict(Cause.WIRE, queue.from(), queue.to(), null, null, queue.toString(),
                        Duration.ofNanos(now() - queue.queue().lastChange()))
                : verdict;
    }

    /** Returns the GIN queue that has made no progress for the longest time, although descriptors are in flight. */
    private @Nullable GinQueue standingQueue() {
        return !hadCores() ? null
                : links.gin()
                        .stream()
                        .filter(each -> each.underWay() != 0 && now() - each.queue().lastChange() >= quiet.toNanos())
                        .min(Comparator.comparingLong(each -> each.queue().lastChange()))
                        .orElse(null);
    }

    /** Returns a verdict about the first rank that failed. The verdict has the message that this rank has stored. */
    private @Nullable Verdict failedRank() {
        TracedRank first = links.members()
                .stream()
                .filter(TracedRank::hasFailed)
                .min(Comparator.comparingLong(member -> Objects.requireNonNull(member.communicator()).closed()))
                .orElseThrow();
        long when = Objects.requireNonNull(first.communicator()).closed();
        if (now() - when < quiet.toNanos()) {
            // The failure is recent, so another check may soon find a better cause.
            return null;
        }
        String words = first.process()
                .messages()
                .stream()
                .filter(message -> message.time() - when >= 0)
                .findFirst()
                .map(message -> message.text())
                .orElse("it has reported no reason");
        return verdict(Cause.FAILED, first, null, null, operation(first), words, Duration.ZERO);
    }

    private @Nullable Verdict gone() {
        TracedRank first = links.members()
                .stream()
                .filter(member -> member.state() == ProcessState.DEAD)
                .min(Comparator.comparingLong(member -> member.process().heartbeat()))
                .orElse(null);
        if (first == null) {
            return null;
        }
        Link link = linkOf(first, links.all());
        TracedRank peer = otherEnd(link, first);
        return links.members().stream().allMatch(member -> member.state() == ProcessState.DEAD)
                ? verdict(Cause.ENDED, first, peer, link, operation(first), lastMessage(first) + othersEnd(first),
                        Duration.ZERO)
                : verdict(Cause.GONE, first, peer, link, missedIn(first), lastMessage(first),
                        Duration.ofNanos(Math.max(0, now() - first.process().heartbeat())));
    }

    /**
     * Returns the operation in which other ranks wait for this rank, if the other ranks report it. Otherwise returns
     * the operation in this rank's own trace.
     */
    private @Nullable Operation missedIn(TracedRank member) {
        Operation waited = kernels.areReported() ? kernels.waitedIn(member) : null;
        return waited == null ? operation(member) : waited;
    }

    private static String lastMessage(TracedRank dead) {
        return dead.process()
                .messages()
                .reversed()
                .stream()
                .map(TracedProcess.Message::text)
                .filter(text -> !StallWatch.isReport(text))
                .findFirst()
                .map(text -> "its last message: " + text)
                .orElse("it left no message");
    }

    private String othersEnd(TracedRank first) {
        long begin = first.process().heartbeat();
        TracedRank last = links.members()
                .stream()
                .max(Comparator.comparingLong(member -> member.process().heartbeat()))
                .orElse(first);
        String ago = Verdict.seconds(Duration.ofNanos(Math.max(0, last.process().read() - begin))) + " ago";
        return last.process() == first.process() ? "; " + ago
                : "; the last was " + last.shortly() + ", "
                        + Verdict.seconds(Duration.ofNanos(last.process().heartbeat() - begin)) + " after it (" + ago
                        + ")";
    }

    /** Returns the longest wait of a rank for a pending connection of the communicator. */
    private Duration connecting() {
        return Duration.ofNanos(links.members()
                .stream()
                .flatMap(member -> JoiningGroup.connecting(member.process()))
                .filter(each -> each.hash() == links.hash())
                .mapToLong(each -> now() - each.since())
                .max()
                .orElse(0));
    }

    private @Nullable Verdict stopped(List<Link> waiting, Duration still) {
        for (TracedRank member : links.members()) {
            if (member.state().isStopped()) {
                Link link = linkOf(member, waiting);
                TracedRank peer = otherEnd(link, member);
                return verdict(Cause.STOPPED, member, peer, link, missedIn(member),
                        peer == null ? "the others wait for it" : peer.shortly() + " waits for it", still);
            }
        }
        return null;
    }

    private @Nullable Verdict failedConnection(List<Link> waiting) {
        Link first = waiting.stream()
                .filter(link -> link.sign() == Sign.FAILED)
                .min(Comparator.comparingLong(Hang::failedAt))
                .orElse(null);
        if (first == null) {
            return null;
        }
        TracedConnection end = first.sender() != null && first.sender().state() == TracedState.FAILED ? first.sender()
                : Objects.requireNonNull(first.receiver());
        return verdict(Cause.CUT, first.from(), first.to(), first, operation(first.from()),
                end.identity().name() + ", after " + end.frames() + " frames and step " + end.done(), still(waiting));
    }

    private static long failedAt(Link link) {
        return Math.min(failedAt(link.sender()), failedAt(link.receiver()));
    }

    private static long failedAt(@Nullable TracedConnection end) {
        return end == null || end.state() != TracedState.FAILED ? Long.MAX_VALUE : end.closed();
    }

    /** A silent link, and a rank with connections over this link. */
    private record Silence(TracedRank of, TracedSilence link) {

        /**
         * Returns the link that has been silent longest, among the links of the given ranks of this host. If {@code
         * lost} is true, the search includes links that were silent until their connections failed.
         */
        static @Nullable Silence longest(List<TracedRank> ranks, boolean lost, Duration quiet) {
            return ranks.stream()
                    .flatMap(rank -> rank.process().silences().stream().map(link -> new Silence(rank, link)))
                    .filter(each -> counts(each.link, each.of.process().read(), quiet))
                    .filter(each -> each.link.state() == TracedState.OPEN
                            || lost && each.link.state() == TracedState.FAILED)
                    .min(Comparator.comparingLong(each -> each.link.since()))
                    .orElse(null);
        }

        /**
         * Returns whether the silence of a link can be the cause of a wait. If connections over the link were cut, the
         * silence counts only after {@code quiet}, because the connections may soon be restored.
         */
        static boolean counts(TracedSilence link, long now, Duration quiet) {
            return !link.isCut() || now - link.since() >= quiet.toNanos();
        }

        /**
         * Returns the verdict about this silent link. {@code hash} is the hash of the stopped communicator; 0 if the
         * silence stops none.
         */
        Verdict verdict(long hash, @Nullable Operation operation, long now, Set<Long> members) {
            if (link.isElsewhere()) {
                return new Verdict(Cause.SILENT, hash, of, null, null, operation,
                        link.peer() + " reports it to " + of.words() + ", which may wait for them", link, null,
                        link.since(), Duration.ZERO, members);
            }
            boolean open = link.state() == TracedState.OPEN;
            return new Verdict(Cause.SILENT, hash, of, null, null, operation,
                    link.isCut() ? "its connection " + link.peer()
                            : "nothing comes back on the connection of " + of.words() + " with " + link.peer()
                                    + ", the first of " + link.streams() + " over it",
                    link, null, link.since(), Duration.ofNanos((open ? now : link.closed()) - link.since()), members);
        }
    }
}
