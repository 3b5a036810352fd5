package org.millrace.engine;

import java.util.List;
import org.millrace.DeviceStream;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.EmulatedStream;
import org.millrace.device.KernelPlan;
import org.millrace.device.WorkLauncher;
import org.millrace.engine.Attendance.Meeting;

/**
 * Launches a communicator's plans. For each plan, this class first places the work for the device, then announces the
 * operations to the proxies, and then starts the kernel.
 */
final class PlanLauncher {

    private final WorkLauncher launcher;
    private final Announcer announcer;
    private final OperationTrace trace;

    public PlanLauncher(WorkLauncher launcher, Announcer announcer, OperationTrace trace) {
        this.launcher = launcher;
        this.announcer = announcer;
        this.trace = trace;
    }

    /** Launches a plan. Waits only if the work FIFO is full. */
    public void launch(PlannedKernel kernel, DeviceStream stream) {
        if (!launchIfRoom(kernel, stream)) {
            IdleStrategy idle = IdleProfile.ROOM.newStrategy();
            do {
                idle.idle(0);
            } while (!launchIfRoom(kernel, stream));
        }
    }

    /**
     * Launches a plan. Returns false if the work FIFO currently has no room for the plan, so that the caller must
     * repeat the call.
     *
     * @throws org.millrace.MillraceException if the work FIFO stays full for too long, or if the communicator is
     *                                        aborted or closed
     */
    boolean launchIfRoom(PlannedKernel kernel, DeviceStream stream) {
        // One lock covers all of the launch. Proxies thus receive announcements in the order of the kernels' starts,
        // and only for kernels that start.
        synchronized (launcher) {
            if (!launcher.hasRoom(kernel.kernel(), stream)) {
                return false;
            }
            KernelArguments arguments = launcher.upload(kernel.kernel());
            Object name = kernel.announce(announcer);
            trace.launched(launcher.start(kernel.kernel(), name, arguments, stream));
            return true;
        }
    }

    /**
     * Returns a plan as an operation of a captured stream. The plan's memory stays allocated until the stream releases
     * the operation.
     */
    EmulatedStream.CapturedOperation captured(PlannedKernel kernel, Runnable check) {
        launcher.keep(kernel.kernel());
        return new EmulatedStream.CapturedOperation() {
            @Override
            public void check() {
                check.run();
            }

            @Override
            public void enqueue(DeviceStream stream) {
                launch(kernel, stream);
            }

            @Override
            public void release() {
                launcher.release(kernel.kernel());
            }
        };
    }

    /**
     * A plan: a kernel, and the operations that are announced to the proxies before each run of the kernel.
     *
     * @param who beginning of the kernel's name; it identifies the kernel's communicator in messages
     */
    public record PlannedKernel(String who, KernelPlan kernel, List<PlannedOperation> operations) {

        /** Description of a run, for messages. */
        private record Name(String who, Meeting operation) implements Meeting {

            @Override
            public void attend(Sink sink) {
                operation.attend(sink);
            }

            @Override
            public String toString() {
                return who + operation;
            }
        }

        private record Several(Meeting... operations) implements Meeting {

            @Override
            public void attend(Sink sink) {
                for (Meeting each : operations) {
                    each.attend(sink);
                }
            }

            @Override
            public String toString() {
                return "group of " + operations.length + " operations from " + operations[0] + " on";
            }
        }

        /** Announces the next run to the proxies. Returns a description of the run, for messages. */
        Object announce(Announcer announcer) {
            if (operations.size() == 1) {
                return new Name(who, operations.getFirst().announce(announcer));
            }
            Meeting[] each = new Meeting[operations.size()];
            for (int i = 0; i < each.length; i++) {
                each[i] = operations.get(i).announce(announcer);
            }
            return new Name(who, new Several(each));
        }
    }
}
