package org.millrace.plugin.gin;

import java.util.HashSet;
import java.util.Set;
import org.millrace.gin.queue.GinContext;
import org.millrace.gin.queue.GinServed;

/** All GIN contexts that NCCL has had of this process, for whoever asks what Java has served. */
public final class GinTally {

    private static final Set<GinContext> OPEN = new HashSet<>();
    private static GinServed closed = GinServed.NONE;

    private GinTally() {}

    static synchronized void opened(GinContext context) {
        OPEN.add(context);
    }

    /** After the agent has let go of it. */
    static synchronized void closed(GinContext context) {
        if (OPEN.remove(context)) {
            closed = closed.plus(context.served());
        }
    }

    public static synchronized GinServed total() {
        return OPEN.stream().map(GinContext::served).reduce(closed, GinServed::plus);
    }
}
