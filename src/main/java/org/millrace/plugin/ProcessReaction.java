package org.millrace.plugin;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.millrace.config.DurationType;
import org.millrace.config.Settings;
import org.millrace.file.StaleFiles;
import org.millrace.foreign.CFunction;
import org.millrace.plugin.AsyncErrors.Reply;

/** Tells on standard error, and ends the process. */
final class ProcessReaction implements LossWatch.Reaction {

    /** Of a failure that a new start may put right (EX_TEMPFAIL in sysexits.h). */
    static final int STATUS = 75;

    /** How long a standard error that nobody reads, or a stream that a stuck thread holds, may keep the process. */
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    @Override
    public void tell(LostEnd lost, LossPolicy policy) {
        String consequence = policy.ends()
                ? "The process ends in " + DurationType.text(policy.grace())
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
        return LauncherRank.line(NativeEnvironment::get);
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
