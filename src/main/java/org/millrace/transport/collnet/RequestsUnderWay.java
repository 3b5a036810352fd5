package org.millrace.transport.collnet;

/**
 * What the send proxy has begun and the receive proxy waits for, oldest first (NCCL's {@code reqFifo}). Both run on one
 * agent's thread.
 */
final class RequestsUnderWay {

    private final int[] requests = new int[CollectiveNetwork.REQUESTS];
    private long added;
    private long done;

    boolean isFull() {
        return added - done == requests.length;
    }

    boolean isEmpty() {
        return added == done;
    }

    void add(int request) {
        requests[(int) (added++ % requests.length)] = request;
    }

    int oldest() {
        return requests[(int) (done % requests.length)];
    }

    void removeOldest() {
        done++;
    }

    /** How many are done since the beginning: the slots of as many steps are the device's again. */
    long done() {
        return done;
    }
}
