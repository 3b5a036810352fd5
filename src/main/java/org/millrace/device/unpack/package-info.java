/**
 * A kernel's part of NCCL's network device UNPACK on the CPU: slices are gathered from the pages of a bounce buffer.
 */
package org.millrace.device.unpack;
