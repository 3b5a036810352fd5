package org.millrace.plugin;

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
import org.millrace.plugin.AsyncErrors.Reply;
import org.millrace.plugin.PluginConfiguration.LossPolicy;

/** Watches the communicators of this process that have lost a peer, on a thread that runs only while there are some. */
final class LossWatch {

    private static final long PERIOD_NANOS = Duration.ofMillis(20).toNanos();
    /** A program may load what asks for errors at any time. */
    private static final long LOOK_FOR_ASKERS_NANOS = Duration.ofMillis(500).toNanos();

    /** What is done for a program that gets no exceptions. */
    interface Reaction {
        /** Says once for each peer that it is lost. */
        void tell(LostEnd lost, LossPolicy policy);

        /**
         * Ends the process.
         *
         * @param leave ends connections before; may take its time
         */
        void end(Runnable leave);

        /** From now on {@code ncclCommGetAsyncError} is answered, for every caller. */
        void answer();

        /** What it says of a communicator; returns what the program has done since. */
        Reply lost(long communicator, boolean is);
    }

    private final LongSupplier nanoClock;
    /** Whether the program is Java, and gets an exception for each loss. */
    private final BooleanSupplier hasExceptions;
    private final Reaction reaction;
    private final List<CommunicatorLosses> open = new CopyOnWriteArrayList<>();
    private volatile LossPolicy policy = new LossPolicy(true, Duration.ofSeconds(5), true);
    private @Nullable Thread thread;
    /** When it was looked last for who asks; of the thread that looks. */
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
     * Says whether a program that asks NCCL is told.
     *
     * @param library where that NCCL begins in memory
     */
    public void announce(long library) {
        AsyncErrors shim = AsyncErrors.current();
        if (shim == null || hasExceptions.getAsBoolean()) {
            return;
        }
        AsyncErrors.Askers askers = policy.asyncErrors() ? shim.askers(library)
                : new AsyncErrors.Askers(0, Settings.ASYNC_ERROR.name() + " switches it off");
        NcclLog.info(
                askers.count() > 0 ? "ncclCommGetAsyncError tells of a lost peer: it is called by " + askers.names()
                        : "ncclCommGetAsyncError does not tell of a lost peer: " + askers.names()
                                + ". The next enqueue does, and " + Settings.ON_LOSS.name() + " says what comes then");
    }

    /**
     * For one communicator's connections.
     *
     * @param number what NCCL calls the communicator
     */
    public CommunicatorLosses communicator(long number) {
        return new CommunicatorLosses(this, number);
    }

    /**
     * What a communicator has lost: the caller gives it to the program as an error.
     *
     * @param number what NCCL calls the communicator
     * @return a line; null if the communicator is whole
     */
    public @Nullable String deliver(long number) {
        for (CommunicatorLosses each : open) {
            String problem = each.problem(number);
            if (problem != null) {
                each.delivered(policy);
                if (policy.asyncErrors()) { // what the program does next, such as to shrink, is to be seen
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

    /** Has NCCL's answer say whether a communicator has lost a peer that it waits for. */
    Reply lost(long communicator, boolean is) {
        return policy.asyncErrors() ? reaction.lost(communicator, is) : Reply.NOT_ASKED;
    }

    /** A communicator has lost its first connection. */
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

    /** One look at all; false if there is nothing left to watch, and the thread ends. */
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

    /** Tells on standard error, and ends the process. */
    static final class ProcessReaction implements LossWatch.Reaction {

        /** Of a failure that a new start may put right (EX_TEMPFAIL in sysexits.h). */
        static final int STATUS = 75;

        /** How long a standard error that nobody reads, or a stream that a stuck thread holds, may keep the process. */
        private static final Duration PATIENCE = Duration.ofSeconds(1);

        @Override
        public void tell(LostEnd lost, LossPolicy policy) {
            String consequence = policy.ends()
                    ? "The process ends in " + ValueTypes.DurationType.text(policy.grace())
                            + " unless the program aborts or destroys the communicator before"
                            + (policy.asyncErrors() ? ", or is told by ncclCommGetAsyncError" : "") + " ("
                            + Settings.LOSS_GRACE.name() + "; " + Settings.ON_LOSS.name() + "=report leaves it be)"
                    : "The process goes on (" + Settings.ON_LOSS.name() + "=report)";
            line(self() + ": " + lost.line() + ". " + consequence);
        }

        /**
         * At once, without C's exit handlers: CUDA's wait for kernels, and these wait for good. What the program's C
         * streams hold is written before; files in shared memory are deleted, those of the lost peer too.
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

        /** In one write, so that lines of several processes do not mix. */
        @SuppressWarnings("resource") // standard error stays open
        private static void line(String text) {
            byte[] bytes = (text.replaceAll("\\s*\\R\\s*", " | ") + "\n").getBytes(StandardCharsets.UTF_8);
            bounded(() -> new FileOutputStream(FileDescriptor.err).write(bytes));
        }

        private interface Step {
            void run() throws Throwable;
        }

        /** On a thread of its own, which is not waited for longer than the patience. */
        private static void bounded(Step step) {
            Thread thread = Thread.ofPlatform().daemon().start(() -> {
                try {
                    step.run();
                } catch (Throwable failed) {
                    // There is nobody left to tell.
                }
            });
            try {
                thread.join(PATIENCE);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
