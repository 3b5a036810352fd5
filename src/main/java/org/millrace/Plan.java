package org.millrace;

/**
 * Operations that are prepared once and launched many times. {@link Communicator#plan} creates a plan from operations.
 * {@link DeviceStream#endCapture} creates a plan from the recorded work of streams. Each launch acts as if the program
 * had called the operations again in one group. All ranks launch the same plans, at the same position in the order of
 * their operations.
 */
public interface Plan extends AutoCloseable {

    /**
     * Enqueues the operations of the plan. The operations read the operands when the operations run, and not during
     * this call.
     *
     * @param stream stream of the launch; it may differ from the stream of the plan's creation
     * @throws MillraceException     if the communicator has failed or is closed
     * @throws IllegalStateException if the plan is closed, or if called in a group
     */
    void launch(DeviceStream stream);

    /**
     * Refuses further launches. Earlier launches continue, and may use the operands until these launches are complete.
     * Closing twice is allowed.
     */
    @Override
    void close();
}
