package org.millrace.device.stream;

import org.millrace.device.function.WorkFunctions;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.device.work.WorkReader;

/**
 * What a device knows of a communicator whose kernels it runs; they name it by its address.
 *
 * @param communicator what its kernels see
 * @param functions    what they can do
 * @param reader       of their work, in turns
 */
record Resident(DeviceCommunicator communicator, WorkFunctions functions, WorkReader reader) {
}
