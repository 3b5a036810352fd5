package org.millrace.operation;

/** A device that accepts operands in host memory. */
public interface StagingDevice {

    /** {@return device memory into which host operands are copied while an operation runs} */
    StagingMemory staging();
}
