package org.millrace.device;

import java.util.function.BooleanSupplier;

/** A task of a stream. The device's thread runs it. */
interface StreamTask {

    /** Does the work that is possible without waiting. Returns the amount of work; 0 if the task could do nothing. */
    int progress();

    /**
     * Called instead of {@link #progress} if an earlier task of the stream has failed. After this call, the task must
     * be done.
     */
    void skip(Throwable reason);

    boolean done();

    /**
     * A task that repeatedly calls a function until the function returns true. The task is also done when it is
     * skipped.
     */
    class Work implements StreamTask {

        private final BooleanSupplier function;
        private boolean done;

        Work(BooleanSupplier function) {
            this.function = function;
        }

        @Override
        public int progress() {
            done = function.getAsBoolean();
            return done ? 1 : 0;
        }

        @Override
        public void skip(Throwable reason) {
            done = true;
        }

        @Override
        public boolean done() {
            return done;
        }
    }
}
