package org.millrace.rehearsal;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.millrace.MillraceException;
import org.millrace.net.link.LinkShape;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun.Connection;
import org.millrace.rehearsal.RecordedRun.Step;

/**
 * Costs of frames in a recording. A frame passes through a network between two devices, and then through the kernel
 * that forwards the frame. The network and the kernel are each modeled as a server that works on one frame after
 * another. The server delivers a frame some time after the work on this frame. In the recording, frames that arrived
 * while the server was busy show the time of the work. All other frames show the time from arrival to delivery.
 *
 * @param kernel    server that models kernels. Its time begins when the device is notified of a received frame, and
 *                  ends when the proxy takes the kernel's response frame
 * @param wire      server that models networks. Its time begins when the proxy takes a frame, and ends when the peer's
 *                  device is notified. Time that a link of {@code MILLRACE_LINK} adds is excluded
 * @param slotBytes size of the longest frame in bytes
 * @param channels  number of channels of collectives
 * @param proxies   number of a rank's threads that serve connections
 * @param exchanges whether two ranks reduce short data by an exchange; true for the engine, false for NCCL
 * @param skews     delays of ranks behind the first rank at the beginning of operations, in nanoseconds; shortest first
 */
record Costs(Server kernel, Server wire, long slotBytes, int channels, int proxies, boolean exchanges, long[] skews) {

    /** Slot size of the emulated device, in bytes. Used unless the recording has longer frames. */
    private static final long USUAL_SLOT_BYTES = 128 << 10;
    /** Size of a frame's header in bytes, as a link of {@code MILLRACE_LINK} counts it. */
    private static final int HEADER_BYTES = 64;

    /** Time of a frame as a linear function of its size: nanoseconds for each frame, and for each byte. */
    record Line(double fixed, double perByte) {

        static final Line NONE = new Line(0, 0);

        double of(double bytes) {
            return fixed + perByte * bytes;
        }
    }

    /**
     * A server that frames wait for.
     *
     * @param work time that the server works on a frame
     * @param all  time from arrival to delivery of a frame that arrives while the server is free
     */
    record Server(Line work, Line all) {

        double work(double bytes) {
            return Math.min(work.of(bytes), all.of(bytes));
        }

        double after(double bytes) {
            return all.of(bytes) - work(bytes);
        }
    }

    /**
     * Observed times of frames at a server, by size. The times of frames that waited are separate from the times of
     * frames that found the server free.
     */
    private static final class Seen {

        private final Map<Long, List<Long>> waited = new TreeMap<>();
        private final Map<Long, List<Long>> free = new TreeMap<>();

        void add(long size, double came, double before, double went) {
            (before > came ? waited : free).computeIfAbsent(size, made -> new ArrayList<>())
                    .add((long) (went - Math.max(came, before)));
        }

        Server server() {
            Line all = line(free.isEmpty() ? waited : free);
            return new Server(waited.isEmpty() ? new Line(0, all.perByte) : line(waited), all);
        }
    }

    private record Way(long hash, int from, int to, int channel, int kind, String key) {

        static Way of(Connection one) {
            return new Way(one.hash(), one.sends() ? one.rank() : one.peer(), one.sends() ? one.peer() : one.rank(),
                    one.channel(), one.kind(), one.key());
        }
    }

    private record Frame(Way way, long end) {
    }

    static Costs of(RecordedRun run) {
        long longest = run.steps().stream().mapToLong(Step::size).max().orElse(0);
        return new Costs(kernels(run), wires(run), Math.max(longest, USUAL_SLOT_BYTES), run.channels(),
                Math.max(1, run.threads()), run.steps().stream().noneMatch(step -> step.connection().kind() < 0),
                skews(run));
    }

    /**
     * Returns the server that models the kernels. Within an operation, each sent frame is matched to the oldest
     * received frame that is not matched yet.
     */
    private static Server kernels(RecordedRun run) {
        record Place(long hash, int rank, int channel, int kind) {
        }
        record Moment(long time, long sent) {
        }
        Map<Place, List<Moment>> places = new HashMap<>();
        for (Step step : run.steps()) {
            Connection on = step.connection();
            places.computeIfAbsent(new Place(on.hash(), on.rank(), on.channel(), on.kind()), made -> new ArrayList<>())
                    .add(on.sends() ? new Moment(step.taken() - step.blocked(), step.size())
                            : new Moment(step.done(), -1));
        }
        Map<List<Long>, List<Long>> begins = new HashMap<>();
        for (Call call : run.calls()) {
            begins.computeIfAbsent(List.of(call.group().hash(), (long) call.group().rank()), made -> new ArrayList<>())
                    .add(call.started());
        }
        Seen seen = new Seen();
        places.forEach((place, moments) -> {
            List<Moment> all = new ArrayList<>(moments);
            begins.getOrDefault(List.of(place.hash, (long) place.rank), List.of())
                    .forEach(begin -> all.add(new Moment(begin, -2)));
            all.sort(Comparator.comparingLong(Moment::time));
            Deque<Long> came = new ArrayDeque<>();
            long before = 0;
            for (Moment each : all) {
                if (each.sent == -2) {
                    came.clear();
                } else if (each.sent == -1) {
                    came.add(each.time);
                } else {
                    if (!came.isEmpty()) {
                        seen.add(each.sent, came.remove(), before, each.time);
                    }
                    before = each.time;
                }
            }
        });
        return seen.server();
    }

    /** Returns the server that models the networks, without the times that the link of the recorded run added. */
    private static Server wires(RecordedRun run) {
        Map<Frame, Double> arrivals = new HashMap<>();
        Map<RecordedRun.Process, Double> lines = new HashMap<>();
        Map<RecordedRun.Process, LinkShape> links = new HashMap<>();
        run.processes().forEach(process -> links.put(process, link(process)));
        for (Step step : run.steps()) { // The steps are sorted by time.
            Connection on = step.connection();
            if (on.sends()) {
                LinkShape link = links.get(on.process());
                double free = Math.max(lines.getOrDefault(on.process(), 0.0), step.taken());
                free += link.bitsPerSecond() == 0 ? 0
                        : (step.size() + HEADER_BYTES) * Byte.SIZE * 1e9 / link.bitsPerSecond();
                lines.put(on.process(), free);
                arrivals.put(new Frame(Way.of(on), step.end()), free + link.delay().toNanos());
            }
        }
        Seen seen = new Seen();
        Map<Way, Long> before = new HashMap<>();
        for (Step step : run.steps()) {
            Way way = Way.of(step.connection());
            Double arrival = step.connection().sends() ? null : arrivals.get(new Frame(way, step.end()));
            if (arrival != null) {
                seen.add(step.size(), Math.min(arrival, step.done()), before.getOrDefault(way, 0L), step.done());
                before.put(way, step.done());
            }
        }
        return seen.server();
    }

    private static LinkShape link(RecordedRun.Process process) {
        String text = process.link().orElse(null);
        if (text != null && (text.startsWith("@") || text.contains(":"))) {
            throw new MillraceException("process " + process.pid() + " of " + process.host()
                    + " was recorded with MILLRACE_LINK=" + text
                    + ": a forecast cannot remove the effect of links of a file or of pairs of hosts from the"
                    + " recorded times; record it with one link for all, such as rate=10Gbit,delay=50us, or with none");
        }
        return text == null ? LinkShape.NONE : LinkShape.parse(text);
    }

    /**
     * Fits a line by least squares through the mean times of all sizes, weighted by the numbers of samples. Neither
     * coefficient is negative. The fit uses means, because an operation consists of many frames in sequence. For each
     * size, it excludes the slowest hundredth of the frames, because other causes delayed them.
     */
    static Line line(Map<Long, List<Long>> samples) {
        double weight = 0;
        double sumX = 0;
        double sumY = 0;
        double sumXX = 0;
        double sumXY = 0;
        for (Map.Entry<Long, List<Long>> each : samples.entrySet()) {
            long[] sorted = each.getValue().stream().mapToLong(Long::longValue).sorted().toArray();
            double x = each.getKey();
            double y = Arrays.stream(sorted).limit(sorted.length - sorted.length / 100).average().orElse(0);
            int count = sorted.length;
            weight += count;
            sumX += count * x;
            sumY += count * y;
            sumXX += count * x * x;
            sumXY += count * x * y;
        }
        if (weight == 0) {
            return Line.NONE;
        }
        double spread = weight * sumXX - sumX * sumX;
        double slope = spread <= 0 ? 0 : Math.max(0, (weight * sumXY - sumX * sumY) / spread);
        double fixed = (sumY - slope * sumX) / weight;
        return fixed >= 0 ? new Line(fixed, slope) : new Line(0, sumXX == 0 ? 0 : sumXY / sumXX);
    }

    /**
     * Returns the delays of ranks behind the first rank at the beginning of operations. Counts only delays that the
     * program caused. A rank that made its call before its previous operation ended has no such delay.
     */
    private static long[] skews(RecordedRun run) {
        Map<List<Long>, List<Long>> begins = new HashMap<>();
        run.byRank().forEach((hash, ranks) -> ranks.values().forEach(calls -> {
            long ended = 0;
            for (Call call : calls) { // The calls are sorted by time.
                if (!call.isTransfer() && call.started() > 0) {
                    begins.computeIfAbsent(List.of(hash, call.sequence()), key -> new ArrayList<>())
                            .add(call.enqueued() >= ended ? call.started() : -1);
                }
                ended = Math.max(ended, call.ended());
            }
        }));
        return begins.values().stream().filter(each -> each.size() > 1).flatMapToLong(each -> {
            long first = each.stream().mapToLong(Long::longValue).min().orElseThrow();
            return each.stream().mapToLong(begin -> first < 0 ? 0 : begin - first);
        }).sorted().toArray();
    }

    /**
     * {@return average time from the moment when a rank begins an operation until the last rank begins, in nanoseconds}
     *
     * @param ranks number of ranks of the operation
     */
    double stragglers(int ranks) {
        double mean = 0;
        double last = 0;
        double below = 0;
        // The loop computes, as a sum in `last`, the expected maximum of random delays, one delay for each rank.
        for (int i = 0; i < skews.length; i++) {
            double upTo = Math.pow((i + 1.0) / skews.length, ranks);
            last += skews[i] * (upTo - below);
            below = upTo;
            mean += (double) skews[i] / skews.length;
        }
        return last - mean;
    }
}
