package org.millrace;

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
 * The group that a thread has open ({@link Millrace#group}), as the communicators in it see it: for those who implement
 * {@link Communicator}, not for programs. One that joins keeps what is enqueued on it until the group ends.
 */
public final class OperationGroup {

    /** What a communicator, or several of one library, launch when the group ends. */
    public interface Part {

        /**
         * Makes what was enqueued ready to be launched. All parts do so before the first one launches.
         *
         * @param alone whether there is no other part
         */
        void prepare(boolean alone);

        /**
         * Launches as much as can be launched without waiting for what this thread has not launched yet: another part's
         * work may be what has to be waited for.
         *
         * @return whether that was all; if not, it is called again when the other parts have had their turn
         */
        boolean launch();
    }

    private static final ThreadLocal<OperationGroup> OPEN = new ThreadLocal<>();
    private static final ThreadLocal<Boolean> RECORDED = ThreadLocal.withInitial(() -> false);
    private static final long WAIT_NANOS = 20_000;

    private final Map<Object, Part> parts = new LinkedHashMap<>();
    /** What kept a part from being launched, by owner. */
    private final Map<Object, Throwable> failures = new HashMap<>();
    private final List<Runnable> afterwards = new ArrayList<>();

    private OperationGroup() {}

    /**
     * Joins the group that the calling thread has open.
     *
     * @param owner whose part it is: there is one for each
     * @param part  makes it, when the owner joins for the first time
     * @return the owner's part; empty if no group is open
     */
    public static Optional<Part> join(Object owner, Supplier<? extends Part> part) {
        OperationGroup group = OPEN.get();
        return group == null ? Optional.empty() : Optional.of(group.parts.computeIfAbsent(owner, _ -> part.get()));
    }

    /** {@return whether the calling thread has a group open} */
    public static boolean isOpen() {
        return OPEN.get() != null;
    }

    /**
     * Calls operations of the calling thread that are recorded, as for a {@link Plan}, and do not run now.
     *
     * @param operations what {@link Communicator#plan} is given
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

    /** Whether the calling thread's operations are recorded. */
    static boolean isRecorded() {
        return RECORDED.get();
    }

    /**
     * Calls a function when what the calling thread has enqueued is launched: at once, or when its group ends.
     *
     * @param owner  whose part what was enqueued belongs to
     * @param action given what kept that part from being launched; null if it is. A part of several owners fails all
     *               that they enqueue
     */
    static void afterwards(Object owner, Consumer<@Nullable Throwable> action) {
        OperationGroup group = OPEN.get();
        if (group == null) {
            action.accept(null);
        } else {
            group.afterwards.add(() -> action.accept(group.failures.get(owner)));
        }
    }

    static void run(Runnable operations) {
        if (isOpen()) {
            operations.run(); // the outermost group launches
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

    /** A part that fails does not keep the others from launching, which other ranks count on. */
    private void launch(List<Throwable> thrown) {
        Map<Object, Part> left = new LinkedHashMap<>(parts);
        left.entrySet()
                .removeIf(each -> !attempt(each.getKey(), () -> each.getValue().prepare(parts.size() == 1), thrown));
        while (true) {
            left.entrySet().removeIf(each -> {
                boolean[] all = {false};
                return !attempt(each.getKey(), () -> all[0] = each.getValue().launch(), thrown) || all[0];
            });
            if (left.isEmpty()) {
                return;
            }
            LockSupport.parkNanos(WAIT_NANOS);
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
