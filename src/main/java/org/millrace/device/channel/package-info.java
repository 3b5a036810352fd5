/**
 * A channel as the device sees it: this rank's neighbours, read from {@code ncclDevChannel}, and its ends of the
 * connections with them, as ports once they are connected and as endpoints before. With NCCL's network device UNPACK a
 * receiving port gathers slices from the pages of a bounce buffer. What is done over a channel is not known here. Uses
 * the memory layouts of {@code abi}, and names and steps of {@code proxy}.
 */
@NullMarked
package org.millrace.device.channel;

import org.jspecify.annotations.NullMarked;
