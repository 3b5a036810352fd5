package org.millrace;

/** Memory that operations of a communicator may use in place: {@link Communicator#register}. */
public interface Registration extends AutoCloseable {

    /**
     * Takes the registration back. Waits for the operations that were launched before; none that is still in an open
     * group may use the memory. Once this returns nothing touches it any more, also if the communicator has failed.
     * Closing twice is allowed.
     */
    @Override
    void close();
}
