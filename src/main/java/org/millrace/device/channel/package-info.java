/**
 * A channel as the device sees it: this rank's neighbours, read from {@code ncclDevChannel}, and its ends of the
 * connections with them, as ports once they are connected and as endpoints before. What is done over a channel is not
 * known here. Uses the memory layouts of {@code abi}, and {@code unpack}.
 */
@NullMarked
package org.millrace.device.channel;

import org.jspecify.annotations.NullMarked;
