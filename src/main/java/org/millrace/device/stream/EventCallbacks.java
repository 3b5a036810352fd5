package org.millrace.device.stream;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.BooleanSupplier;

/**
 * What is to be done when something on the device is complete, in the order in which it becomes so
 * ({@code eventCallbackQueue} of {@code ncclComm}). Guarded by whoever has it.
 */
final class EventCallbacks {

    private record Callback(BooleanSupplier reached, Runnable action) {
    }

    private final Queue<Callback> queue = new ArrayDeque<>();

    /** @param reached does not wait; once true it stays so */
    void add(BooleanSupplier reached, Runnable action) {
        queue.add(new Callback(reached, action));
    }

    /** Does what is due; returns whether anything was. */
    boolean poll() {
        boolean any = false;
        while (!queue.isEmpty() && queue.peek().reached.getAsBoolean()) {
            queue.remove().action.run();
            any = true;
        }
        return any;
    }

    /** Does all of it: everything on the device is complete. */
    void finish() {
        while (!queue.isEmpty()) {
            queue.remove().action.run();
        }
    }
}
