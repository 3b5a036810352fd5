package org.millrace.cli.gin;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.OptionalInt;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.cli.run.RankWorker;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.CurrentDevice;
import org.millrace.gin.GinServed;
import org.millrace.gpu.GpuGinRank;
import org.millrace.nccl.NcclDeviceCommunicator;

/** Carries out a plan as one rank on its GPU. */
public final class CudaGinRank implements RankWorker {

    /** Number of GIN signals: one for arrivals, one for barriers. */
    private static final int SIGNALS = 2;
    /** Maximum time that one kernel waits for other ranks. The run as a whole has its own deadline. */
    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    /** Maximum time for kernels that are enqueued together. Each of the kernels waits at most {@link #TIMEOUT}. */
    private static final Duration DEADLINE = TIMEOUT.multipliedBy(2);
    private static final int WARMUP_SHARE = 5;
    /**
     * Minimum number of warm-up rounds of the first line, if its puts are small. Without these rounds, the times of the
     * line would be up to 50 % longer, because the agents' code would not be compiled.
     */
    private static final int FIRST_WARMUP = 30_000;
    private static final long FIRST_WARMUP_BYTES = 64 << 10;
    /** Number of bytes behind the target's data that must stay unchanged. */
    private static final int MARGIN = 256;
    private static final byte UNTOUCHED = 0x5a;

    /** Name of the thread of NCCL's own proxy for GIN. */
    private static final String NCCL_THREAD = "NCCL GIN Progress";
    /** Prefix of the name of this JVM's thread that serves a device. */
    private static final String OUR_THREAD = "millrace-gin-";

    private final GinPlan.OnGpus plan;
    private final int rank;
    private final String rendezvous;
    private final Map<String, String> settings;
    private final Path image;
    private final boolean all;
    private long rounds;
    private long meetings;

    CudaGinRank(GinPlan.OnGpus plan, int rank, String rendezvous, Map<String, String> settings, Path image) {
        this.plan = plan;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        this.image = image;
        all = plan.all();
    }

    @Override
    public void run(Reporter reporter) {
        try (GpuGinRank member = GpuGinRank.join(rendezvous, rank, plan.ranks(), settings)) {
            try (CurrentDevice _ = member.device().makeCurrent()) {
                measure(member, reporter);
            } catch (Throwable thrown) {
                reporter.fail(thrown);
                // The failure is sent to the other ranks, so that they do not wait for this rank.
                member.fail(thrown);
                throw thrown;
            }
        }
    }

    /** Does nothing. The process ends next, and its kernels end with it. */
    @Override
    public void abort() {}

    /**
     * Measures all lines. Closes nothing after a failure: close() would wait for kernels that may never end, and the
     * process ends anyway.
     */
    private void measure(GpuGinRank member, Reporter reporter) {
        CudaStream stream = member.device().newStream();
        GinKernels kernels = new GinKernels(member.cuda(), member.device(), image, stream);
        long bytes = plan.largest() * (all ? plan.ranks() : 1) + MARGIN;
        GpuGinRank.GpuWindow source = member.window(bytes);
        GpuGinRank.GpuWindow target = member.window(bytes);
        NcclDeviceCommunicator device = member.device(
                new NcclDeviceCommunicator.Requirements(0, SIGNALS, 0, plan.contexts()), kernels.compiledWith());
        kernels.use(device, TIMEOUT);
        new Lines(member, kernels, stream, source, target, device.contexts(), kernels.pinned(member.device(), bytes))
                .run(reporter);
        reporter.tell(new GinEvent.Noted(rank, note(member.served(), System.getenv("NCCL_SET_THREAD_NAME"),
                ThreadNames.count(NCCL_THREAD), ThreadNames.count(OUR_THREAD))));
        kernels.close();
        stream.close();
    }

    /** Measures all lines of the table, after all resources are created. */
    private final class Lines {

        private final GpuGinRank member;
        private final GinKernels kernels;
        private final CudaStream stream;
        private final GpuGinRank.GpuWindow source;
        private final GpuGinRank.GpuWindow target;
        private final int contexts;
        private final MemorySegment host;

        Lines(GpuGinRank member, GinKernels kernels, CudaStream stream, GpuGinRank.GpuWindow source,
                GpuGinRank.GpuWindow target, int contexts, MemorySegment host) {
            this.member = member;
            this.kernels = kernels;
            this.stream = stream;
            this.source = source;
            this.target = target;
            this.contexts = contexts;
            this.host = host;
        }

        void run(Reporter reporter) {
            try (CudaEvent begin = CudaEvent.timing(member.device());
                    CudaEvent end = CudaEvent.timing(member.device())) {
                for (int index = 0; index < plan.cases().size(); index++) {
                    GinPlan.OnGpus.Case line = plan.cases().get(index);
                    prepare(line.bytes());
                    rounds(line.bytes(), warmup(index, line));
                    barrier();
                    begin.record(stream);
                    rounds(line.bytes(), line.iterations());
                    end.record(stream);
                    await();
                    double nanos = end.millisSince(begin) * 1e6 / line.iterations() / (all ? 1 : 2);
                    reporter.tell(new GinEvent.Measured(rank, index, takesPart() ? nanos : 0, wrong(line.bytes())));
                }
                // A peer's kernel may still put to this rank's windows. The windows are closed after this barrier.
                barrier();
                await();
            }
        }

        private static int warmup(int index, GinPlan.OnGpus.Case line) {
            int share = Math.max(1, line.iterations() / WARMUP_SHARE);
            return index == 0 && line.bytes() <= FIRST_WARMUP_BYTES ? Math.max(share, FIRST_WARMUP) : share;
        }

        /**
         * Writes the data for the peers. Fills the target with bytes that the puts must overwrite. Then enqueues a
         * barrier of all ranks on the device.
         */
        private void prepare(long bytes) {
            long parts = all ? plan.ranks() : 1;
            for (int to = 0; to < parts; to++) {
                for (long at = 0; at < bytes; at++) {
                    host.set(ValueLayout.JAVA_BYTE, to * bytes + at, content(rank, all ? to : 1 - rank, bytes, at));
                }
            }
            if (bytes > 0) {
                stream.copy(source.memory().slice(0, bytes * parts), host.asSlice(0, bytes * parts));
            }
            stream.fill(target.memory().segment(), UNTOUCHED);
            barrier();
        }

        private void barrier() {
            kernels.barrier(meetings);
            meetings++;
        }

        private void rounds(long bytes, int count) {
            if (all) {
                kernels.allToAll(contexts, target.window().address(), source.window().address(), bytes, rounds,
                        meetings, count);
                meetings += count;
            } else if (takesPart()) {
                kernels.pingPong(target.window().address(), source.window().address(), bytes, rounds, count);
            }
            rounds += count;
        }

        private boolean takesPart() {
            return all || rank < 2;
        }

        /** Waits until the stream's work is complete. Throws early if a kernel gave up or another rank failed. */
        private void await() {
            boolean ended = Waiting.until(() -> {
                kernels.throwIfLate();
                member.throwIfFailed();
                return stream.query();
            }, DEADLINE);
            if (!ended) {
                throw new MillraceException("rank " + rank + ": a kernel has not ended after " + DEADLINE.toSeconds()
                        + " s: its queue is full and no thread empties it, or what it flushes does not complete; "
                        + "NCCL_DEBUG=INFO says what NCCL does");
            }
            kernels.throwIfLate();
        }

        /** Returns the number of bytes of the target that differ from the expected content. */
        private long wrong(long bytes) {
            long parts = all ? plan.ranks() : 1;
            long used = takesPart() ? bytes * parts : 0;
            MemorySegment seen = host.asSlice(0, used + MARGIN);
            stream.copy(seen, target.memory().slice(0, used + MARGIN));
            stream.synchronize(DEADLINE);
            long wrong = 0;
            for (long at = 0; at < used + MARGIN; at++) {
                int from = all ? (int) (at / Math.max(1, bytes)) : 1 - rank;
                byte expected = at < used ? content(from, rank, bytes, at % bytes) : UNTOUCHED;
                wrong += seen.get(ValueLayout.JAVA_BYTE, at) == expected ? 0 : 1;
            }
            return wrong;
        }
    }

    private static byte content(int from, int to, long bytes, long at) {
        return (byte) (at * 31 + at / 251 + from * 7L + to * 13L + bytes % 127);
    }

    /**
     * Returns a note that shows whether NCCL or Millrace served the kernels. The threads of both are counted while the
     * contexts exist.
     */
    static String note(GinServed served, String setThreadName, OptionalInt nccl, OptionalInt ours) {
        return served + "; " + threads("1".equals(setThreadName), nccl, ours);
    }

    private static String threads(boolean named, OptionalInt nccl, OptionalInt ours) {
        if (!named) {
            return "NCCL's threads have no names without NCCL_SET_THREAD_NAME=1";
        }
        return nccl.isEmpty() || ours.isEmpty() ? "the names of threads cannot be read here"
                : "GIN progress threads of NCCL: " + nccl.getAsInt() + ", of Millrace: " + ours.getAsInt();
    }

    /**
     * Names of this process's threads, including native ones. Linux keeps the first 15 characters of a name. NCCL names
     * its threads only with {@code NCCL_SET_THREAD_NAME=1}.
     */
    public static final class ThreadNames {

        private static final Path TASKS = Path.of("/proc/self/task");
        private static final int LONGEST = 15;

        private ThreadNames() {}

        /**
         * Counts this process's threads whose names have a prefix.
         *
         * @param prefix the prefix; characters beyond the length that Linux keeps are ignored
         * @return number of threads with this prefix; empty if names cannot be read
         */
        public static OptionalInt count(String prefix) {
            String kept = prefix.substring(0, Math.min(prefix.length(), LONGEST));
            int count = 0;
            try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
                for (Path task : tasks) {
                    count += name(task).startsWith(kept) ? 1 : 0;
                }
                return OptionalInt.of(count);
            } catch (IOException | UncheckedIOException | DirectoryIteratorException unreadable) {
                return OptionalInt.empty();
            }
        }

        private static String name(Path task) {
            try {
                return Files.readString(task.resolve("comm"));
            } catch (IOException ended) {
                return ""; // the thread ended after it was listed
            }
        }
    }
}
