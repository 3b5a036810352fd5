package org.millrace.engine;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.device.EmulatedDevice;
import org.millrace.device.EmulatedStream;
import org.millrace.engine.PlanLauncher.PlannedKernel;

/**
 * The kernels of one communicator at a group's end. They run on one stream, which waits for what those that their
 * operations name held before, and they for it behind. If other communicators are in the group that is a stream of its
 * own: on one of the program's, one communicator's kernels would wait for another's, and on a peer that named the
 * communicators in another order these would wait for those.
 */
final class GroupLaunch {

    private final EmulatedDevice device;
    private final PlanLauncher launcher;
    private final List<PlannedKernel> plans;
    private final DeviceStream stream;
    private final List<DeviceStream> others;
    private final @Nullable EmulatedStream own;
    private final @Nullable Runnable captured;
    private int launched;

    /**
     * A launch that has not begun: what the streams are given from now on does not come before it.
     *
     * @param used     the streams that the operations name, at least one
     * @param alone    whether no other communicator is in the group
     * @param captured refuses what can be launched no more, where the streams are captured; null where they are not
     */
    GroupLaunch(EmulatedDevice device, PlanLauncher launcher, List<PlannedKernel> plans, List<DeviceStream> used,
            boolean alone, @Nullable Runnable captured) {
        this.captured = captured;
        this.device = device;
        this.launcher = launcher;
        this.plans = plans;
        this.own = alone ? null : device.newStream();
        this.stream = alone ? used.getFirst() : own;
        this.others = List.copyOf(alone ? used.subList(1, used.size()) : used);
        for (DeviceStream other : others) {
            stream.waitFor(mark(other));
        }
    }

    private Event mark(DeviceStream marked) {
        Event event = device.newEvent();
        marked.record(event);
        return event;
    }

    /**
     * Launches what the work FIFO has room for: all there is, if no other communicator is in the group. Returns whether
     * that was all.
     */
    boolean launch() {
        try {
            while (launched < plans.size()) {
                if (captured != null) {
                    ((EmulatedStream) stream).captures(launcher.captured(plans.get(launched), captured));
                } else if (own == null) {
                    launcher.launch(plans.get(launched), stream);
                } else if (!launcher.launchIfRoom(plans.get(launched), stream)) {
                    return false;
                }
                launched++;
            }
        } catch (RuntimeException | Error thrown) {
            end();
            throw thrown;
        }
        end();
        return true;
    }

    private void end() {
        if (!others.isEmpty()) {
            Event behind = mark(stream);
            others.forEach(other -> other.waitFor(behind));
        }
        if (own != null) {
            own.closeWhenDone();
        }
    }
}
