package org.millrace;

/** Memory that operations of a communicator may use in place: {@link Communicator#register}. */
public interface Registration extends AutoCloseable {

    /**
     * Ends the registration. Waits for the operations launched before this call. No operation of an open group may use
     * the memory. After the return no thread accesses the memory, even if the communicator has failed. Closing twice is
     * allowed.
     */
    @Override
    void close();
}
