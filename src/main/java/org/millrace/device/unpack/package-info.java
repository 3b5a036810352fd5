/**
 * A kernel's part of NCCL's network device UNPACK on the CPU: slices are gathered from the pages of a bounce buffer. It
 * knows the memory of {@code abi} alone; a receiving port calls it.
 */
@NullMarked
package org.millrace.device.unpack;

import org.jspecify.annotations.NullMarked;
