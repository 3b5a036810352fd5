package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/** What a connection's counters say at this moment, for a message. */
final class LastSeen {

    private LastSeen() {}

    static String of(SendMem sendMem, RecvMem recvMem) {
        StringBuilder text = new StringBuilder();
        text.append("head ")
                .append(sendMem.headAcquire())
                .append(", tail ")
                .append(recvMem.tailAcquire())
                .append(", sizes [");
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            text.append(slot == 0 ? "" : " ").append(recvMem.sizePlain(slot));
        }
        return text.append(']').toString();
    }
}
