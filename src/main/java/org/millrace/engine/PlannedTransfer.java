package org.millrace.engine;

/**
 * The transfers of one item of a plan: a send, a receive or both.
 *
 * @param transfers announces them
 * @param send      null for none
 * @param receive   null for none
 */
record PlannedTransfer(Transfers transfers, Transfer send, Transfer receive) implements Runnable {

    @Override
    public void run() {
        if (send != null) {
            transfers.announce(send);
        }
        if (receive != null) {
            transfers.announce(receive);
        }
    }

    @Override
    public String toString() {
        return send == null ? receive.toString() : receive == null ? send.toString() : send + " and " + receive;
    }
}
