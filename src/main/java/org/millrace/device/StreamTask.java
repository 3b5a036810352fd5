package org.millrace.device;

import java.util.function.BooleanSupplier;

/** Something that a stream runs, on the device's thread. */
interface StreamTask {

    /** Does what can be done without waiting; returns how much, 0 if it waits for somebody. */
    int progress();

    /** The task will not be run, because one before it on its stream failed. */
    void skip(Throwable reason);

    boolean done();

    /** A task that is done when a function says so, or as soon as it need not be run. */
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
