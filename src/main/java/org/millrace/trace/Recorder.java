package org.millrace.trace;

/** Records every step and every operation of a process, whereas the trace keeps only the last steps and operations. */
public interface Recorder {

    /** Called when a connection is created. */
    Steps connection(ConnectionIdentity identity);

    /** Called when a communicator is created. Unknown values are -1, or empty. */
    Operations communicator(long hash, int rank, int size, String name);

    /** Records one direction of a connection. Called by one thread at a time. */
    interface Steps {

        /**
         * Called when the calling thread begins to serve the connection. This method may take time; all other methods
         * must return at once.
         */
        void served();

        /** See {@link ConnectionTrace#taken}. */
        void taken(long end, long size, int protocol);

        /** See {@link ConnectionTrace#done}. */
        void done(long end);

        /** See {@link ConnectionTrace#blocked}. Called once per step. */
        void blocked();
    }

    /** Records one communicator. Called from any thread, under the communicator's lock. */
    interface Operations {

        /** Called when details that {@link Recorder#communicator} could not pass have become known. */
        void describe(int rank, int size, int nodes, String name);

        /**
         * See {@link CommunicatorTrace#enqueued}.
         *
         * @param number number of the operation in the trace
         * @param time   time as in {@link System#nanoTime()}
         * @param launch number that all operations of a kernel share; -1 if unknown
         */
        void enqueued(long number, long time, String name, long sequence, long bytes, long count, int type, int peer,
                int root, long launch);

        /** Records the start and the end of the operation's kernel. */
        void ran(long number, long started, long ended);

        /** Runs a function frequently on the recorder's thread, until this object is closed. */
        void watch(Runnable look);

        /** Runs the function of {@link #watch} a last time. */
        void close();
    }
}
