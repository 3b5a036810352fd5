package org.millrace.trace;

/** Takes down every step and every operation of a process, where the trace keeps the last ones. */
public interface Recorder {

    /** A connection is made. */
    Steps connection(ConnectionIdentity identity);

    /** A communicator is made; what is not known yet is -1, or empty. */
    Operations communicator(long hash, int rank, int size, String name);

    /** Of one direction of a connection; called by one thread at a time. */
    interface Steps {

        /** This thread serves it from now on: it may take its time now, and not later. */
        void served();

        /** As {@link ConnectionTrace#taken}. */
        void taken(long end, long size, int protocol);

        /** As {@link ConnectionTrace#done}. */
        void done(long end);

        /** As {@link ConnectionTrace#blocked}, once a step. */
        void blocked();
    }

    /** Of one communicator; from any thread, under the communicator's lock. */
    interface Operations {

        /** What is known better than when it was made. */
        void describe(int rank, int size, int nodes, String name);

        /**
         * As {@link CommunicatorTrace#enqueued}.
         *
         * @param number its number here
         * @param time   as {@link System#nanoTime()} counts
         * @param launch the same for all operations of a kernel; -1 if not known
         */
        void enqueued(long number, long time, String name, long sequence, long bytes, long count, int type, int peer,
                int root, long launch);

        /** When its kernel began, and when it ended. */
        void ran(long number, long started, long ended);

        /** Has something looked at often, on a thread of the recorder's, until this is closed. */
        void watch(Runnable look);

        /** Looks once more, and never again. */
        void close();
    }
}
