package org.millrace.engine.plan;

import org.millrace.Stream;
import org.millrace.abi.KernelArguments;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.stream.WorkLauncher;

/** Launches a communicator's plans: their work is placed, then the proxies hear of it, then the kernel starts. */
public final class PlanLauncher {

    private final WorkLauncher device;
    private final Announcer announcer;

    public PlanLauncher(WorkLauncher device, Announcer announcer) {
        this.device = device;
        this.announcer = announcer;
    }

    /** Launches a plan. Returns at once, unless the FIFO is full. */
    public void launch(PlannedKernel plan, Stream stream) {
        IdleStrategy idle = IdleProfile.ROOM.newStrategy();
        while (!launchIfRoom(plan, stream)) {
            idle.idle(0);
        }
    }

    /**
     * Launches a plan; false if the FIFO has no room for it now. To be called again and again until it has.
     *
     * @throws org.millrace.MillraceException if the FIFO stays full for too long, or if the communicator is aborted or
     *                                        closed meanwhile
     */
    boolean launchIfRoom(PlannedKernel plan, Stream stream) {
        // One lock for all of it: the proxies hear of kernels in the order in which these are started, and of none that
        // is not.
        synchronized (device) {
            if (!device.hasRoom(plan.kernel(), stream)) {
                return false;
            }
            KernelArguments arguments = device.upload(plan.kernel());
            Object name = plan.announce(announcer);
            device.start(plan.kernel(), name, arguments, stream);
            return true;
        }
    }
}
