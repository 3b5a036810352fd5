package org.millrace;

/**
 * Operations that are prepared once and launched many times. {@link Communicator#plan} creates a plan from operations,
 * and {@link DeviceStream#endCapture} from the recorded work of streams. Each launch acts as if the program had called
 * the operations again in one group. All ranks launch the same plans, at the same position in the order of their
 * operations.
 */
public interface Plan extends AutoCloseable {

    /**
     * Enqueues the operations of the plan. They read the contents that the operands have at the time when the
     * operations run, not at the time of this call.
     *
     * @param stream stream of the launch; it may differ from the stream of the plan's creation
     * @throws MillraceException     if the communicator has failed or is closed
     * @throws IllegalStateException if the plan is closed, or in a group
     */
    void launch(DeviceStream stream);

    /**
     * Refuses further launches. Earlier launches continue, and may use the operands until these launches are complete.
     * Closing twice is allowed.
     */
    @Override
    void close();
}
