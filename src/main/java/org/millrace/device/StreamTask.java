package org.millrace.device;

import java.util.function.BooleanSupplier;

/** A task that a stream runs, on the device's thread. */
interface StreamTask {

    /** Does the work that is possible without waiting. Returns the amount of work, 0 if the task is waiting. */
    int progress();

    /** Called instead of a run because an earlier task on the stream failed. */
    void skip(Throwable reason);

    boolean done();

    /** A task that is done when a function returns true, or when it is skipped. */
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
