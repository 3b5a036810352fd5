package org.millrace.plugin.loss;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Settings;
import org.millrace.config.ValueTypes;
import org.millrace.file.StaleFiles;
import org.millrace.foreign.CFunction;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.PluginTrace;
import org.millrace.plugin.loss.AsyncErrors.Reply;

/**
 * Watches the communicators of this process that have lost a peer. Its thread runs only while such communicators exist.
 */
public final class LossWatch {

    private static final long PERIOD_NANOS = Duration.ofMillis(20).toNanos();
    /**
     * Time between two searches for libraries that call ncclCommGetAsyncError, in nanoseconds. The search is repeated,
     * because a program may load such a library at any time.
     */
    private static final long LOOK_FOR_ASKERS_NANOS = Duration.ofMillis(500).toNanos();

    /** Actions after a loss in a program that is not written in Java, and so receives no exceptions. */
    interface Reaction {
        /** Reports the loss of a peer. Called once for each peer. */
        void tell(LostEnd lost, LossPolicy policy);

        /** @param leave action that closes the connections before the process ends; may take some time */
        void end(Runnable leave);

        /** Makes {@code ncclCommGetAsyncError} return the loss to every caller from now on. */
        void answer();

        /**
         * Sets whether {@code ncclCommGetAsyncError} reports an error for the communicator with the given NCCL number.
         * Returns the program's reaction so far.
         */
        Reply lost(long communicator, boolean is);
    }

    private final LongSupplier nanoClock;
    /** Whether the program is written in Java and receives an exception for each loss. */
    private final BooleanSupplier hasExceptions;
    private final Reaction reaction;
    private final List<CommunicatorLosses> open = new CopyOnWriteArrayList<>();
    private volatile LossPolicy policy = new LossPolicy(true, Duration.ofSeconds(5), true);
    private @Nullable Thread thread;
    /** Time of the latest search for callers of ncclCommGetAsyncError, in nanoseconds. Used by the watching thread. */
    private long answered;

    public LossWatch() {
        this(System::nanoTime, new ProcessReaction(), ConnectionFailures::isListenedTo);
    }

    LossWatch(LongSupplier nanoClock, Reaction reaction, BooleanSupplier hasExceptions) {
        this.nanoClock = nanoClock;
        this.hasExceptions = hasExceptions;
        this.reaction = reaction;
    }

    public void use(LossPolicy wanted) {
        policy = wanted;
    }

    /**
     * Logs whether ncclCommGetAsyncError will report a loss to the program.
     *
     * @param library address at which the program's NCCL library is mapped
     */
    public void announce(long library) {
        AsyncErrors shim = AsyncErrors.current();
        if (shim == null || hasExceptions.getAsBoolean()) {
            return;
        }
        AsyncErrors.Askers askers = policy.asyncErrors() ? shim.askers(library)
                : new AsyncErrors.Askers(0, Settings.ASYNC_ERROR.name() + " switches it off");
        NcclLog.info(askers.count() > 0 ? "ncclCommGetAsyncError reports a lost peer: it is called by " + askers.names()
                : "ncclCommGetAsyncError does not report a lost peer: " + askers.names()
                        + ". The next enqueue does, and " + Settings.ON_LOSS.name() + " states what happens then");
    }

    /**
     * Creates the record of one communicator's lost connections.
     *
     * @param number NCCL's number of the communicator
     */
    public CommunicatorLosses communicator(long number) {
        return new CommunicatorLosses(this, number);
    }

    /**
     * Returns the description of a communicator's loss. The caller returns this description to the program as an error.
     *
     * @param number NCCL's number of the communicator
     * @return one line; null if the communicator has lost no peer
     */
    public @Nullable String deliver(long number) {
        for (CommunicatorLosses each : open) {
            String problem = each.problem(number);
            if (problem != null) {
                each.delivered(policy);
                // From now on the shim records the program's reaction, such as a call of ncclCommShrink.
                if (policy.asyncErrors()) {
                    reaction.answer();
                    reaction.lost(number, true);
                }
                return problem;
            }
        }
        return null;
    }

    long now() {
        return nanoClock.getAsLong();
    }

    /** Sets whether ncclCommGetAsyncError reports a lost peer for the communicator. Returns the program's reaction. */
    Reply lost(long communicator, boolean is) {
        return policy.asyncErrors() ? reaction.lost(communicator, is) : Reply.NOT_ASKED;
    }

    /** Starts to watch a communicator after its first lost connection. */
    synchronized void open(CommunicatorLosses losses) {
        if (hasExceptions.getAsBoolean()) {
            return;
        }
        if (!open.contains(losses)) {
            open.add(losses);
        }
        if (thread == null && reaction instanceof ProcessReaction) {
            thread = Thread.ofPlatform().daemon().name("millrace-losses").start(this::run);
        }
    }

    private void run() {
        while (look()) {
            LockSupport.parkNanos(PERIOD_NANOS);
        }
    }

    /** Checks all communicators once. Returns false if no communicator is left to watch; the thread then ends. */
    boolean look() {
        long now = now();
        if (policy.asyncErrors() && (answered == 0 || now - answered >= LOOK_FOR_ASKERS_NANOS)) {
            answered = now;
            reaction.answer();
        }
        for (CommunicatorLosses each : open) {
            CommunicatorLosses.Verdict verdict = each.look(policy);
            verdict.tell().forEach(lost -> reaction.tell(lost, policy));
            if (verdict.end()) {
                reaction.end(each::leave);
            }
        }
        synchronized (this) {
            open.removeIf(CommunicatorLosses::isEmpty);
            if (open.isEmpty()) {
                answered = 0;
                thread = null;
                return false;
            }
            return true;
        }
    }

    /** Reports losses on standard error, and ends the process if necessary. */
    static final class ProcessReaction implements LossWatch.Reaction {

        /** Exit status of the process after a failure that a restart may fix (EX_TEMPFAIL in sysexits.h). */
        static final int STATUS = 75;

        /**
         * Time limit of each step that this process makes before it ends. A limit is necessary, because a step can
         * block: standard error may have no reader, or a stuck thread may hold a C stream.
         */
        private static final Duration TIMEOUT = Duration.ofSeconds(1);

        @Override
        public void tell(LostEnd lost, LossPolicy policy) {
            String consequence = policy.ends()
                    ? "The process ends in " + ValueTypes.DurationType.text(policy.grace())
                            + " unless the program aborts or destroys the communicator before"
                            + (policy.asyncErrors() ? ", or is told by ncclCommGetAsyncError" : "") + " ("
                            + Settings.LOSS_GRACE.name() + "; " + Settings.ON_LOSS.name() + "=report does not end it)"
                    : "The process continues (" + Settings.ON_LOSS.name() + "=report)";
            line(self() + ": " + lost.line() + ". " + consequence);
        }

        /**
         * Ends the process immediately, without C's exit handlers. CUDA's exit handlers wait for kernels, and the
         * kernels wait forever for the lost peer. Before the exit, this process deletes its own and the lost peer's
         * files in shared memory, and flushes the program's C streams.
         */
        @Override
        public void end(Runnable leave) {
            line(self() + ": ends with status " + STATUS + ", as the communicator that lost a peer was not aborted");
            bounded(leave::run);
            bounded(StaleFiles::leave);
            bounded(() -> CFunction.named("fflush").call());
            CFunction.named("_exit").call(STATUS);
        }

        @Override
        public void answer() {
            AsyncErrors shim = AsyncErrors.current();
            if (shim != null) {
                shim.answer();
            }
        }

        @Override
        public Reply lost(long communicator, boolean is) {
            AsyncErrors shim = AsyncErrors.current();
            return shim == null ? Reply.NOT_ASKED : shim.lost(communicator, is);
        }

        private static String self() {
            return PluginTrace.LauncherRank.line(NativeEnvironment::get);
        }

        /** Writes a line with one call, so that lines of several processes do not mix. */
        @SuppressWarnings("resource") // the stream stays open: closing the stream would close standard error
        private static void line(String text) {
            byte[] bytes = (text.replaceAll("\\s*\\R\\s*", " | ") + "\n").getBytes(StandardCharsets.UTF_8);
            bounded(() -> new FileOutputStream(FileDescriptor.err).write(bytes));
        }

        private interface Step {
            void run() throws Throwable;
        }

        /** Runs a step on a separate thread, and waits for it no longer than {@link #TIMEOUT}. */
        private static void bounded(Step step) {
            Thread thread = Thread.ofPlatform().daemon().start(() -> {
                try {
                    step.run();
                } catch (Throwable failed) {
                    // The process ends next, so the failure of a step is not reported.
                }
            });
            try {
                thread.join(TIMEOUT);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
