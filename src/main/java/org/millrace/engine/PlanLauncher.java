package org.millrace.engine;

import java.util.List;
import org.millrace.DeviceStream;
import org.millrace.abi.KernelArguments;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.EmulatedStream;
import org.millrace.device.KernelPlan;
import org.millrace.device.WorkLauncher;
import org.millrace.engine.Attendance.Meeting;

/** Launches a communicator's plans: their work is placed, then the proxies hear of it, then the kernel starts. */
final class PlanLauncher {

    private final WorkLauncher launcher;
    private final Announcer announcer;
    private final OperationTrace trace;

    public PlanLauncher(WorkLauncher launcher, Announcer announcer, OperationTrace trace) {
        this.launcher = launcher;
        this.announcer = announcer;
        this.trace = trace;
    }

    /** Launches a plan. Returns at once, unless the FIFO is full. */
    public void launch(PlannedKernel kernel, DeviceStream stream) {
        if (!launchIfRoom(kernel, stream)) {
            IdleStrategy idle = IdleProfile.ROOM.newStrategy();
            do {
                idle.idle(0);
            } while (!launchIfRoom(kernel, stream));
        }
    }

    /**
     * Launches a plan; false if the FIFO has no room for it now. To be called again and again until it has.
     *
     * @throws org.millrace.MillraceException if the FIFO stays full for too long, or if the communicator is aborted or
     *                                        closed meanwhile
     */
    boolean launchIfRoom(PlannedKernel kernel, DeviceStream stream) {
        // One lock for all of it: the proxies hear of kernels in the order in which these are started, and of none that
        // is not.
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

    /** A plan as a captured stream keeps it: its memory stays until it is released. */
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
     * A kernel, and what the proxies must hear of before each of its runs.
     *
     * @param who whose it is, for messages: what its name begins with
     */
    public record PlannedKernel(String who, KernelPlan kernel, List<PlannedOperation> operations) {

        /** What a run does, for messages. */
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

        /** Tells the proxies of the next run; returns what it does, for messages. */
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
