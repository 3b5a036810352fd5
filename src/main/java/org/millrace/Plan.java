package org.millrace;

/**
 * Operations that were prepared once and are launched many times, made by {@link Communicator#plan}, or by
 * {@link DeviceStream#endCapture} of all that streams were given. Each launch is as if the program had called the
 * operations again in one group: all ranks launch the same plans in the same order among their other operations.
 */
public interface Plan extends AutoCloseable {

    /**
     * Enqueues the operations. Operands are those that the plan was made with, and hold whatever they hold when the
     * operations run.
     *
     * @param stream where; it need not be the one that the plan was made with
     * @throws MillraceException     if the communicator has failed or is closed
     * @throws IllegalStateException if the plan is closed, or in a group
     */
    void launch(DeviceStream stream);

    /**
     * Refuses further launches. What was launched goes on, and may use the operands until it is complete. Closing twice
     * is allowed.
     */
    @Override
    void close();
}
