package org.millrace.trace;

/** Records every step and every operation of a process, whereas the trace keeps only the last steps and operations. */
public interface Recorder {

    Steps connection(ConnectionIdentity identity);

    /** Returns the recorder of a new communicator. Unknown values are -1, or empty. */
    Operations communicator(long hash, int rank, int size, String name);

    /** Records one direction of a connection. Called by one thread at a time. */
    interface Steps {

        /**
         * Records that the calling thread serves the connection from now on. This method may take time. All other
         * methods must return immediately.
         */
        void served();

        /** Records that a frame was passed to the network, see {@link ConnectionTrace#taken}. */
        void taken(long end, long size, int protocol);

        /** Records that the oldest frame in flight is complete, see {@link ConnectionTrace#done}. */
        void done(long end);

        /** Records that a step cannot be taken, see {@link ConnectionTrace#blocked}. Called once per step. */
        void blocked();
    }

    /** Records one communicator. Called from any thread, under the communicator's lock. */
    interface Operations {

        /** Records details that were not known yet when {@link Recorder#communicator} was called. */
        void describe(int rank, int size, int nodes, String name);

        /**
         * Records that an operation was enqueued, see {@link CommunicatorTrace#enqueued}.
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
