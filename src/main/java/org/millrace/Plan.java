package org.millrace;

/**
 * Operations that are prepared once and launched many times. {@link Communicator#plan} creates it, or
 * {@link DeviceStream#endCapture} from the recorded work of streams. Each launch acts as if the program had called the
 * operations again in one group. All ranks launch the same plans in the same order among their other operations.
 */
public interface Plan extends AutoCloseable {

    /**
     * Enqueues the operations. They use the plan's operands, with their contents at the time when the operations run.
     *
     * @param stream stream of the launch; it may differ from the plan's stream
     * @throws MillraceException     if the communicator has failed or is closed
     * @throws IllegalStateException if the plan is closed, or in a group
     */
    void launch(DeviceStream stream);

    /**
     * Refuses further launches. Earlier launches continue, and may use the operands until they are complete. Closing
     * twice is allowed.
     */
    @Override
    void close();
}
