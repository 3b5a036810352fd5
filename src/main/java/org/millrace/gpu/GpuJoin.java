package org.millrace.gpu;

import org.millrace.Communicator;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.plugin.InProcessPlugin;

/**
 * Puts a communicator together: our network for NCCL, the control plane, a GPU for this rank, and NCCL's communicator.
 */
final class GpuJoin {

    private GpuJoin() {}

    static Communicator join(String rendezvous, int rank, int size, Configuration configuration) {
        return meet(prepare(configuration), rendezvous, rank, size, configuration);
    }

    /** The part before others are met. */
    static Libraries prepare(Configuration configuration) {
        Libraries libraries = Libraries.load(configuration);
        libraries.cuda().deviceCount(); // a rank without a GPU says so before it keeps others waiting
        InProcessPlugin.configure(NcclVariables.of(configuration));
        InProcessPlugin.activate();
        return libraries;
    }

    /** The part that other ranks take part in. */
    static Communicator meet(Libraries libraries, String rendezvous, int rank, int size, Configuration configuration) {
        GpuMember member = GpuMember.meet(libraries, rendezvous, rank, size, configuration);
        return new GpuCommunicator(libraries.nccl(), member.nccl(), new GpuDevice(member.device(), member.failure()),
                member.control(), member.failure(), configuration.get(Settings.STALL_DEADLINE), member.patience());
    }
}
