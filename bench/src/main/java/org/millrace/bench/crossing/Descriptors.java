package org.millrace.bench.crossing;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/** The descriptors of a connection, as proxies use them. */
final class Descriptors {

    private final SendMem sendMem;
    private final RecvMem recvMem;

    Descriptors(SendMem sendMem, RecvMem recvMem) {
        this.sendMem = sendMem;
        this.recvMem = recvMem;
    }

    long headRelease(long count) {
        for (long i = 0; i < count; i++) {
            sendMem.headRelease(i);
        }
        return count;
    }

    long tailAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += recvMem.tailAcquire();
        }
        return sum;
    }

    long sizeAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += recvMem.sizeAcquire(ConnectionLayout.slot(i));
        }
        return sum;
    }

    long sizePlain(long count) {
        for (long i = 0; i < count; i++) {
            recvMem.sizePlain(ConnectionLayout.slot(i), i);
        }
        return count;
    }
}
