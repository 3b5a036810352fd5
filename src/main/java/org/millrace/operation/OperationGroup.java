package org.millrace.operation;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The open group of a thread ({@code Millrace.group}), as seen by its communicators. A communicator that joins the
 * group collects its operations until the group ends.
 */
public final class OperationGroup {

    /** Part of a group: the operations of one communicator, or of several communicators of one library. */
    public interface Part {

        /**
         * Prepares the enqueued operations for their launch. All parts of a group are prepared before the first part is
         * launched.
         *
         * @param alone whether the group has no other part
         */
        void prepare(boolean alone);

        /**
         * Launches operations until the next launch would wait for work that this thread has not launched yet. Such a
         * wait could deadlock, because that work may belong to another part.
         *
         * @return whether all operations of this part are launched; if not, the group calls this method again after it
         *         has called the other parts
         */
        boolean launch();
    }

    private static final ThreadLocal<OperationGroup> OPEN = new ThreadLocal<>();
    private static final ThreadLocal<Boolean> RECORDED = ThreadLocal.withInitial(() -> false);
    private static final long WAIT_NANOS = 20_000;

    private final Map<Object, Part> parts = new LinkedHashMap<>();
    /** Reasons of failed launches. The key is the owner of the part. */
    private final Map<Object, Throwable> failures = new HashMap<>();
    private final List<Runnable> afterwards = new ArrayList<>();
    /** Memory on the heap that operations of the group use in place. */
    private final List<Used> used = new ArrayList<>();

    private record Used(MemorySegment memory, boolean written) {
    }

    private OperationGroup() {}

    /**
     * Adds an owner to the calling thread's open group.
     *
     * @param owner owner of the part; each owner has one part
     * @param part  function that creates the part when the owner joins the group for the first time
     * @return the owner's part; empty if no group is open
     */
    public static Optional<Part> join(Object owner, Supplier<? extends Part> part) {
        OperationGroup group = OPEN.get();
        return group == null ? Optional.empty() : Optional.of(group.parts.computeIfAbsent(owner, _ -> part.get()));
    }

    /** {@return whether the calling thread has an open group} */
    public static boolean isOpen() {
        return OPEN.get() != null;
    }

    /**
     * Runs a function. The operations that the function calls are not executed, but recorded for a {@code Plan}.
     *
     * @param operations the argument of {@code Communicator.plan}; runs on the calling thread
     */
    public static void record(Runnable operations) {
        boolean before = RECORDED.get();
        RECORDED.set(true);
        try {
            operations.run();
        } finally {
            RECORDED.set(before);
        }
    }

    /** Returns whether the operations that the calling thread calls are being recorded for a plan. */
    public static boolean isRecorded() {
        return RECORDED.get();
    }

    /**
     * Calls a function when the calling thread's enqueued operations are launched: immediately, or at the end of the
     * thread's open group.
     *
     * @param owner  owner of the part that the operations belong to
     * @param action function to call. Its argument is the reason why that part could not be launched; null if the part
     *               was launched. If several communicators share the part, the operations of all of them fail
     */
    public static void afterwards(Object owner, Consumer<@Nullable Throwable> action) {
        OperationGroup group = OPEN.get();
        if (group == null) {
            action.accept(null);
        } else {
            group.afterwards.add(() -> action.accept(group.failures.get(owner)));
        }
    }

    /**
     * Adds memory on the heap that an operation of the calling thread's open group uses in place. Returns false if an
     * earlier operation of the group also uses the memory, and at least one of the two operations writes to the memory.
     */
    public static boolean mayUse(MemorySegment memory, boolean written) {
        OperationGroup group = OPEN.get();
        return group == null || group.used.stream()
                .noneMatch(each -> (written || each.written) && each.memory.asOverlappingSlice(memory).isPresent())
                && group.used.add(new Used(memory, written));
    }

    /**
     * Runs a function whose operations form a group, and launches them.
     *
     * @param operations the argument of {@code Millrace.group}; runs on the calling thread
     */
    public static void run(Runnable operations) {
        Required.argument("group", "function", operations);
        if (isOpen()) {
            // A nested group launches nothing: the outermost group launches the operations of both.
            operations.run();
            return;
        }
        OperationGroup group = new OperationGroup();
        OPEN.set(group);
        List<Throwable> thrown = new ArrayList<>();
        try {
            attempt(operations, thrown);
            group.launch(thrown);
            OPEN.remove();
            group.afterwards.forEach(action -> attempt(action, thrown));
        } finally {
            OPEN.remove();
        }
        if (!thrown.isEmpty()) {
            Throwable first = thrown.getFirst();
            thrown.stream().filter(other -> other != first).forEach(first::addSuppressed);
            if (first instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) first;
        }
    }

    /**
     * Prepares and launches all parts. A part that fails does not prevent the launch of the other parts, because other
     * ranks depend on them.
     */
    private void launch(List<Throwable> thrown) {
        Map<Object, Part> left = new LinkedHashMap<>(parts);
        left.entrySet()
                .removeIf(each -> !attempt(each.getKey(), () -> each.getValue().prepare(parts.size() == 1), thrown));
        boolean interrupted = false;
        while (true) {
            left.entrySet().removeIf(each -> {
                boolean[] all = {false};
                return !attempt(each.getKey(), () -> all[0] = each.getValue().launch(), thrown) || all[0];
            });
            if (left.isEmpty()) {
                break;
            }
            // While the thread's interrupt status is set, each call of parkNanos returns immediately. The status is
            // therefore cleared here, and restored after the loop.
            interrupted |= Thread.interrupted();
            LockSupport.parkNanos(WAIT_NANOS);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean attempt(Object owner, Runnable action, List<Throwable> thrown) {
        boolean succeeded = attempt(action, thrown);
        if (!succeeded) {
            failures.put(owner, thrown.getLast());
        }
        return succeeded;
    }

    private static boolean attempt(Runnable action, List<Throwable> thrown) {
        try {
            action.run();
            return true;
        } catch (RuntimeException | Error failure) {
            thrown.add(failure);
            return false;
        }
    }
}
