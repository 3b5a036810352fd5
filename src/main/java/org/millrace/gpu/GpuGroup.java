package org.millrace.gpu;

import java.util.LinkedHashSet;
import java.util.Set;
import org.millrace.OperationGroup;
import org.millrace.nccl.NcclGroup;
import org.millrace.nccl.NcclLibrary;

/**
 * All calls of libnccl in a thread's group, whichever communicators they are of: NCCL's own group, which makes all
 * their plans before it launches one of them.
 */
final class GpuGroup implements OperationGroup.Part {

    private final NcclGroup nccl;
    private final Set<GpuCommunicator> members = new LinkedHashSet<>();

    GpuGroup(NcclLibrary library) {
        nccl = library.group();
    }

    void add(GpuCommunicator communicator) {
        members.add(communicator);
    }

    /** NCCL has all it needs. */
    @Override
    public void prepare(boolean alone) {}

    /** Its end connects and launches. If it is stuck or fails so are all members: NCCL does not say which it is. */
    @Override
    public boolean launch() {
        GpuCommunicator.watched(members, nccl::close);
        return true;
    }
}
