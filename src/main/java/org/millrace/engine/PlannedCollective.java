package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.CollectiveWork;
import org.millrace.proxy.OperationSignature;

/**
 * A collective of a plan.
 *
 * @param function  number of its device function
 * @param signature what the ranks must agree on
 * @param count     elements, as the program said
 * @param send      null where it is not looked at
 * @param receive   null where it is not looked at
 * @param regions   memory that it uses in place
 */
record PlannedCollective(int function, CollectiveWork work, long signature, long count, MemorySegment send,
        MemorySegment receive, UserRegions regions) implements PlannedOperation {

    @Override
    public Object announce(Announcer announcer) {
        return announcer.announce(this);
    }

    @Override
    public String toString() {
        return OperationSignature.describe(signature, count);
    }
}
