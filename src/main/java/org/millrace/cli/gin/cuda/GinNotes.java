package org.millrace.cli.gin.cuda;

import java.util.OptionalInt;
import org.millrace.gin.queue.GinServed;

/** What a rank says of who served its kernels. */
final class GinNotes {

    /** The thread that NCCL starts where GIN needs its proxy. */
    static final String NCCL_THREAD = "NCCL GIN Progress";
    /** The thread of this JVM that serves a device. */
    static final String OUR_THREAD = "millrace-gin-";

    private GinNotes() {}

    /** A line; the threads are those that are there while the contexts are. */
    static String of(GinServed served, String setThreadName, OptionalInt nccl, OptionalInt ours) {
        return served + "; " + threads("1".equals(setThreadName), nccl, ours);
    }

    private static String threads(boolean named, OptionalInt nccl, OptionalInt ours) {
        if (!named) {
            return "NCCL's threads have no names without NCCL_SET_THREAD_NAME=1";
        }
        return nccl.isEmpty() || ours.isEmpty() ? "the names of threads cannot be read here"
                : "GIN progress threads of NCCL: " + nccl.getAsInt() + ", of Millrace: " + ours.getAsInt();
    }
}
